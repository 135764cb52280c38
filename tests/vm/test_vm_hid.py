# SPDX-License-Identifier: Apache-2.0
"""The HID transport on the kernel's hidraw: what hidapi hides, and what goes wrong on a desk."""

from __future__ import annotations

import importlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from firmware_bridge.discovery.detect import Finding, Tier, detect
from firmware_bridge.discovery.system import system_opener
from firmware_bridge.discovery.watch import DeviceWatch
from firmware_bridge.errors import DeviceBusyError, DeviceGoneError, DevicePermissionError
from firmware_bridge.firmware.virtual_core import BoardConfig
from firmware_bridge.transport.hid_library import HidLibrary
from tests.contract.test_transport_contract import HELLO_REPORT
from tests.helpers.waiting import wait_until
from tests.vm.boards import Board
from tests.vm.conftest import MakeBoard
from tests.vm.desk import LONG_S, hid_transport, wait_for_boards
from tests.vm.ports import UsbNames

NOBODY = 65534


@contextmanager
def as_user(uid: int) -> Iterator[None]:
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)


def test_each_interface_is_listed_with_its_reason(usb_board: Board, watch: DeviceWatch) -> None:
    wait_for_boards(watch, 1)
    wait_until(lambda: len(watch.candidates()) == 3)
    by_kind = {(c.identity.transport, c.interface): c for c in watch.candidates()}
    raw = by_kind["hid", 1]
    assert raw.matches
    assert raw.report_length == 32
    assert raw.identity.serial == "usb0001"
    assert raw.identity.location.startswith("usb-dummy_hcd.0-")
    keys = by_kind["hid", 0]
    assert not keys.matches
    assert "never opened" in keys.reason
    [port] = [c for c in watch.candidates() if c.identity.transport == "serial"]
    assert not port.matches
    assert "choose it" in port.reason


def test_the_tier_is_detected(board: Board, watch: DeviceWatch, library: HidLibrary) -> None:
    transport = hid_transport(library, wait_for_boards(watch, 1)[0])
    transport.open()
    verdict = detect(transport)
    transport.close()
    assert (verdict.tier, verdict.finding) == (Tier.MODULE, Finding.MODULE)
    assert verdict.capabilities is not None
    assert verdict.capabilities.uid == board.config.uid


def test_a_longer_report_is_taken_from_the_descriptor(
    make_board: MakeBoard, watch: DeviceWatch, library: HidLibrary
) -> None:
    board = make_board(UsbNames(serial="long01"), BoardConfig(report_length=64))
    board.plug()
    [candidate] = wait_for_boards(watch, 1)
    assert candidate.report_length == 64
    transport = hid_transport(library, candidate)
    transport.open()
    assert detect(transport).tier is Tier.MODULE
    transport.close()


def test_a_signal_during_a_read_loses_neither_device_nor_time(
    board: Board, watch: DeviceWatch, library: HidLibrary
) -> None:
    transport = hid_transport(library, wait_for_boards(watch, 1)[0])
    transport.open()
    handled: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: handled.append(number))
    try:
        # Seldom enough for a slow processor to look in between whether the device is there.
        signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
        start = time.monotonic()
        assert transport.read(1.0) is None  # on the main thread, which the signals go to
        took_s = time.monotonic() - start
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(handled) >= 3
    assert took_s >= 1.0
    transport.write(HELLO_REPORT)
    assert transport.read(LONG_S) is not None
    transport.close()


def test_unplugged_under_a_read(board: Board, watch: DeviceWatch, library: HidLibrary) -> None:
    transport = hid_transport(library, wait_for_boards(watch, 1)[0])
    transport.open()
    timer = threading.Timer(0.1, board.unplug)
    timer.start()
    start = time.monotonic()
    with pytest.raises(DeviceGoneError):
        transport.read(LONG_S)
    assert time.monotonic() - start < LONG_S / 2
    timer.join()
    with pytest.raises(DeviceGoneError):
        transport.open()


def test_without_permission(board: Board, watch: DeviceWatch, library: HidLibrary) -> None:
    candidate = wait_for_boards(watch, 1)[0]
    transport = hid_transport(library, candidate)
    opener = system_opener(library, watch)
    with as_user(NOBODY):
        with pytest.raises(DevicePermissionError, match=candidate.path) as caught:
            transport.open()
        # a node that has just appeared may still get its permissions
        with pytest.raises(DeviceGoneError):
            opener()
        time.sleep(1.1)
        with pytest.raises(DevicePermissionError):
            opener()
    assert "udev" in caught.value.advice
    assert opener().identity == candidate.identity


def test_an_interface_that_another_program_took_is_busy(
    usb_board: Board, watch: DeviceWatch, library: HidLibrary
) -> None:
    """Programs on libusb detach the kernel's driver: the hidraw node vanishes."""
    [candidate] = wait_for_boards(watch, 1)
    opener = system_opener(library, watch)
    opener()
    libusb = importlib.import_module("hid")
    [entry] = [e for e in libusb.enumerate(usb_board.names.vendor) if e["interface_number"] == 1]
    other = libusb.device()
    other.open_path(entry["path"])
    try:
        wait_for_boards(watch, 0)
        with pytest.raises(DeviceBusyError, match="took the keyboard"):
            opener()
    finally:
        other.close()
    wait_for_boards(watch, 1)
    assert opener().identity == candidate.identity


def test_typing_goes_on_while_the_raw_interface_is_open(
    board: Board, watch: DeviceWatch, library: HidLibrary
) -> None:
    transport = hid_transport(library, wait_for_boards(watch, 1)[0])
    transport.open()
    nodes = [
        f"/dev/input/{path.name}"
        for path in Path("/sys/class/input").glob("event*")
        if (path / "device/name").read_text().strip() == board.names.name
    ]
    events = os.open(nodes[0], os.O_RDONLY)
    board.press(0x04)
    board.release(0x04)
    # struct input_event: two longs, type and code u16, value s32
    data = os.read(events, 24 * 16)
    os.close(events)
    transport.close()
    assert (1, 30) in [
        (
            int.from_bytes(data[i + 16 : i + 18], "little"),
            int.from_bytes(data[i + 18 : i + 20], "little"),
        )
        for i in range(0, len(data), 24)
    ]  # EV_KEY, KEY_A
