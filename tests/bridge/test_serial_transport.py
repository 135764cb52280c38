# SPDX-License-Identifier: Apache-2.0
"""What is special about serial ports; the rest is tests/contract/test_transport_contract.py."""

from __future__ import annotations

import errno
import os
import sys
import termios
import threading
import time
from collections.abc import Iterator

import pytest

from firmware_bridge.errors import (
    DeviceBusyError,
    DeviceGoneError,
    DevicePermissionError,
    TransportError,
)
from firmware_bridge.link import Link
from firmware_bridge.link_state import LinkState
from firmware_bridge.protocol.serial_framing import encode_report
from firmware_bridge.transport import serial_port
from firmware_bridge.transport.base import DeviceIdentity
from firmware_bridge.transport.serial_port import SerialTransport
from firmware_bridge.transport.virtual import VirtualKeyboard
from tests.contract.test_transport_contract import HELLO_REPORT
from tests.helpers.waiting import wait_until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals are POSIX")
if os.name == "posix":
    from tests.helpers.serial_board import SerialBoard

IDENTITY = DeviceIdentity("serial", 0x239A, 0x80F4, "E6605", "1-1:1.2")


@pytest.fixture
def board() -> Iterator[SerialBoard]:
    board = SerialBoard(VirtualKeyboard())
    yield board
    board.unplug()


@pytest.fixture
def transport(board: SerialBoard) -> Iterator[SerialTransport]:
    transport = SerialTransport(board.path, IDENTITY)
    transport.open()
    yield transport
    transport.close()


@pytest.mark.parametrize(
    "noise",
    [
        b"\r\nAuto-reload is on. Simply save files over USB to run them.\r\n>>> ",
        bytes(range(256)),
        encode_report(HELLO_REPORT)[:-9],
        encode_report(bytes(31)),
    ],
    ids=["REPL", "every byte", "half a packet", "another length"],
)
def test_an_answer_is_found_behind_noise(
    board: SerialBoard, transport: SerialTransport, noise: bytes
) -> None:
    board.say(noise)
    transport.write(HELLO_REPORT)
    answer = transport.read(5)
    assert answer is not None
    assert answer[:2] == HELLO_REPORT[:2]
    assert transport.read(0.05) is None


def test_several_reports_in_one_read_come_one_by_one(
    board: SerialBoard, transport: SerialTransport
) -> None:
    reports = [bytes((i,)) * 32 for i in range(0xA0, 0xB0)]
    board.say(b"".join(map(encode_report, reports)))
    assert [transport.read(5) for _ in reports] == reports


def test_what_came_before_the_port_was_opened_is_not_an_answer(board: SerialBoard) -> None:
    transport = SerialTransport(board.path, IDENTITY)
    board.say(encode_report(bytes(32)))
    transport.open()
    assert transport.read(0.05) is None
    transport.close()


def test_a_second_program_finds_the_port_busy(
    board: SerialBoard, transport: SerialTransport
) -> None:
    with pytest.raises(DeviceBusyError, match=r"holds /dev/"):
        SerialTransport(board.path, IDENTITY).open()
    transport.close()
    second = SerialTransport(board.path, IDENTITY)
    second.open()
    second.close()


def test_a_port_that_is_not_there_is_gone() -> None:
    with pytest.raises(DeviceGoneError):
        SerialTransport("/dev/no-such-port", IDENTITY).open()


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (errno.EACCES, DevicePermissionError),
        (errno.EBUSY, DeviceBusyError),
        (errno.EIO, DeviceGoneError),
    ],
)
def test_errors_of_open_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, code: int, kind: type[TransportError]
) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("serial.Serial", fail)
    with pytest.raises(kind):
        SerialTransport("/dev/ttyACM0", IDENTITY).open()


def test_a_board_that_goes_away_while_its_port_is_set_up_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise termios.error(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("serial.Serial", fail)
    with pytest.raises(DeviceGoneError):
        SerialTransport("/dev/ttyACM0", IDENTITY).open()


@pytest.mark.expected_log("does not close")
def test_a_driver_that_hangs_in_close_is_left_behind(
    transport: SerialTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serial_port, "_CLOSE_LIMIT_S", 0.05)
    freed = threading.Event()
    port = transport._port
    assert port is not None
    close = port.close
    monkeypatch.setattr(port, "close", lambda: (freed.wait(60), close()))
    start = time.monotonic()
    transport.close()
    assert time.monotonic() - start < 30  # the driver holds it for 60 s
    with pytest.raises(DeviceGoneError):
        transport.read(1)
    freed.set()
    wait_until(lambda: not port.is_open)


@pytest.mark.skipif(sys.platform != "linux", reason="a full pseudo-terminal blocks on Linux")
def test_a_board_that_takes_nothing_is_gone_after_the_write_limit(
    board: SerialBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serial_port, "_WRITE_LIMIT_S", 0.1)
    board.stand_still()
    transport = SerialTransport(board.path, IDENTITY)
    transport.open()
    start = time.monotonic()

    def fill() -> None:
        for _ in range(10_000):
            transport.write(bytes(range(160, 192)))

    with pytest.raises(DeviceGoneError, match="did not go out"):
        fill()
    assert time.monotonic() - start < 60  # of 10,000 that would wait for 0.1 s each
    transport.close()


def test_a_link_over_a_noisy_port_gets_ready(board: SerialBoard) -> None:
    link = Link(lambda: SerialTransport(board.path, IDENTITY), lambda event: None)
    board.say(b"boot\r\n" * 50)
    link.start()
    assert link.wait_for(LinkState.READY, 10)
    board.say(b"\xabTraceback (most recent call last):\r\n")
    time.sleep(0.1)
    assert link.state is LinkState.READY
    assert link.stop(10)
