# SPDX-License-Identifier: Apache-2.0
"""What every known firmware is taken for, byte for byte, and that looking changes nothing."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from firmware_bridge.errors import BridgeError
from firmware_bridge.via.conversation import NoAnswerError, NotViaError
from firmware_bridge.via.find_board import NoLightsError
from firmware_bridge.via.vial import UnlockInProgressError
from tests.helpers.peers import PEERS, PeerRow, make_peer
from tests.helpers.via_lab import ViaLab
from tests.helpers.via_peers import LightSettings, ViableBoard, ViaBoard, VialBoard

WITH_LIGHTS = [row for row in PEERS if row.lights]
WITHOUT = [row for row in PEERS if row.refusal]
REFUSALS: dict[str, type[BridgeError]] = {
    kind.__name__: kind
    for kind in (UnlockInProgressError, NotViaError, NoAnswerError, NoLightsError)
}


def test_every_row_that_may_be_asked_has_lights_or_a_reason() -> None:
    asked = [row for row in PEERS if row.report_length == 32]
    assert sorted(row.name for row in asked) == sorted(r.name for r in (*WITH_LIGHTS, *WITHOUT))


def lights_of(peer: object) -> dict[int, LightSettings]:
    return peer.lights if isinstance(peer, ViaBoard) else {}


@pytest.mark.parametrize("row", WITH_LIGHTS, ids=lambda row: row.name)
def test_the_lights_of_a_board_are_found_and_left_as_they_were(row: PeerRow) -> None:
    lab = ViaLab(row.make())
    before = {channel: asdict(light) for channel, light in lights_of(lab.peer).items()}
    found = lab.find()
    assert found.board.name == ", ".join(row.lights)
    assert (found.version, found.is_vial) == (row.via, row.is_vial)
    assert {c: asdict(light) for c, light in lights_of(lab.peer).items()} == before
    assert not lab.peer.trapped


@pytest.mark.parametrize("row", WITHOUT, ids=lambda row: row.name)
def test_a_device_without_lights_is_left_alone(row: PeerRow) -> None:
    lab = ViaLab(row.make())
    with pytest.raises(REFUSALS[row.refusal]):
        lab.find()
    sets = [write for write in lab.requests if write[0] == 0x07]
    assert not sets
    assert not lab.peer.trapped


@pytest.mark.parametrize("row", WITHOUT, ids=lambda row: row.name)
def test_whoever_does_not_speak_via_is_not_asked_further(row: PeerRow) -> None:
    lab = ViaLab(row.make())
    with pytest.raises(BridgeError):
        lab.find()
    if row.via is None:
        assert {write[0] for write in lab.requests} == ({0xFE} if row.is_vial else {0x01})


def test_an_answer_for_a_channel_that_is_not_there_is_no_proof() -> None:
    class Polite(ViaBoard):
        """Answers every custom value as if it had it, and keeps none."""

        def answer(self, data: bytearray) -> bool:
            if data[0] in (0x07, 0x08) and data[1] not in self.lights:
                data[3:] = bytes(29)
                return True
            return super().answer(data)

    assert ViaLab(Polite(12, (2,))).find().board.name == "rgblight"


def test_a_board_with_only_a_backlight_uses_it() -> None:
    class Speedless(ViaBoard):
        """An LED matrix whose speed cannot be changed is not believed."""

        def answer(self, data: bytearray) -> bool:
            if bytes(data[:3]) == b"\x07\x05\x03":
                return True
            return super().answer(data)

    assert ViaLab(Speedless(12, (5, 1), 3)).find().board.name == "backlight"


def test_boards_of_older_vial_without_a_lock_are_asked_all_the_same() -> None:
    class LockLess(VialBoard):
        def _vial(self, data: bytearray) -> None:
            if data[1] != 5:
                super()._vial(data)

    assert ViaLab(LockLess()).find().board.name == "rgblight"


def test_vialrgb_of_another_version_falls_back_to_nothing_else() -> None:
    class Newer(VialBoard):
        def _rgb(self, data: bytearray) -> None:
            super()._rgb(data)
            if data[1] == 0x40:
                data[2] = 2

    with pytest.raises(NoLightsError):
        ViaLab(Newer(rgb_leds=4)).find()


def test_viable_boards_are_spoken_to_under_an_id() -> None:
    lab = ViaLab(ViableBoard())
    board = lab.find().board
    plain = [write for write in lab.requests if write[0] != 0xDD]
    assert [write[0] for write in plain] == [0x01]
    count = len(lab.requests)
    assert isinstance(lab.peer, ViableBoard)
    lab.peer.expire()
    settings = board.read()
    assert settings["rgb_matrix.effect"] == 5
    assert (
        lab.requests[count + 1][:5] == b"\xdd\0\0\0\0"
    )  # the id had run out: a new one, then again


def test_an_answer_in_another_language_is_neither_silence_nor_another_program() -> None:
    lab = ViaLab(make_peer("SignalRGB"))
    with pytest.raises(NotViaError, match="another language"):
        lab.conversation.version()
    assert lab.conversation.stats.foreign == len(lab.requests)
