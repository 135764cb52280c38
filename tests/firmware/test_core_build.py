# SPDX-License-Identifier: Apache-2.0
"""The C core under other compilers: no warnings, no memory errors, and small enough for a keyboard."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

CORE = Path(__file__).resolve().parents[2] / "firmware_bridge" / "firmware" / "core"
SOURCES = sorted(CORE.glob("*.c"))
FUZZER = sorted(Path(__file__).with_name("fuzz").glob("*.c"))
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wpedantic", "-Werror"]
WISHED = [f"-DTHOCK_ENABLE_{part}=1" for part in ("CAPTURE", "ACCEPT", "POLL", "VIA_FORM")]
FUZZED_SIZES = ["-DTHOCK_REPORT_LENGTH=64", "-DTHOCK_DISPLAY_HEIGHT=128", "-DTHOCK_LED_COUNT=256"]
PARTS = ("EVENTS", "TEXT", "BITMAP", "LIGHTS", "STATUS")
CORTEX_M0 = ("arm-none-eabi-gcc", "-mcpu=cortex-m0plus", "-mthumb")
AVR = ("avr-gcc", "-mmcu=atmega32u4")


def run(*command: str | Path, cwd: Path) -> str:
    """Standard output of a command that must succeed."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command[0]}: {done.stdout}{done.stderr}"
    return done.stdout


def need(compiler: str) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")


def sizes(folder: Path, compiler: tuple[str, ...], *options: str) -> tuple[int, int]:
    """(flash, RAM) in bytes: code and constants of the core, and its data with one thock_t."""
    need(compiler[0])
    instance = folder / "instance.c"
    # volatile, so that neither compiler drops or shares it
    instance.write_text('#include "thock.h"\nvolatile thock_t instance;\n')
    run(
        *compiler, *STRICT, "-Os", "-ffunction-sections", "-fno-common", f"-I{CORE}", *options,
        "-c", *SOURCES, instance, cwd=folder,
    )  # fmt: skip
    objects = sorted(folder.glob("*.o"))
    table = run(compiler[0].replace("gcc", "size"), "-t", *objects, cwd=folder)
    total = re.search(r"(\d+)\s+(\d+)\s+(\d+)\s+\d+\s+\w+\s+\(TOTALS\)", table)
    assert total is not None
    text, data, bss = map(int, total.groups())
    return text + data, data + bss


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("left_out", [(), *((part,) for part in PARTS), ("TEXT", "BITMAP"), PARTS])
def test_no_warnings_whatever_is_left_out(
    compiler: str, left_out: tuple[str, ...], tmp_path: Path
) -> None:
    need(compiler)
    switches = [f"-DTHOCK_ENABLE_{part}=0" for part in left_out]
    run(compiler, *STRICT, "-O2", *switches, "-c", *SOURCES, cwd=tmp_path)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("wished", [*((switch,) for switch in WISHED), tuple(WISHED)])
@pytest.mark.parametrize("left_out", ["BITMAP", "LIGHTS", "STATUS"])
def test_no_warnings_with_the_parts_that_a_board_asks_for(
    compiler: str, wished: tuple[str, ...], left_out: str, tmp_path: Path
) -> None:
    need(compiler)
    switches = [*wished, f"-DTHOCK_ENABLE_{left_out}=0"]
    run(compiler, *STRICT, "-O2", *switches, "-c", *SOURCES, cwd=tmp_path)


def test_cortex_m0_size(tmp_path: Path) -> None:
    """The default build, for a 128x32 display: at most 8 KiB of flash and 2 KiB of RAM."""
    flash, ram = sizes(tmp_path, CORTEX_M0)
    print(f"cortex-m0plus: {flash} bytes of flash, {ram} bytes of RAM")
    assert 0 < flash <= 8192
    assert 0 < ram <= 2048


def test_avr_size_without_bitmaps(tmp_path: Path) -> None:
    """An ATmega32U4 has 28 KiB of flash and 2.5 KiB of RAM, and QMK wants most of both."""
    flash, ram = sizes(
        tmp_path, AVR, "-DTHOCK_ENABLE_BITMAP=0", "-DTHOCK_LED_COUNT=16", "-DTHOCK_RING_SIZE=16"
    )
    print(f"atmega32u4: {flash} bytes of flash, {ram} bytes of RAM")
    assert 0 < flash <= 6400
    assert 0 < ram <= 512


def fuzz(folder: Path, compiler: str, frames: int, seed: int) -> str:
    need(compiler)
    run(
        compiler, *STRICT, *FUZZED_SIZES, *WISHED, "-O2", "-g", "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all", f"-I{CORE}", *FUZZER, *SOURCES, "-o", "fuzz", cwd=folder,
    )  # fmt: skip
    return run(folder / "fuzz", str(frames), str(seed), cwd=folder)


@pytest.mark.parametrize(("compiler", "seed"), [("gcc", 1), ("clang", 2)])
def test_random_and_mutated_frames(compiler: str, seed: int, tmp_path: Path) -> None:
    assert fuzz(tmp_path, compiler, 300_000, seed).startswith("300000 frames")


@pytest.mark.slow
@pytest.mark.parametrize(("compiler", "seed"), [("gcc", 3), ("clang", 4)])
def test_ten_million_random_and_mutated_frames(compiler: str, seed: int, tmp_path: Path) -> None:
    assert fuzz(tmp_path, compiler, 10_000_000, seed).startswith("10000000 frames")
