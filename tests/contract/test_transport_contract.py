# SPDX-License-Identifier: Apache-2.0
"""What every transport must do (firmware_bridge/transport/base.py).

A new transport adds a maker to MAKERS: it gives a Rig whose device answers HELLO_REPORT with one
report, once opened, and can be taken away.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from firmware_bridge.errors import DeviceGoneError
from firmware_bridge.protocol.frames import Frame, FrameType, encode
from firmware_bridge.protocol.messages import Hello
from firmware_bridge.transport.base import DeviceIdentity, Transport
from firmware_bridge.transport.replay import RecordingTransport, ReplayTransport
from firmware_bridge.transport.virtual import VirtualKeyboard, VirtualTransport
from tests.helpers.transports import write_recording


def hello(seq: int) -> bytes:
    return encode(Frame(FrameType.HELLO, 5, seq, Hello(0xCAFE, 1, 1).pack()), 32)


# One whose last byte, the high byte of the CRC, is 0: the padding of a shorter report restores it.
HELLO_REPORT = next(report for report in map(hello, range(256)) if report[-1] == 0)


@dataclass
class Rig:
    transport: Transport
    take_away: Callable[[], None]
    clean_up: Callable[[], None] = lambda: None


def virtual(folder: Path) -> Rig:
    keyboard = VirtualKeyboard()
    return Rig(VirtualTransport(keyboard), keyboard.unplug)


def recorded(folder: Path) -> Rig:
    keyboard = VirtualKeyboard()
    inner = VirtualTransport(keyboard)
    return Rig(RecordingTransport(inner, folder / "traffic.jsonl"), keyboard.unplug)


def replayed(folder: Path) -> Rig:
    recording = folder / "traffic.jsonl"
    rig = recorded(folder)
    rig.transport.open()
    for _ in range(3):
        rig.transport.write(HELLO_REPORT)
        assert rig.transport.read(30.0) is not None
    rig.take_away()
    with pytest.raises(DeviceGoneError):
        rig.transport.read(30.0)
    rig.transport.close()
    transport = ReplayTransport(recording)

    def take_away() -> None:
        for _ in range(3):
            transport.write(HELLO_REPORT)
            transport.read(30.0)

    return Rig(transport, take_away)


def scripted_replay(folder: Path) -> Rig:
    """A recording that ends without the device going away."""
    path = write_recording(folder / "short.jsonl", ("out", HELLO_REPORT), ("in", bytes(32)))
    return Rig(
        ReplayTransport(path), lambda: pytest.skip("this recording has no end of the device")
    )


def serial(folder: Path) -> Rig:
    """A pseudo-terminal; tests/vm has the same tests on real CDC-ACM and on hidraw."""
    if os.name != "posix":
        pytest.skip("pseudo-terminals are POSIX")
    from tests.helpers.serial_board import SerialBoardTransport

    keyboard = VirtualKeyboard()
    transport = SerialBoardTransport(keyboard)
    return Rig(transport, keyboard.unplug, transport.close)


MAKERS: list[Callable[[Path], Rig]] = [virtual, recorded, replayed, scripted_replay, serial]


@pytest.fixture(params=MAKERS, ids=lambda maker: maker.__name__)
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rig]:
    maker: Callable[[Path], Rig] = request.param
    rig = maker(tmp_path)
    yield rig
    rig.clean_up()


def test_identity_and_report_length_are_known_before_open(rig: Rig) -> None:
    identity = rig.transport.identity
    assert isinstance(identity, DeviceIdentity)
    assert identity.transport
    length = rig.transport.report_length
    assert length == 32
    rig.transport.open()
    assert rig.transport.report_length == length
    assert rig.transport.identity == identity
    rig.transport.close()


def test_opening_what_is_open_changes_nothing(rig: Rig) -> None:
    rig.transport.open()
    rig.transport.write(HELLO_REPORT)
    rig.transport.open()
    assert rig.transport.read(30.0) is not None  # what had come is still there
    rig.transport.close()


def test_a_report_goes_out_and_its_answer_comes_in_whole(rig: Rig) -> None:
    rig.transport.open()
    rig.transport.write(HELLO_REPORT)
    answer = rig.transport.read(30.0)
    assert answer is not None
    assert len(answer) == rig.transport.report_length
    rig.transport.close()


def test_short_reports_are_padded_with_zeros(rig: Rig) -> None:
    rig.transport.open()
    rig.transport.write(HELLO_REPORT[:-1])
    assert rig.transport.read(30.0) is not None
    rig.transport.close()


def test_empty_and_long_reports_are_refused(rig: Rig) -> None:
    rig.transport.open()
    for length in (0, rig.transport.report_length + 1):
        with pytest.raises(ValueError, match="report"):
            rig.transport.write(bytes(length))
    rig.transport.close()


def test_read_waits_as_long_as_it_was_told(rig: Rig) -> None:
    rig.transport.open()
    start = time.monotonic()
    assert rig.transport.read(0.05) is None
    assert (
        0.045 <= time.monotonic() - start < 25.0
    )  # less than if milliseconds were taken for seconds
    rig.transport.close()


def test_wake_ends_a_read_from_another_thread(rig: Rig) -> None:
    if not rig.transport.wakeable:
        pytest.skip("this transport has to be polled")
    rig.transport.open()
    timer = threading.Timer(0.05, rig.transport.wake)
    timer.start()
    start = time.monotonic()
    assert rig.transport.read(60.0) is None
    assert time.monotonic() - start < 30.0
    timer.join()
    rig.transport.close()


def test_wake_before_a_read_counts_once(rig: Rig) -> None:
    if not rig.transport.wakeable:
        pytest.skip("this transport has to be polled")
    rig.transport.wake()  # before open: harmless
    rig.transport.open()
    rig.transport.wake()
    rig.transport.wake()
    start = time.monotonic()
    assert rig.transport.read(60.0) is None
    assert time.monotonic() - start < 30.0
    assert rig.transport.read(0.05) is None
    assert time.monotonic() - start >= 0.045
    rig.transport.close()
    rig.transport.wake()  # after close: harmless


def test_wake_loses_no_report(rig: Rig) -> None:
    rig.transport.open()
    rig.transport.write(HELLO_REPORT)
    rig.transport.wake()
    first = rig.transport.read(30.0)
    second = rig.transport.read(0.05 if first is not None else 30.0)
    assert (first is None) != (second is None)
    rig.transport.close()


def test_a_device_that_went_away_raises_at_every_call_and_closes(rig: Rig) -> None:
    rig.transport.open()
    rig.take_away()
    for _ in range(2):
        with pytest.raises(DeviceGoneError):
            rig.transport.read(30.0)
        with pytest.raises(DeviceGoneError):
            rig.transport.write(HELLO_REPORT)
    rig.transport.close()
    rig.transport.close()


def test_close_is_safe_before_open_and_twice(rig: Rig) -> None:
    rig.transport.close()
    rig.transport.open()
    rig.transport.close()
    rig.transport.close()


def test_a_closed_transport_raises_instead_of_waiting(rig: Rig) -> None:
    rig.transport.open()
    rig.transport.close()
    with pytest.raises(DeviceGoneError):
        rig.transport.read(30.0)
    with pytest.raises(DeviceGoneError):
        rig.transport.write(HELLO_REPORT)
