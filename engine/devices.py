# SPDX-License-Identifier: Apache-2.0
"""Which device computes: the one asked for, or the CPU with the reason why not.

Neither torch nor CUDA is imported before a model goes to that device.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from platformdirs import PlatformDirs

from engine.backend import Backend
from engine.errors import DeviceError, OutOfMemoryError, UnsupportedModelError
from engine.failures import name_of_error
from engine.formats.source import ModelSource
from engine.messages import Device, Residency
from engine.texts import Text, as_text

if TYPE_CHECKING:
    from engine.fp8.model import PackedModel

Opener: TypeAlias = Callable[[ModelSource, int], Backend]
Devices: TypeAlias = Mapping[Device, Opener]

# What most computers lack: with `auto` that is no news.
_NO_GPU: Final = ("cuda-no-device", "cuda-device-unsupported")
_NOTE_CHARS: Final = 300  # a compiler's log can be long

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Placed:
    """A model in the memory of `device`; `note` says why that is not the device asked for."""

    backend: Backend
    device: Device
    note: str = ""


def place(source: ModelSource, max_context: int, device: Device, devices: Devices) -> Placed:
    """Load `source` where `device` says; AUTO tries the GPU first. Whatever keeps the GPU from
    computing, the CPU takes its place.

    Raises:
        ModelFileError, OutOfMemoryError: the CPU cannot run the model either.
    """
    if device is Device.CPU:
        return Placed(devices[Device.CPU](source, max_context), Device.CPU)
    try:
        return Placed(devices[Device.CUDA](source, max_context), Device.CUDA)
    except (DeviceError, OutOfMemoryError, UnsupportedModelError) as error:
        reason = as_text(str(error))
        is_news = device is Device.CUDA or error.code not in _NO_GPU
    except (ImportError, AttributeError, RuntimeError, OSError) as error:
        # What the bindings raise where they and the driver do not fit together, or a part is missing.
        reason = Text("the GPU cannot be used: {error}", error=name_of_error(error))
        is_news = True
    note = on_the_cpu(reason)
    _log.info("%s", note)
    return Placed(devices[Device.CPU](source, max_context), Device.CPU, note if is_news else "")


def on_the_cpu(reason: Text) -> Text:
    """One line for the person. What is too long even with short names is cut, and said as it is."""
    short: str = reason.renamed(_in_short)
    return Text(
        "on the CPU: {reason}", reason=short if len(short) <= 2 * _NOTE_CHARS else _in_short(short)
    )


def _in_short(value: str) -> str:
    line = " ".join(value.split())
    return line if len(line) <= _NOTE_CHARS else f"{line[:_NOTE_CHARS]}…"


def _open_cpu(source: ModelSource, max_context: int) -> Backend:
    # Here, because torch takes seconds and hundreds of MB.
    from engine.cpu.backend import CpuBackend

    return CpuBackend(source, max_context)


def _open_cuda(
    source: ModelSource, max_context: int, residency: Residency = Residency.LAUNCH
) -> Backend:
    from engine.cuda.backend import CudaBackend
    from engine.cuda.driver import Context

    with Context():  # the device is looked at before minutes go into packing weights for it
        return CudaBackend(packed_model(source), max_context, kernel_folder(), residency=residency)


def packed_model(source: ModelSource) -> PackedModel:
    """The FP8 weights of `source`, from the cache of this user, made if they are not there."""
    from engine.fp8.model import open_cached

    digest = hashlib.sha256(str(source.path.absolute()).encode()).hexdigest()[:12]
    return open_cached(source, _cache_folder() / "fp8" / f"{source.path.stem}-{digest}.fp8")


def kernel_folder() -> Path:
    """Where compiled kernels are kept."""
    return _cache_folder() / "kernels"


def _cache_folder() -> Path:
    return Path(PlatformDirs("thock", appauthor=False).user_cache_dir)


def devices_with(residency: Residency) -> Devices:
    """The devices, with the GPU's kernel staying as long as `residency` says."""
    return MappingProxyType({**DEVICES, Device.CUDA: partial(_open_cuda, residency=residency)})


DEVICES: Final[Devices] = MappingProxyType({Device.CPU: _open_cpu, Device.CUDA: _open_cuda})
