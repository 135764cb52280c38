# SPDX-License-Identifier: Apache-2.0
"""`thock devices` and `thock monitor` tell what there is, and keep keys to themselves."""

from __future__ import annotations

from dataclasses import replace

import click
import pytest
from click.testing import CliRunner, Result

from app.cli import main
from app.commands.keyboards import find_chosen
from app.commands.monitor import MonitoredTransport, describe_report
from firmware_bridge.discovery.candidates import Candidate, Caution
from firmware_bridge.link import Link
from firmware_bridge.link_state import LinkState
from firmware_bridge.processes import ProcessTable
from firmware_bridge.protocol.frames import Frame, FrameType, encode
from firmware_bridge.transport.base import DeviceIdentity
from firmware_bridge.transport.virtual import VirtualKeyboard, VirtualTransport
from tests.helpers.others import FakeOthers

KEYBOARD = Candidate(
    path="/dev/hidraw3",
    identity=DeviceIdentity("hid", 0xFEED, 0x0001, "", "1-2", "Corne"),
    matches=True,
    reason="it has the raw HID usage FF60/61",
    report_length=32,
)
MOUSE = Candidate(
    path="/dev/hidraw4",
    identity=DeviceIdentity("hid", 0x1234, 0x5678, "", "1-3", "Mouse"),
    matches=False,
    reason="it has no raw HID usage",
    caution=Caution.NEVER,
)


class FixedList:
    def __init__(self, *found: Candidate) -> None:
        self.found = found

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def candidates(self) -> tuple[Candidate, ...]:
        return self.found


def devices(
    monkeypatch: pytest.MonkeyPatch, *arguments: str, found: tuple[Candidate, ...]
) -> Result:
    monkeypatch.setattr("app.commands.keyboards.system_watch", lambda _library: FixedList(*found))
    return CliRunner().invoke(main, ["devices", *arguments])


def test_matches_are_listed_with_their_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    output = devices(monkeypatch, found=(KEYBOARD, MOUSE)).output
    assert "yes Corne (hid feed:0001 at 1-2, /dev/hidraw3)" in output
    assert "it has the raw HID usage FF60/61" in output
    assert "no  Mouse (1234:5678): it has no raw HID usage" in output
    assert "caution list" not in output


def test_all_tells_why_the_others_do_not_match(monkeypatch: pytest.MonkeyPatch) -> None:
    output = devices(monkeypatch, "--all", found=(KEYBOARD, MOUSE)).output
    assert "no  Mouse" in output
    assert "it has no raw HID usage" in output
    assert "caution list: never" in output


def test_no_keyboard_is_said_to_be_none(monkeypatch: pytest.MonkeyPatch) -> None:
    output = devices(monkeypatch, found=(MOUSE,)).output
    assert "no keyboard for Thock among 1" in output
    assert "no  Mouse" in output


def test_asking_says_what_the_device_is(monkeypatch: pytest.MonkeyPatch) -> None:
    board = VirtualKeyboard()
    monkeypatch.setattr(
        "app.commands.devices.make_transport", lambda _library, _c, _locks: VirtualTransport(board)
    )
    monkeypatch.setattr("app.commands.devices.system_node_watch", lambda _watch: None)
    output = devices(monkeypatch, "--ask", found=(KEYBOARD,)).output
    assert "tier A: it has the Thock module; 128x32, 16 LEDs" in output


def test_a_program_that_has_the_keyboard_open_is_named_and_nobody_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    board = VirtualKeyboard()
    reports: list[bytes] = []
    transport = VirtualTransport(board)
    transport.write = reports.append  # type: ignore[method-assign]
    monkeypatch.setattr("app.commands.devices.make_transport", lambda *_arguments: transport)
    monkeypatch.setattr("app.commands.devices.system_node_watch", lambda _watch: FakeOthers("vial"))
    monkeypatch.setattr("app.commands.devices.watched", lambda inner, _candidate, _watch: inner)
    monkeypatch.setattr(ProcessTable, "who_has_open", lambda _table, _node: "vial")
    output = devices(monkeypatch, "--ask", found=(KEYBOARD,)).output
    assert "vial has it open" in output
    assert "asked: vial is using the keyboard" in output
    assert reports == []


def test_a_keyboard_is_chosen_by_place_serial_number_or_path() -> None:
    twin = replace(
        KEYBOARD, path="/dev/hidraw9", identity=replace(KEYBOARD.identity, location="1-4")
    )
    port = replace(
        MOUSE,
        path="/dev/ttyACM0",
        identity=DeviceIdentity("serial", 0x239A, 1, "A1", "1-5", "Board"),
    )
    found = [KEYBOARD, twin, MOUSE, port]
    assert find_chosen(found, "1-4") == twin.identity
    assert find_chosen(found, "/dev/hidraw3") == KEYBOARD.identity
    assert find_chosen(found, "A1") == port.identity
    for name in ("1-9", "1-3", "/dev/hidraw4"):
        with pytest.raises(click.ClickException, match="no device"):
            find_chosen(found, name)


def test_keys_and_text_are_hidden_unless_asked_for() -> None:
    payload = b"\x00\x00secret"
    report = encode(Frame(FrameType.TEXT, 1, 2, payload, first=True, last=True), 32)
    hidden = describe_report(report, show_content=False)
    assert "TEXT" in hidden
    assert "content hidden" in hidden
    assert payload.hex(" ") not in hidden
    assert payload.hex(" ") in describe_report(report, show_content=True)
    assert "not ours" in describe_report(bytes(32), show_content=False)


def test_a_monitored_keyboard_works_as_before(capsys: pytest.CaptureFixture[str]) -> None:
    board = VirtualKeyboard()
    link = Link(
        lambda: MonitoredTransport(VirtualTransport(board), show_content=False), lambda _event: None
    )
    link.start()
    assert link.wait_for(LinkState.READY, 5)
    board.press(0x04)
    link.stop()
    output = capsys.readouterr().out
    assert "-> HELLO" in output
    assert "<- ACK" in output
    assert "KEY" in output
