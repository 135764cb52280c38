# SPDX-License-Identifier: Apache-2.0
"""What the HID transport makes of hidapi's answers; tests/vm has it on the kernel's real driver."""

from __future__ import annotations

import importlib
import logging
import os
import sys
import threading
import types
from pathlib import Path

import pytest

from firmware_bridge.errors import (
    DeviceBusyError,
    DeviceGoneError,
    DevicePermissionError,
    TransportError,
)
from firmware_bridge.transport import hid, hid_library
from firmware_bridge.transport.base import DeviceIdentity
from firmware_bridge.transport.hid import HidInterface, HidTransport
from firmware_bridge.transport.hid_library import HidLibrary, HidLibraryError, load_hid_library
from tests.helpers.fake_hid import FakeHidModule, entry

IDENTITY = DeviceIdentity("hid", 0xFEED, 0x6061, "0", "usb-1")
READ_ERROR = OSError("read error")


@pytest.fixture
def module() -> FakeHidModule:
    return FakeHidModule()


@pytest.fixture
def transport(module: FakeHidModule) -> HidTransport:
    transport = make(module)
    transport.open()
    return transport


def make(module: FakeHidModule, path: bytes = b"/dev/hidraw9", length: int = 32) -> HidTransport:
    return HidTransport(HidLibrary(module), HidInterface(path, IDENTITY, length))


@pytest.mark.parametrize("length", [32, 64])
def test_a_write_is_the_report_id_and_the_whole_report(module: FakeHidModule, length: int) -> None:
    transport = make(module, length=length)
    transport.open()
    transport.write(b"\xe7\x4c")
    assert module.written == [b"\0\xe7\x4c" + bytes(length - 2)]


@pytest.mark.parametrize("result", [-1, 0, 3, 32, 34])
def test_any_other_count_than_asked_for_is_a_lost_device(
    module: FakeHidModule, transport: HidTransport, result: int
) -> None:
    module.write_result = lambda size: result
    with pytest.raises(DeviceGoneError, match="of 33 bytes"):
        transport.write(bytes(32))
    module.write_result = lambda size: size
    with pytest.raises(DeviceGoneError):
        transport.write(bytes(32))
    assert module.closed == 1


@pytest.mark.parametrize("timeout_s", [1e-9, 1e-4, 0.0009])
def test_a_read_never_waits_for_ever(
    module: FakeHidModule, transport: HidTransport, timeout_s: float
) -> None:
    assert transport.read(timeout_s) is None
    assert module.read_calls == [(32, 1)]


def test_a_report_that_came_short_is_padded(module: FakeHidModule, transport: HidTransport) -> None:
    module.incoming.append([0xE7])
    assert transport.read(0.01) == b"\xe7" + bytes(31)


def test_a_read_error_is_a_lost_device_only_if_it_repeats(
    module: FakeHidModule, transport: HidTransport
) -> None:
    report = list(range(32))
    module.incoming.extend([READ_ERROR, report])
    assert transport.read(5.0) == bytes(report)
    module.incoming.extend([READ_ERROR, [], READ_ERROR, [], READ_ERROR, READ_ERROR, report])
    assert transport.read(5.0) == bytes(report)
    module.incoming.extend([READ_ERROR] * 4)
    with pytest.raises(DeviceGoneError):
        transport.read(5.0)
    assert module.closed == 1
    with pytest.raises(DeviceGoneError):
        transport.read(5.0)
    transport.close()
    assert module.closed == 1


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="device nodes")
class TestDiagnosis:
    """hidapi says "open failed" to everything."""

    def failed(self, module: FakeHidModule, path: Path) -> TransportError:
        module.openable = False
        with pytest.raises(TransportError) as caught:
            make(module, os.fsencode(path)).open()
        return caught.value

    def test_gone(self, module: FakeHidModule, tmp_path: Path) -> None:
        assert type(self.failed(module, tmp_path / "hidraw9")) is DeviceGoneError

    def test_no_permission(
        self, module: FakeHidModule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        error = self.with_open_error(module, tmp_path, monkeypatch, PermissionError(13, "no"))
        assert type(error) is DevicePermissionError
        assert "udev" in error.advice

    def test_busy(
        self, module: FakeHidModule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        error = self.with_open_error(module, tmp_path, monkeypatch, OSError(16, "busy"))
        assert type(error) is DeviceBusyError

    def with_open_error(
        self, module: FakeHidModule, folder: Path, monkeypatch: pytest.MonkeyPatch, error: OSError
    ) -> TransportError:
        def fail(*arguments: object) -> int:
            raise error

        fake = types.SimpleNamespace(**{**vars(os), "open": fail})
        monkeypatch.setattr(hid, "os", fake)
        return self.failed(module, folder / "hidraw9")


@pytest.mark.parametrize(("listed", "kind"), [(True, DeviceBusyError), (False, DeviceGoneError)])
def test_elsewhere_the_list_tells_busy_from_gone(
    monkeypatch: pytest.MonkeyPatch, listed: bool, kind: type[TransportError]
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    module = FakeHidModule([entry("there")])
    module.openable = False
    with pytest.raises(kind):
        make(module, b"there" if listed else b"elsewhere").open()


def test_the_look_alike_package_is_refused() -> None:
    look_alike = types.SimpleNamespace(Device=object, enumerate=list)
    with pytest.raises(HidLibraryError, match="not that of the package hidapi") as caught:
        HidLibrary(look_alike)
    assert "pip uninstall hid" in caught.value.advice


def test_a_missing_package_is_named() -> None:
    with pytest.raises(HidLibraryError, match="no_such_hid_module"):
        load_hid_library("no_such_hid_module")


def test_the_real_package_is_accepted_and_lists() -> None:
    assert isinstance(load_hid_library().enumerate(), list)


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the wheel holds two modules there"
)
def test_linux_uses_the_driver_of_the_kernel() -> None:
    assert hid_library.MODULE_NAME == "hidraw"


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="needs a module without the symbol"
)
def test_without_the_function_macos_is_not_shared_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    hid_library._share_devices(
        str(importlib.import_module("hidraw").__file__)
    )  # Linux: no such symbol
    hid_library._share_devices("/no/such/file.so")
    assert caplog.text.count("cannot share") == 2


@pytest.mark.expected_log("stays open")
def test_a_hung_list_blocks_neither_open_nor_close(
    module: FakeHidModule, transport: HidTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hid_library, "_GATE_WAIT_S", 0.05)
    freed, entered = threading.Event(), threading.Event()

    def hang() -> list[dict[str, object]]:
        entered.set()
        freed.wait(10)
        return []

    monkeypatch.setattr(module, "enumerate", hang)
    lister = threading.Thread(target=HidLibrary(module).enumerate)
    lister.start()
    entered.wait(10)
    try:
        with pytest.raises(TransportError, match="hangs"):
            make(module).open()
        transport.close()
        assert module.closed == 0
    finally:
        freed.set()
        lister.join()
