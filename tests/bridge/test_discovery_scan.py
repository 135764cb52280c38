# SPDX-License-Identifier: Apache-2.0
"""From what the system lists to candidates, each with its reason."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from firmware_bridge.discovery import linux_hid
from firmware_bridge.discovery.candidates import (
    Candidate,
    Caution,
    find_board,
    has_own_serial,
    is_same_board,
)
from firmware_bridge.discovery.caution import load_caution_list
from firmware_bridge.discovery.hid_scan import HidScan
from firmware_bridge.discovery.serial_scan import SerialScan, list_serial_ports
from firmware_bridge.transport.base import DeviceIdentity
from firmware_bridge.transport.hid_descriptor import Collection, parse_report_descriptor
from tests.helpers.fake_hid import entry
from tests.vm.descriptors import BOOT_KEYBOARD, raw_hid

UNKNOWN = (0, 0)
NUMBERED = Collection(0xFF60, 0x61, 32, 32, has_report_ids=True)
LOPSIDED = Collection(0xFF60, 0x61, 32, 64, has_report_ids=False)
SHORT = Collection(0xFF60, 0x61, 8, 8, has_report_ids=False)


def scan(
    *entries: dict[str, Any], collections: list[Collection] | None = None, location: str = "usb-1"
) -> list[Candidate]:
    return HidScan(
        lambda: entries, load_caution_list(), lambda node: collections or [], lambda node: location
    )()


@pytest.mark.parametrize(
    ("row", "collections", "length", "reason"),
    [
        (entry("a"), parse_report_descriptor(raw_hid()), 32, "32-byte reports"),
        (entry("a"), parse_report_descriptor(raw_hid(64)), 64, "64-byte reports"),
        (entry("a"), [], 32, "raw HID interface"),
        (entry("a", UNKNOWN), [], 0, "does not tell"),
        (entry("a", UNKNOWN, interface_number=0), [], 0, "interface 0"),
        (entry("a", UNKNOWN, interface_number=-1), [], 0, "does not tell"),
        (entry("a", (1, 6)), parse_report_descriptor(BOOT_KEYBOARD), 0, "never opened"),
        (entry("a", (0xC, 1)), [], 0, "usage 000C/01"),
        (entry("a"), [NUMBERED], 0, "numbered"),
        (entry("a"), [LOPSIDED], 0, "32 and 64"),
        (entry("a"), [SHORT], 0, "8 and 8"),
        (entry("a", (0xFFAB, 0xAB)), [], 0, "caution list: libhmk"),
    ],
)
def test_what_matches_and_why(
    row: dict[str, Any], collections: list[Collection], length: int, reason: str
) -> None:
    [candidate] = scan(row, collections=collections)
    assert candidate.matches == (length > 0)
    assert candidate.report_length == length
    assert reason in candidate.reason


def test_off_linux_interface_1_is_tried_where_no_usages_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    [candidate] = scan(entry("a", UNKNOWN))
    assert candidate.matches
    assert candidate.report_length == 32


def test_a_path_that_is_listed_twice_is_one_candidate() -> None:
    rows = [entry("a", (0xC, 1)), entry("a"), entry("a"), entry("b")]
    assert [(c.path, c.matches) for c in scan(*rows)] == [("a", True), ("b", True)]


def test_who_a_device_is_does_not_depend_on_its_path() -> None:
    [one] = scan(entry("/dev/hidraw1"))
    [other] = scan(entry("/dev/hidraw7"))
    assert one.identity == other.identity
    assert one.identity == DeviceIdentity("hid", 0xFEED, 0x6061, "0", "usb-1", "Board")


def test_missing_strings_are_empty() -> None:
    [candidate] = scan(entry("a", serial_number=None, product_string=None))
    assert (candidate.identity.serial, candidate.identity.product) == ("", "")


def test_windows_gives_the_place_in_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    path = (
        r"\\?\HID#VID_FEED&PID_6061&MI_01#8&1C2D3E4F&0&0000#{4d1e55b2-f16f-11cf-88cb-001111000030}"
    )
    [candidate] = scan(entry(path), location="")
    assert candidate.identity.location == "8&1c2d3e4f&0&0000"


@pytest.mark.parametrize(
    ("vendor", "product", "caution", "matches"),
    [
        (0x3434, 0x0121, Caution.NO_HELLO, True),
        (0x3434, 0xD026, Caution.NEVER, False),
        (0x362D, 0xD030, Caution.NEVER, False),
        (0x362D, 0x0100, Caution.NONE, True),
    ],
)
def test_the_caution_list_is_applied(
    vendor: int, product: int, caution: Caution, matches: bool
) -> None:
    [candidate] = scan(entry("a", vendor_id=vendor, product_id=product))
    assert (candidate.caution, candidate.matches) == (caution, matches)
    assert ("caution list" in candidate.reason) == (caution is not Caution.NONE)


def test_every_row_of_the_caution_list_has_a_reason_and_a_source() -> None:
    rows = load_caution_list()
    assert rows
    assert all(len(row.why) > 20 and len(row.source) > 20 for row in rows)


@pytest.mark.parametrize(
    "row",
    [
        'vendor = 1\naction = "sometimes"',
        'vendor = 1\naction = "never"\ncolour = 3',
        'action = "never"',
        "vendor = 1",
    ],
)
def test_a_malformed_row_is_named(row: str) -> None:
    with pytest.raises(ValueError, match="row 1"):
        load_caution_list(f'[[device]]\nwhy = "x"\nsource = "y"\n{row}\n')


def identity(serial: str = "", location: str = "usb-1", product: int = 1) -> DeviceIdentity:
    return DeviceIdentity("hid", 0xFEED, product, serial, location)


def test_a_board_with_its_own_serial_number_is_known_at_any_place() -> None:
    assert is_same_board(identity("E6605"), identity("E6605", "usb-9"))
    assert not is_same_board(identity("E6605"), identity("E6606"))
    assert not is_same_board(identity("E6605"), identity("E6605", product=2))


@pytest.mark.parametrize("serial", ["", "0", "vial:f64c2b3c"])
def test_boards_that_share_their_serial_number_are_known_by_their_place(serial: str) -> None:
    assert not has_own_serial(identity(serial))
    assert is_same_board(identity(serial), identity(serial))
    assert not is_same_board(identity(serial), identity(serial, "usb-9"))


def test_where_two_boards_came_with_one_serial_number_the_place_decides() -> None:
    here, there, elsewhere = (identity("A1", f"usb-{i}") for i in range(3))
    assert find_board(here, [there, here]) == here
    assert find_board(here, [there]) == there
    assert find_board(here, [there, elsewhere]) is None
    assert find_board(here, []) is None


@dataclass
class Port:
    """As pyserial describes a port."""

    device: str
    vid: int | None = 0x239A
    pid: int | None = 0x80F4
    serial_number: str | None = "E660"
    location: str | None = "1-1.2:1.0"
    product: str | None = "Pico"
    interface: str | None = None


def test_console_and_data_port_of_one_board_are_told_apart() -> None:
    console = Port("/dev/ttyACM0", interface="CircuitPython CDC control")
    data = Port("/dev/ttyACM1", location="1-1.2:1.2", interface="CircuitPython CDC2 control")
    first, second = SerialScan(lambda: [console, data])()
    assert (first.matches, second.matches) == (False, True)
    assert "console" in first.reason
    assert (first.interface, second.interface) == (0, 2)
    assert first.identity != second.identity


def test_ports_that_do_not_say_what_they_are_have_to_be_chosen() -> None:
    nameless = Port("/dev/ttyACM0", serial_number=None, location=None, product=None)
    built_in = Port("/dev/ttyS0", vid=None)
    [candidate] = SerialScan(lambda: [nameless, built_in])()
    assert not candidate.matches
    assert "choose it" in candidate.reason
    assert candidate.interface == -1


def test_the_ports_of_this_computer_can_be_listed() -> None:
    assert isinstance(list(list_serial_ports()), list)


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    """/sys with one raw HID interface, one program on libusb and one serial port."""
    device = tmp_path / "class/hidraw/hidraw3/device"
    device.mkdir(parents=True)
    (device / "report_descriptor").write_bytes(raw_hid())
    (device / "uevent").write_text(
        "DRIVER=hid-generic\nHID_ID=0003:0000FEED:00006061\nHID_NAME=x\n"
        "HID_PHYS=usb-0000:00:14.0-1.2/input1\nHID_UNIQ=0\n"
    )
    (tmp_path / "class/tty/ttyACM0").mkdir(parents=True)
    (tmp_path / "class/tty/tty1").mkdir()
    usb = tmp_path / "devices/usb1/1-1"
    (usb / "1-1:1.1").mkdir(parents=True)
    (usb / "idVendor").write_text("feed\n")
    (usb / "idProduct").write_text("6061\n")
    driver = tmp_path / "bus/usb/drivers/usbfs"
    driver.mkdir(parents=True)
    (driver / "1-1:1.1").symlink_to(usb / "1-1:1.1")
    (driver / "bind").write_text("")
    return tmp_path


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links")
def test_linux_tells_lengths_place_and_other_holders(sysfs: Path) -> None:
    assert linux_hid.read_collections("/dev/hidraw3", sysfs)[0].output_bytes == 32
    assert linux_hid.read_location("/dev/hidraw3", sysfs) == "usb-0000:00:14.0-1.2"
    assert linux_hid.device_names(sysfs) == {"hidraw3", "ttyACM0"}
    assert linux_hid.is_claimed(0xFEED, 0x6061, sysfs)
    assert not linux_hid.is_claimed(0xFEED, 0x6062, sysfs)


def test_linux_tells_nothing_of_nodes_that_are_not_there(tmp_path: Path) -> None:
    assert linux_hid.read_collections("/dev/hidraw3", tmp_path) == []
    assert linux_hid.read_location("/dev/hidraw3", tmp_path) == ""
    assert linux_hid.device_names(tmp_path) == frozenset()
    assert not linux_hid.is_claimed(1, 1, tmp_path)


def test_a_damaged_descriptor_tells_nothing(sysfs: Path) -> None:
    (sysfs / "class/hidraw/hidraw3/device/report_descriptor").write_bytes(raw_hid()[:5])
    assert linux_hid.read_collections("/dev/hidraw3", sysfs) == []
