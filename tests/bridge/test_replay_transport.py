# SPDX-License-Identifier: Apache-2.0
"""Recordings: private files that play back a link byte for byte, and name the line that differs."""

from __future__ import annotations

import json
import os
import stat
import sys
import time
from pathlib import Path

import pytest

from firmware_bridge.display.frame import TextFrame
from firmware_bridge.errors import DeviceGoneError, ReplayMismatchError
from firmware_bridge.events import BridgeEvent, KeyPressed, LinkReady
from firmware_bridge.link import Link
from firmware_bridge.link_state import LinkOptions, LinkState
from firmware_bridge.recorded_ids import recorded_session_ids
from firmware_bridge.transport.base import Transport
from firmware_bridge.transport.replay import (
    RecordingTransport,
    ReplayTransport,
    open_recording,
    read_recording,
)
from firmware_bridge.transport.virtual import VirtualKeyboard, VirtualTransport
from tests.helpers.transports import write_recording
from tests.helpers.waiting import wait_until

# A recording is played without its pauses, so no heartbeat may fall between its updates.
OPTIONS = LinkOptions(heartbeat_s=30.0, backoff_first_s=0.01, search_s=0.01)
ONE, TWO = b"\1" * 32, b"\2" * 32


def record_session(path: Path) -> list[BridgeEvent]:
    """Two connections: keys and text, then the plug is pulled and put back, then text again."""
    keyboard = VirtualKeyboard()
    events: list[BridgeEvent] = []
    link = Link(
        lambda: RecordingTransport(VirtualTransport(keyboard), path), events.append, options=OPTIONS
    )
    link.start()
    assert link.wait_for(LinkState.READY, 5)
    for key in range(4, 14):
        keyboard.press(key)
        keyboard.release(key)
    wait_until(lambda: link.stats.events == 20)
    link.show(TextFrame(("hello", "world")))
    wait_until(lambda: link.stats.shown_s == link.stats.shown_s)
    keyboard.unplug()
    wait_until(lambda: link.state is not LinkState.READY)
    keyboard.plug()
    assert link.wait_for(LinkState.READY, 5)
    wait_until(lambda: keyboard.display_taken)
    time.sleep(0.02)
    assert link.stop()
    return events


def play(path: Path, transport: ReplayTransport, frames: list[TextFrame]) -> list[BridgeEvent]:
    events: list[BridgeEvent] = []

    def open_again() -> Transport:
        return transport

    link = Link(
        open_again, events.append, client_source=recorded_session_ids(path), options=OPTIONS
    )
    link.start()
    assert link.wait_for(LinkState.READY, 5)
    wait_until(lambda: link.stats.events == 20)
    for frame in frames:
        link.show(frame)
    wait_until(lambda: link.stats.connections == 2)
    wait_until(lambda: link.stats.reports_out >= 8)
    time.sleep(0.02)
    assert link.stop()
    return events


def shape(events: list[BridgeEvent]) -> list[object]:
    return [
        (type(event), event.keycode) if isinstance(event, KeyPressed) else type(event)
        for event in events
    ]


def test_a_recorded_session_plays_back_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    recorded = record_session(path)
    transport = ReplayTransport(path)
    played = play(path, transport, [TextFrame(("hello", "world"))])
    assert shape(played) == shape(recorded)
    assert sum(isinstance(event, LinkReady) for event in played) == 2
    transport.assert_complete()


@pytest.mark.expected_log("ReplayMismatchError: line ")
def test_another_write_is_named_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    record_session(path)
    transport = ReplayTransport(path)
    link = Link(
        lambda: transport,
        lambda event: None,
        client_source=recorded_session_ids(path),
        options=OPTIONS,
    )
    link.show(TextFrame(("Hello", "world")))
    link.start()
    wait_until(lambda: link.state is LinkState.LOST)
    link.stop()
    lines = read_recording(path)
    first_text = [line.number for line in lines if line.direction == "out"][2]
    with pytest.raises(ReplayMismatchError, match=f"line {first_text}: another out"):
        transport.assert_complete()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no file modes")
