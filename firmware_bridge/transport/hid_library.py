# SPDX-License-Identifier: Apache-2.0
"""The `hidapi` package: which of its modules is the right one, and one lock around what is not thread-safe.

On Linux the wheel holds two: `hidraw` talks to the kernel's HID driver, `hid` is libusb, which takes
the interface away from the kernel (a key interface taken this way stops typing) and knows no usages.
"""

from __future__ import annotations

import ctypes
import importlib
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, cast

from firmware_bridge.errors import TransportError
from firmware_bridge.texts import Text

_log = logging.getLogger(__name__)

MODULE_NAME = "hidraw" if sys.platform.startswith("linux") else "hid"

# hidapi keeps its list of devices and its last error in C globals: open, close and enumerate of any
# two devices must not run at the same time in one process.
_GATE = threading.Lock()
_GATE_WAIT_S = 5.0  # an enumeration that takes longer hangs on a broken device


class HidLibraryError(TransportError):
    """The Python package for HID is missing, or another one has its name."""


class HidDevice(Protocol):
    """`device` of the module. `read` waits for ever with a timeout of 0."""

    def open_path(self, path: bytes) -> None: ...

    def close(self) -> None: ...

    def read(self, max_length: int, timeout_ms: int = ...) -> list[int]: ...

    def write(self, buff: bytes) -> int: ...

    def error(self) -> str: ...


class _HidModule(Protocol):
    device: Callable[[], HidDevice]

    def enumerate(self) -> list[dict[str, Any]]: ...


class HidLibrary:
    """The module behind its lock."""

    def __init__(self, module: object) -> None:
        """Raises HidLibraryError if `module` is not that of the package `hidapi`."""
        if not callable(getattr(module, "device", None)):
            raise HidLibraryError(
                "The module 'hid' is not that of the package hidapi.",
                "Run: pip uninstall hid && pip install --force-reinstall hidapi",
            )
        self._module = cast(_HidModule, module)

    def enumerate(self) -> list[dict[str, Any]]:
        """Every HID collection of the system, as hidapi describes it."""
        with _gate():
            return self._module.enumerate()

    def open(self, path: bytes) -> HidDevice:
        """Raises OSError("open failed") without a reason; see `HidTransport.open`."""
        device = self._module.device()
        with _gate():
            device.open_path(path)
        return device

    def close(self, device: HidDevice) -> None:
        """Only the thread that reads may call this: hidapi frees memory that a read uses."""
        try:
            with _gate():
                device.close()
        except TransportError as error:
            _log.warning("a HID device stays open: %s", error.reason)


@contextmanager
def _gate() -> Iterator[None]:
    if not _GATE.acquire(timeout=_GATE_WAIT_S):
        raise TransportError(
            "Listing the HID devices hangs.",
            "Unplug HID devices one by one to find the broken one.",
        )
    try:
        yield
    finally:
        _GATE.release()


def load_hid_library(name: str = MODULE_NAME) -> HidLibrary:
    """Import the module for this system; hidapi starts itself then, so call this on the main thread.

    Raises:
        HidLibraryError: it is missing, or a package of another maker has its name.
    """
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        raise HidLibraryError(
            Text("The Python module '{name}' cannot be loaded.", name=name),
            "Run: pip install --force-reinstall hidapi",
        ) from error
    library = HidLibrary(module)
    if sys.platform == "darwin":
        _share_devices(str(module.__file__))
    return library


def _share_devices(module_file: str) -> None:
    """macOS: hidapi opens devices for itself alone unless told otherwise, and then VIA cannot open them.

    The function is in the extension module but has no Python name; before hidapi 0.12 it is absent.
    """
    try:
        ctypes.PyDLL(module_file).hid_darwin_set_open_exclusive(0)
    except (OSError, AttributeError):
        _log.info("keyboards are opened exclusively: this hidapi cannot share them")
