# SPDX-License-Identifier: Apache-2.0
"""The module behind VIA's custom channel, and boards whose events have to be fetched."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from firmware_bridge.discovery.candidates import Candidate
from firmware_bridge.discovery.detect import Finding, Tier, detect
from firmware_bridge.discovery.opener import DeviceOpener, LightsOpener
from firmware_bridge.display.frame import TextFrame
from firmware_bridge.errors import DeviceGoneError
from firmware_bridge.events import BridgeEvent, EventsDropped, KeyPressed, KeyReleased
from firmware_bridge.firmware.virtual_core import BoardConfig
from firmware_bridge.link import Link
from firmware_bridge.link_state import LinkProblem, LinkState
from firmware_bridge.protocol.capabilities import Feature
from firmware_bridge.protocol.frames import Frame, FrameType, decode, encode
from firmware_bridge.protocol.messages import Hello, Nak, NakReason
from firmware_bridge.via.baseline import BaselineStore
from firmware_bridge.via.channel import ViaChannelTransport
from firmware_bridge.via.protocol import ForbiddenRequestError
from firmware_bridge.via.stock_lights import StockLights
from tests.helpers.polled_core import PolledCore
from tests.helpers.qmk_board import FakeBoard
from tests.helpers.qmk_build import CHANNEL, OLED, RGB
from tests.helpers.session_lab import SessionLab, ended, from_keyboard, lose
from tests.helpers.transports import ScriptedTransport
from tests.helpers.via_lab import transport_of
from tests.helpers.via_peers import KeychronBoard, OldViaBoard, ViaBoard, VialBoard
from tests.helpers.waiting import wait_until

HELLO = encode(Frame(FrameType.HELLO, 7, 0, Hello(1, 1, 1).pack()), 32)


def test_only_the_first_byte_of_a_frame_changes_on_the_way() -> None:
    written: list[bytes] = []
    inner = ScriptedTransport(lambda report: written.append(report) or [report])  # type: ignore[func-returns-value]
    transport = ViaChannelTransport(inner)
    transport.write(HELLO)
    assert written == [b"\x08" + HELLO[1:]]
    assert transport.read(1) == HELLO


@pytest.mark.parametrize("report", [b"\x07\x4c", b"\xff\x4c", b"\x08\x03\x4c", b"\x12\x4c"])
def test_other_reports_pass_as_they_are(report: bytes) -> None:
    inner = ScriptedTransport(lambda _: [report.ljust(32, b"\1")])
    transport = ViaChannelTransport(inner)
    transport.write(HELLO)
    expected = b"\xe7" if report[0] == 0x07 else report[:1]
    assert transport.read(1) == expected + report.ljust(32, b"\1")[1:]


def test_nothing_but_frames_goes_out() -> None:
    transport = ViaChannelTransport(ScriptedTransport(lambda _: []))
    for report in (b"\x09\x03", b"\x05\0", b"\xaa\1"):
        with pytest.raises(ForbiddenRequestError):
            transport.write(report)


def test_a_keychron_board_without_the_module_is_told_apart() -> None:
    peer = KeychronBoard()
    link = Link(lambda: ViaChannelTransport(ScriptedTransport(peer)), lambda event: None)
    link.start()
    wait_until(lambda: link.problem is LinkProblem.NO_MODULE)
    assert link.stop()
    assert not peer.trapped
    assert {report[:2] for report in peer.writes} == {b"\x08\x4c"}


class ChannelBoard:
    """The QMK module as it is built for Keychron boards, behind the reports of a real via.c."""

    def __init__(self, board: FakeBoard) -> None:
        self._board = board
        self._lock = threading.Lock()

    def __call__(self, report: bytes) -> Iterator[bytes]:
        with self._lock:
            self._board.hid(report)
            answers = [*self._board.sent, *self._board.via]
            self._board.sent.clear()
            self._board.via.clear()
        yield from answers

    def key(self, row: int, column: int, keycode: int, pressed: bool) -> None:
        with self._lock:
            self._board.key(row, column, keycode, pressed)

    def panel(self) -> bytes:
        with self._lock:
            return self._board.panel()


def test_the_link_drives_the_module_through_the_channel() -> None:
    events: list[BridgeEvent] = []
    with FakeBoard((*CHANNEL, *OLED, *RGB), channel=True) as board:
        board.start()
        keyboard = ChannelBoard(board)
        dark = keyboard.panel()
        link = Link(lambda: ViaChannelTransport(ScriptedTransport(keyboard)), events.append)
        link.start()
        try:
            assert link.wait_for(LinkState.READY, 20)
            capabilities = link.capabilities
            assert capabilities is not None
            assert Feature.POLL in capabilities.features
            link.show(TextFrame(("through VIA",)))
            for column in range(5):
                keyboard.key(0, column, 4 + column, True)
                keyboard.key(0, column, 4 + column, False)
            wait_until(lambda: sum(isinstance(e, KeyReleased) for e in events) == 5)
            wait_until(lambda: keyboard.panel() != dark)
        finally:
            assert link.stop()
    pressed = [event.keycode for event in events if isinstance(event, KeyPressed)]
    assert pressed == [4, 5, 6, 7, 8]
    assert link.stats.dropped == link.stats.foreign == 0


class KeychronWithModule(KeychronBoard):
    """The module behind the custom values of a board whose maker owns via_command_kb."""

    def __init__(self) -> None:
        super().__init__()
        self._answers: list[bytes] = []
        self._core = PolledCore(BoardConfig(), self._take)

    def _take(self, report: bytes) -> bool:
        self._answers.append(report)
        return True

    def answer(self, data: bytearray) -> bool:
        command = data[0]
        if command in (7, 8) and data[1] == 0x4C:
            if self._core.receive(b"\xe7" + data[1:], 0):
                data[:] = self._answers.pop()
                data[0] = command
                return True
            data[0] = 0xFF
            return True
        return super().answer(data)


@pytest.mark.parametrize("known", [False, True])
def test_a_board_with_the_module_behind_its_custom_values_is_found(known: bool) -> None:
    peer = KeychronWithModule()
    verdict = detect(transport_of(peer), via_first=not known)
    assert verdict.tier is Tier.MODULE
    assert verdict.via_channel
    assert verdict.capabilities is not None
    assert not peer.trapped
    assert not detect(transport_of(peer), hello_allowed=False).via_channel


@pytest.mark.parametrize("make", [lambda: ViaBoard(13), KeychronBoard, OldViaBoard, VialBoard])
def test_a_board_without_the_module_stays_one_for_lights(make: Callable[[], ViaBoard]) -> None:
    peer = make()
    verdict = detect(transport_of(peer))
    assert (verdict.tier, verdict.finding) == (Tier.LIGHTS, Finding.NO_MODULE)
    in_channel = [report for report in peer.writes if report[:2] == b"\x08\x4c"]
    assert bool(in_channel) is (peer.version >= 11)


def test_the_opener_gives_a_link_the_way_through_the_channel() -> None:
    peer = KeychronWithModule()
    candidate = Candidate("/dev/hidraw1", transport_of(peer).identity, True, "", 1, 32)
    opener = DeviceOpener(lambda: [candidate], lambda _: transport_of(peer))
    link = Link(opener, lambda event: None)
    link.start()
    assert link.wait_for(LinkState.READY, 10)
    assert link.stop()
    assert not peer.trapped


def test_the_opener_finds_keyboards_for_lights_too(tmp_path: Path) -> None:
    node = tmp_path / "hidraw1"
    node.touch()
    peers = {str(node): ViaBoard(12), str(tmp_path / "hidraw2"): KeychronWithModule()}
    candidates = [
        Candidate(path, transport_of(peer, path).identity, True, "", 1, 32)
        for path, peer in peers.items()
    ]

    def make(candidate: Candidate) -> ScriptedTransport:
        return transport_of(peers[candidate.path], candidate.identity.location)

    opener = DeviceOpener(lambda: candidates, make)
    find_lights = LightsOpener(lambda: opener.with_lights, make)
    with pytest.raises(DeviceGoneError, match="No keyboard with lights"):
        find_lights()  # nobody was asked yet
    assert opener().identity == candidates[1].identity
    lights = StockLights(find_lights, lambda event: None, BaselineStore(tmp_path / "lights.json"))
    lights.start()
    assert lights.wait_for(LinkState.READY, 10)
    assert lights.stop()
    count = 0
    moved = str(tmp_path / "hidraw9")  # plugged in anew
    peers[moved] = peers[str(node)]
    candidates[0] = replace(candidates[0], path=moved)
    candidates.pop(1)
    for _ in range(3):
        with pytest.raises(DeviceGoneError, match="no Thock module"):
            opener()
        assert find_lights().identity == candidates[0].identity
        count = count or len(peers[moved].writes)
        assert len(peers[moved].writes) == count  # it is not asked again
    candidates.clear()
    with pytest.raises(DeviceGoneError):
        opener()
    with pytest.raises(DeviceGoneError, match="No keyboard with lights"):
        find_lights()


class PolledLab(SessionLab):
    """A session with a board that sends events as answers only."""

    def connect(self) -> None:
        self.polled = PolledCore(self.config, self._send)
        self.core = self.polled.core
        super().connect()

    def _receive(self, report: bytes) -> None:
        self.polled.receive(report, self.ms)


@pytest.fixture
def lab() -> PolledLab:
    lab = PolledLab()
    lab.settle()
    assert lab.session.ready
    return lab


def polls(lab: PolledLab) -> int:
    count = sum(frame.type is FrameType.POLL for frame in lab.sent)
    lab.sent.clear()
    return count


def test_events_are_fetched_in_order(lab: PolledLab) -> None:
    for keycode in range(1, 20):
        lab.press(keycode)
        lab.run(0.02)
    pressed = [event.keycode for event in lab.events if isinstance(event, KeyPressed)]
    assert pressed == list(range(1, 20))
    assert lab.stats.dropped == lab.stats.stale == 0


def test_the_board_is_asked_often_while_somebody_types_and_seldom_else(lab: PolledLab) -> None:
    lab.run(3)
    polls(lab)
    lab.run(1)
    assert polls(lab) == pytest.approx(10, abs=2)
    lab.press(4)
    lab.run(0.05)
    polls(lab)
    lab.run(1)
    assert polls(lab) == pytest.approx(100, abs=10)
    lab.run(2)
    polls(lab)
    lab.run(1)
    assert polls(lab) == pytest.approx(10, abs=2)


def test_polling_leaves_room_for_heartbeat_and_display(lab: PolledLab) -> None:
    for i in range(100):
        lab.press(1 + i % 50)
        lab.output.show(TextFrame((f"line {i}",)), lab.now)
        lab.run(0.05)
    assert lab.core.subscribed
    lab.run(0.2)
    kinds = [frame.type for frame in lab.sent]
    assert kinds.count(FrameType.TEXT) > 50
    assert kinds.count(FrameType.SUBSCRIBE) == pytest.approx(5, abs=2)


def test_a_lost_answer_is_a_gap_and_a_late_one_is_none(lab: PolledLab) -> None:
    lab.press(1)
    held: list[bytes] = []
    lab.to_host = lambda report: held.append(report) or []  # type: ignore[func-returns-value]
    lab.run(0.15)
    assert len(held) == 1
    lab.to_host = lambda report: [report]
    lab.give(held[0])
    lab.press(2)
    lab.run(0.1)
    lab.press(3)
    lab.to_host = lose
    lab.run(0.1)
    lab.to_host = lambda report: [report]
    lab.press(4)
    lab.run(0.5)
    keys = [event.keycode for event in lab.events if isinstance(event, KeyPressed)]
    assert keys == [1, 2, 4]
    assert EventsDropped(1) in lab.events


def test_a_board_that_forgot_the_subscription_is_subscribed_again(lab: PolledLab) -> None:
    seqs = [frame.seq for frame in lab.sent]
    lab.to_host = lose
    lab.run(0.15)
    (poll,) = [
        frame for frame in lab.sent if frame.type is FrameType.POLL and frame.seq not in seqs
    ][:1]
    lab.to_host = lambda report: [report]
    lab.give(from_keyboard(lab, Nak(FrameType.POLL, NakReason.NOT_SUBSCRIBED), poll.seq))
    assert not lab.session.ready
    lab.settle()
    assert lab.session.ready


def test_a_board_that_refuses_to_be_asked_is_incompatible(lab: PolledLab) -> None:
    def refuse(report: bytes) -> list[bytes]:
        frame = decode(report)
        if frame.type is FrameType.ACK and frame.payload == bytes((FrameType.POLL,)):
            return [from_keyboard(lab, Nak(FrameType.POLL, NakReason.TYPE), frame.seq)]
        return [report]

    lab.to_host = refuse
    assert ended(lab, 1) is LinkProblem.INCOMPATIBLE