def test_only_the_owner_can_read_a_recording(tmp_path: Path) -> None:
    path = tmp_path / "private.jsonl"
    for _ in range(2):
        transport = RecordingTransport(VirtualTransport(VirtualKeyboard()), path)
        transport.open()
        transport.close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [line.direction for line in read_recording(path)] == ["open", "open"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
@pytest.mark.parametrize("kind", ["link", "pipe", "device", "readable", "folder", "nowhere"])
def test_nothing_but_a_private_regular_file_is_written_to(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "recording"
    other = tmp_path / "other"
    other.write_text("precious")
    match kind:
        case "link":
            path.symlink_to(other)
        case "pipe":
            os.mkfifo(path)
        case "device":
            path = Path("/dev/full")
        case "readable":
            path = other
        case "folder":
            path.mkdir()
        case _:
            path = tmp_path / "none" / "recording"
    before = path.lstat() if kind != "nowhere" else None
    with pytest.raises(OSError, match=r".+"):
        open_recording(path)
    assert other.read_text() == "precious"
    if before is not None:
        assert path.lstat().st_mode == before.st_mode


def test_lines_have_time_direction_and_report(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    times = iter([1.0, 2.25])
    inner = VirtualTransport(VirtualKeyboard())
    transport = RecordingTransport(inner, path, clock=lambda: next(times))
    transport.open()
    transport.write(b"\1\2")
    transport.close()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines == [
        {"t": 1.0, "dir": "open", "report_length": 32},
        {"t": 2.25, "dir": "out", "hex": "0102" + "00" * 30},
    ]


@pytest.mark.expected_log("recording ended: ")
def test_a_full_disk_ends_the_recording_but_not_the_keyboard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyboard = VirtualKeyboard()
    transport = RecordingTransport(VirtualTransport(keyboard), tmp_path / "full.jsonl")
    transport.open()

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("firmware_bridge.transport.replay.os.write", full)
        transport.write(ONE)
    transport.write(ONE)
    transport.close()
    assert [line.direction for line in read_recording(tmp_path / "full.jsonl")] == ["open"]


def test_reads_wait_for_the_writes_before_them(tmp_path: Path) -> None:
    path = write_recording(tmp_path / "r.jsonl", ("out", ONE), ("in", TWO), ("in", ONE))
    transport = ReplayTransport(path)
    transport.open()
    assert transport.read(0.005) is None
    transport.write(ONE)
    assert transport.read(0.005) == TWO
    assert transport.read(0.005) == ONE
    assert transport.read(0.005) is None
    transport.assert_complete()
    transport.close()
    with pytest.raises(DeviceGoneError, match="end"):
        transport.open()


def test_a_write_may_come_before_reads_that_are_ready(tmp_path: Path) -> None:
    path = write_recording(tmp_path / "r.jsonl", ("in", TWO), ("out", ONE), ("in", ONE))
    transport = ReplayTransport(path)
    transport.open()
    transport.write(ONE)
    assert [transport.read(0.005), transport.read(0.005)] == [TWO, ONE]


def test_writes_out_of_order_and_past_the_end_are_mismatches(tmp_path: Path) -> None:
    path = write_recording(tmp_path / "r.jsonl", ("out", ONE), ("out", TWO))
    transport = ReplayTransport(path)
    transport.open()
    with pytest.raises(ReplayMismatchError, match="line 2"):
        transport.write(TWO)
    with pytest.raises(ReplayMismatchError, match="line 2"):
        transport.write(ONE)  # a replay that went wrong stays wrong
    transport = ReplayTransport(path)
    transport.open()
    transport.write(ONE)
    with pytest.raises(ReplayMismatchError, match="line 3: was not played"):
        transport.assert_complete()
    transport.write(TWO)
    with pytest.raises(ReplayMismatchError, match="after the end"):
        transport.write(TWO)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not json\n",
        "[]\n",
        '{"t": 0, "dir": "in", "hex": "00"}\n',
        '{"t": 0, "dir": "open"}\n',
        '{"t": 0, "dir": "open", "report_length": "x"}\n',
        '{"t": 0, "dir": "open", "report_length": 32}\n{"t": 0, "dir": "in", "hex": "0"}\n',
        '{"t": 0, "dir": "open", "report_length": 32}\n{"t": 0, "dir": "up"}\n',
    ],
)
def test_files_that_are_no_recordings_are_refused_by_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(text)
    with pytest.raises(ReplayMismatchError, match=r"line [12]: "):
        ReplayTransport(path)


def test_a_recording_without_hello_gives_no_ids(tmp_path: Path) -> None:
    path = write_recording(tmp_path / "r.jsonl", ("out", ONE))
    with pytest.raises(ReplayMismatchError, match="HELLO"):
        recorded_session_ids(path)
