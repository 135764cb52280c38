# SPDX-License-Identifier: Apache-2.0
"""Kernel source to cubin through NVRTC, once per model shape, architecture and compiler version.

A cubin, not PTX: PTX of a newer compiler is refused by an older driver. No CUDA header is included, so
nothing beside NVRTC itself is needed.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from engine.cuda.errors import CompileError, NoDeviceError
from engine.texts import Text

ARCHITECTURES: Final = ("sm_89", "sm_90a", "sm_120")
_FOLDER: Final = Path(__file__).parent / "kernels"
# No fused multiply-add unless the source says fmaf: rounding is then the same on every compiler.
_OPTIONS: Final = ("--std=c++17", "--fmad=false", "--ptxas-options=-v")


class Variant(Protocol):
    """What one cubin is compiled for: `main` is the source file that has `kernel`."""

    @property
    def arch(self) -> str: ...
    @property
    def main(self) -> str: ...
    @property
    def kernel(self) -> str: ...
    def defines(self) -> dict[str, str]: ...


@dataclass(frozen=True, slots=True)
class Resources:
    """What ptxas reports for one kernel; bytes are per thread."""

    registers: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int


@dataclass(frozen=True, slots=True)
class Built:
    """A compiled kernel. `resources` is None when it came from the disk cache."""

    cubin: bytes
    key: str
    resources: Resources | None


def sources() -> dict[str, str]:
    """All kernel files by name."""
    files = sorted(p for p in _FOLDER.iterdir() if p.suffix in {".cu", ".cuh"})
    return {p.name: p.read_text(encoding="utf-8") for p in files}


def _load_nvrtc() -> Any:
    try:
        return importlib.import_module("cuda.bindings.nvrtc")
    except ImportError as error:
        raise NoDeviceError("cuda-python is not installed: pip install 'thock[cuda]'") from error


def compiler_version() -> tuple[int, int]:
    """Version of NVRTC.

    Raises:
        NoDeviceError: NVRTC is not installed.
    """
    nvrtc = _load_nvrtc()
    try:
        result, major, minor = nvrtc.nvrtcVersion()
    except RuntimeError as error:  # the bindings are there, the compiler library is not
        raise NoDeviceError(
            Text("the CUDA compiler (NVRTC) is missing: {error}", error=error)
        ) from error
    if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise CompileError(Text("nvrtcVersion failed: {result}", result=result))
    return int(major), int(minor)


def key_of(variant: Variant) -> str:
    """Name of this build: source, definitions, architecture, options and compiler version."""
    digest = hashlib.sha256()
    for part in (*sources().items(), *sorted(variant.defines().items())):
        digest.update("\0".join(part).encode())
    digest.update(repr((variant.arch, variant.main, _OPTIONS, compiler_version())).encode())
    return f"{variant.arch}-{digest.hexdigest()[:32]}"


def _parse(log: str) -> Resources | None:
    registers = re.search(r"Used (\d+) registers", log)
    spills = re.search(
        r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", log
    )
    if registers is None or spills is None:
        return None  # NVRTC took the machine code from its own cache and ran no ptxas
    return Resources(int(registers[1]), *(int(g) for g in spills.groups()))


def compile_kernel(variant: Variant) -> Built:
    """Compile one variant.

    Raises:
        CompileError: with the compiler's log.
        NoDeviceError: NVRTC is not installed.
    """
    nvrtc = _load_nvrtc()
    key = key_of(variant)
    files = sources()
    headers = [name for name in files if name != variant.main]
    success = nvrtc.nvrtcResult.NVRTC_SUCCESS
    result, program = nvrtc.nvrtcCreateProgram(
        files[variant.main].encode(),
        variant.main.encode(),
        len(headers),
        [files[name].encode() for name in headers],
        [name.encode() for name in headers],
    )
    if result != success:
        raise CompileError(Text("nvrtcCreateProgram failed: {result}", result=result))
    try:
        options = [f"--gpu-architecture={variant.arch}", *_OPTIONS]
        options += [f"-D{name}={value}" for name, value in sorted(variant.defines().items())]
        (result,) = nvrtc.nvrtcCompileProgram(program, len(options), [o.encode() for o in options])
        log = _fetch(nvrtc, program, "ProgramLog")
        if result != success:
            raise CompileError(
                Text(
                    "the CUDA compiler says {result} for {arch}: {log}",
                    result=result,
                    arch=variant.arch,
                    log=log.decode(errors="replace"),
                )
            )
        cubin = _fetch(nvrtc, program, "CUBIN")
    finally:
        nvrtc.nvrtcDestroyProgram(program)
    return Built(cubin, key, _parse(log.decode(errors="replace")))


def _fetch(nvrtc: Any, program: Any, what: str) -> bytes:
    _, size = getattr(nvrtc, f"nvrtcGet{what}Size")(program)
    buffer: bytes = b" " * size
    getattr(nvrtc, f"nvrtcGet{what}")(program, buffer)
    return buffer


def cached_kernel(variant: Variant, folder: Path) -> Built:
    """As `compile_kernel`, through the cache in `folder` (written atomically)."""
    key = key_of(variant)
    path = folder / f"{key}.cubin"
    if path.is_file():
        cubin = path.read_bytes()
        if cubin.startswith(b"\x7fELF"):
            return Built(cubin, key, None)
    built = compile_kernel(variant)
    folder.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=folder, suffix=".part")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(built.cubin)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return built
