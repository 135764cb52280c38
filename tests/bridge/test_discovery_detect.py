# SPDX-License-Identifier: Apache-2.0
"""Tiers: each device that others built is told apart, and none gets a byte that it could misunderstand."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from firmware_bridge.discovery.candidates import Candidate, Caution
from firmware_bridge.discovery.caution import load_caution_list
from firmware_bridge.discovery.detect import Finding, Tier, detect
from firmware_bridge.discovery.opener import DeviceOpener
from firmware_bridge.errors import DeviceBusyError, DeviceGoneError
from firmware_bridge.neighbours import Sign
from firmware_bridge.protocol.frames import MAGIC, checksum
from firmware_bridge.transport.virtual import VirtualKeyboard, VirtualTransport
from firmware_bridge.via.protocol import Command
from tests.helpers.others import FakeOthers
from tests.helpers.peers import PEERS, ModulePeer, PeerRow, PeerTransport, row_of
from tests.helpers.via_peers import FORBIDDEN, ForbiddenWriteError


@pytest.fixture(params=PEERS, ids=[peer.name for peer in PEERS])
def peer(request: pytest.FixtureRequest) -> PeerRow:
    row: PeerRow = request.param
    return row


def hello_allowed(peer: PeerRow) -> bool:
    rows = [row for row in load_caution_list() if row.fits(peer.vendor, 1, 0xFF60, 0x61)]
    return peer.chosen or not rows or rows[0].action is Caution.NONE


def test_each_device_is_what_its_row_says(peer: PeerRow) -> None:
    transport = PeerTransport(peer)
    verdict = detect(transport, hello_allowed=hello_allowed(peer), clock=transport.clock)
    assert verdict.tier is Tier(peer.tier)
    assert verdict.finding is Finding[peer.finding]
    assert verdict.via_version == peer.via
    assert verdict.is_vial == peer.is_vial
    assert verdict.is_final == (not peer.again)
    assert (verdict.capabilities is not None) == peer.module
    assert verdict.reason
    assert transport.now <= 1.1


def test_only_the_version_request_of_via_and_frames_of_ours_go_out(peer: PeerRow) -> None:
    transport = PeerTransport(peer)
    detect(transport, clock=transport.clock)
    version_request = bytes((Command.GET_VERSION,)) + bytes(31)
    for report in transport.written:
        in_channel = report[:2] == b"\x08\x4c" and peer.via is not None and peer.via >= 11
        assert report == version_request or report.startswith(MAGIC) or in_channel
    # whoever answers the first request in another language gets no second one
    if peer.finding == "FOREIGN":
        assert transport.written == [version_request]


def test_the_trap_closes_on_every_row(peer: PeerRow) -> None:
    forbidden = {0x05, 0x06, 0x09, 0x0A, 0x0B, 0x0F, 0x10} | {int(b, 16) for b in peer.forbidden}
    assert forbidden - set(FORBIDDEN) == {int(b, 16) for b in peer.forbidden}
    for first in forbidden:
        transport = PeerTransport(peer)
        with pytest.raises(ForbiddenWriteError):
            transport.write(bytes((first,)) + bytes(peer.report_length - 1))
        assert transport.peer.trapped


@pytest.mark.parametrize(
    "name", ["VIA 12", "Thock on VIA 12", "Thock on plain QMK", "silent receiver"]
)
def test_answers_to_other_programs_do_not_mislead(name: str) -> None:
    """The VIA app or another Thock has the same device open, and every answer comes to all."""
    peer = row_of(name)
    transport = PeerTransport(peer)
    other_thock = bytes.fromhex("e74c1207") + bytes(28)
    via_app = bytes.fromhex("080301") + bytes(29)
    transport.noise.extend([other_thock, other_thock] if peer.via is None else [via_app])
    verdict = detect(transport, clock=transport.clock)
    assert (verdict.tier, verdict.finding) == (Tier(peer.tier), Finding[peer.finding])


def test_nobody_is_asked_while_another_program_talks() -> None:
    transport = PeerTransport(row_of("Thock on VIA 12"))
    transport.noise.extend([bytes.fromhex("080301") + bytes(29)] * 2)
    with pytest.raises(DeviceBusyError, match="VIA is using the keyboard"):
        detect(transport, clock=transport.clock)
    assert len(transport.written) == 2


def test_nobody_is_asked_while_another_program_has_it_open() -> None:
    transport = PeerTransport(PEERS[0])
    with pytest.raises(DeviceBusyError, match="vial is using the keyboard") as caught:
        detect(transport, others=FakeOthers("vial"), clock=transport.clock)
    assert "Close it" in caught.value.advice
    assert transport.written == []


class Visitor(FakeOthers):
    """Comes after the first question; `stays` or leaves at once."""

    def __init__(self, transport: PeerTransport, first: Sign, *, stays: bool) -> None:
        super().__init__()
        self._transport = transport
        self._first: Sign | None = first
        self._stays = stays

    def sign(self) -> Sign | None:
        if not self._transport.written:
            return None
        sign, self._first = self._first, None
        self.program = "vial" if self._stays else None
        return sign


@pytest.mark.parametrize("sign", [Sign.LISTED, Sign.OPENED])
def test_a_program_that_comes_between_two_questions_is_waited_for(sign: Sign) -> None:
    transport = PeerTransport(PEERS[0])
    visitor = Visitor(transport, sign, stays=False)
    assert detect(transport, others=visitor, clock=transport.clock).tier is Tier.LIGHTS
    assert transport.now >= (1.5 if sign is Sign.OPENED else 0.25)


def test_one_that_stays_ends_the_questions() -> None:
    transport = PeerTransport(PEERS[0])
    visitor = Visitor(transport, Sign.OPENED, stays=True)
    with pytest.raises(DeviceBusyError, match="vial is using the keyboard"):
        detect(transport, others=visitor, clock=transport.clock)
    assert len(transport.written) == 1


def test_a_device_of_another_protocol_version_has_the_module() -> None:
    transport = PeerTransport(row_of("Thock on plain QMK"))
    peer = transport.peer
    reply = peer.reply

    def of_version_2(report: bytes) -> Iterator[bytes]:
        if report[:2] == MAGIC:
            body = report[:2] + bytes((0x20 | report[2] & 0x0F,)) + report[3:-2]
            report = body + checksum(body).to_bytes(2, "little")
        return reply(report)

    peer.reply = of_version_2  # type: ignore[method-assign]
    verdict = detect(transport, clock=transport.clock)
    assert verdict.finding is Finding.MODULE
    assert verdict.capabilities is None


@pytest.mark.parametrize("insist", [False, True])
def test_a_device_that_speaks_another_language_is_asked_on_only_if_the_person_chose_it(
    insist: bool,
) -> None:
    transport = PeerTransport(row_of("SignalRGB"))
    verdict = detect(transport, insist=insist, clock=transport.clock)
    assert (verdict.tier, verdict.finding) == (Tier.NONE, Finding.FOREIGN)
    assert any(report.startswith(MAGIC) for report in transport.written) is insist
    transport.peer = ModulePeer(transport.peer, 32)  # its own answer comes first
    verdict = detect(transport, insist=insist, clock=transport.clock)
    assert verdict.tier is (Tier.MODULE if insist else Tier.NONE)


def test_the_virtual_keyboard_is_asked_without_via() -> None:
    keyboard = VirtualKeyboard()
    transport = VirtualTransport(keyboard)
    transport.open()
    assert detect(transport, via_first=False).tier is Tier.MODULE
    assert not keyboard.subscribed


def test_the_opener_respects_the_caution_list_and_the_choice_of_the_person() -> None:
    transport = PeerTransport(row_of("Keychron"))
    candidate = Candidate("path", transport.identity, True, "", 1, 32, Caution.NO_HELLO)
    opener = DeviceOpener(lambda: [candidate], lambda c: transport, clock=transport.clock)
    with pytest.raises(DeviceGoneError, match="caution list"):
        opener()
    assert not any(report.startswith(MAGIC) for report in transport.written)
    chosen = DeviceOpener(
        lambda: [candidate], lambda c: transport, selected=transport.identity, clock=transport.clock
    )
    with pytest.raises(DeviceGoneError, match="no Thock module"):
        chosen()
    assert any(report.startswith(MAGIC) for report in transport.written)
