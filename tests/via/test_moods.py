# SPDX-License-Identifier: Apache-2.0
"""Moods on every kind of stock lighting, and the way back to what the person had."""

from __future__ import annotations

import contextlib
import errno
import json
import stat
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_bridge.errors import DeviceGoneError
from firmware_bridge.lights.overlay import LightEffect, LightOverlay, Rgb
from firmware_bridge.transport.base import DeviceIdentity
from firmware_bridge.via.baseline import BaselineStore, Record, baseline_for
from firmware_bridge.via.board import hsv_of
from firmware_bridge.via.moods import Moods
from firmware_bridge.via.stock_board import SETTLE_S
from tests.helpers.peers import PEERS, PeerRow
from tests.helpers.via_lab import ViaLab
from tests.helpers.via_peers import ViaBoard, VialBoard

BLUE = LightOverlay(Rgb(0, 0, 255))
RED = LightOverlay(Rgb(128, 0, 0), LightEffect.BREATHE)
OWN = LightOverlay()
WITH_LIGHTS = [row for row in PEERS if row.lights and not row.module]


@pytest.fixture
def store(tmp_path: Path) -> BaselineStore:
    return BaselineStore(tmp_path / "state" / "lights.json")


class Desk:
    """A keyboard and our moods on it; `restart` is a new process of ours."""

    def __init__(self, peer: ViaBoard, store: BaselineStore) -> None:
        self.peer = peer
        self.store = store
        self.restart()

    def restart(self) -> None:
        self.lab = ViaLab(self.peer)
        self.board = self.lab.find().board
        self.moods = Moods(self.board, self.store, self.lab.transport.identity)

    @property
    def record(self) -> Record:
        record = self.store.get(self.lab.transport.identity)
        assert record is not None
        return record


def inside(peer: ViaBoard) -> dict[int, dict[str, object]]:
    lights = dict(peer.lights)
    if isinstance(peer, VialBoard):
        lights[0] = peer.rgb
    return {channel: asdict(light) for channel, light in lights.items()}


@pytest.mark.parametrize("row", WITH_LIGHTS, ids=lambda row: row.name)
def test_a_mood_shows_and_goes_without_a_trace(row: PeerRow, store: BaselineStore) -> None:
    peer = row.make()
    assert isinstance(peer, ViaBoard)
    before = inside(peer)
    desk = Desk(peer, store)
    for overlay in (BLUE, RED, BLUE):
        desk.moods.show(overlay)
        settings = desk.board.read()
        assert settings != desk.record.baseline
        plan = desk.board.plan(overlay)
        for name, value in plan.items():
            off = 64 if name.endswith("brightness") else 0
            assert abs(settings[name] - value) <= off
        assert desk.record.settled == settings
    desk.moods.show(OWN)
    assert inside(peer) == before
    assert not desk.record.active
    assert not peer.trapped


@given(
    st.integers(0, 255), st.integers(40, 255), st.sampled_from([2, 3]), st.integers(0, 255),
    st.lists(st.sampled_from([BLUE, RED, OWN]), max_size=6),
)  # fmt: skip
def test_brightness_does_not_drift(
    value: int, maximum: int, channel: int, hue: int, overlays: list[LightOverlay]
) -> None:
    """Setting rounds down, getting rounds down; after any number of moods the board has what it had."""
    peer = ViaBoard(12, (channel,), maximum)
    light = peer.lights[channel]
    light.value, light.hue = min(value, maximum), hue
    before = inside(peer)
    desk = Desk(peer, _NoStore())
    for overlay in (*overlays, BLUE, OWN):
        desk.moods.show(overlay)
    assert inside(peer) == before


class _NoStore(BaselineStore):
    """Remembers, in memory."""

    def __init__(self) -> None:
        self.records: dict[DeviceIdentity, Record] = {}

    def get(self, identity: DeviceIdentity) -> Record | None:
        return self.records.get(identity)

    def put(self, identity: DeviceIdentity, record: Record) -> None:
        self.records[identity] = record


def test_the_effect_comes_first_then_a_wait_then_the_rest(store: BaselineStore) -> None:
    peer = ViaBoard(12)
    peer.resets_colour = True  # firmware that loads its own colour with each effect
    desk = Desk(peer, store)
    start = len(peer.writes)
    desk.moods.show(BLUE)
    sets = [write[1:4] for write in peer.writes[start:] if write[0] == 0x07]
    assert [one[1] for one in sets] == [2, 4, 1]
    assert desk.lab.slept == [SETTLE_S]
    assert (peer.lights[3].hue, peer.lights[3].value) == (170, 255)
    desk.moods.show(LightOverlay(Rgb(0, 255, 0)))
    assert desk.lab.slept == [SETTLE_S]  # the same effect: nothing to wait for


@pytest.mark.parametrize("late", [1, 2])
def test_colours_that_firmware_takes_back_are_set_once_more(
    late: int, store: BaselineStore
) -> None:
    class Late(ViaBoard):
        """Loads its own colour some time after the effect was set, and after our colour was."""

        countdown = -1

        def answer(self, data: bytearray) -> bool:
            if bytes(data[:3]) == b"\x07\x03\x02":
                self.countdown = late
            if bytes(data[:3]) == b"\x07\x03\x01":
                self.countdown -= 1
                if self.countdown >= 0:
                    super().answer(data)
                    self.lights[3].hue = 1
                    return True
            return super().answer(data)

    desk = Desk(Late(12), store)
    desk.moods.show(BLUE)
    kept = late == 1
    assert (desk.peer.lights[3].hue == 170) is kept


@pytest.mark.parametrize("writes", range(1, 14))
def test_after_a_crash_at_any_request_the_next_start_sets_all_back(
    writes: int, store: BaselineStore
) -> None:
    peer = ViaBoard(12, (3,), 120)
    before = inside(peer)
    desk = Desk(peer, store)
    left = [writes]
    write = desk.lab.transport.write

    def failing(report: bytes) -> None:
        if left[0] == 0:
            raise DeviceGoneError("the process died here")
        left[0] -= 1
        write(report)

    desk.lab.transport.write = failing  # type: ignore[method-assign]
    with contextlib.suppress(DeviceGoneError):
        desk.moods.show(BLUE)
        desk.moods.show(RED)
    assert left == [0]
    desk.restart()
    desk.moods.give_back()
    assert inside(peer) == before


def test_after_a_crash_and_a_loss_of_power_the_board_is_left_as_it_is(store: BaselineStore) -> None:
    desk = Desk(ViaBoard(12), store)
    desk.moods.show(BLUE)
    desk.peer.eeprom[3].hue = 33
    desk.peer.power_cycle()
    before = inside(desk.peer)
    desk.restart()
    desk.moods.give_back()
    assert inside(desk.peer) == before
    desk.moods.show(BLUE)
    desk.moods.show(OWN)
    assert inside(desk.peer) == before


def test_what_the_person_changes_meanwhile_stays(store: BaselineStore) -> None:
    desk = Desk(ViaBoard(12), store)
    desk.moods.show(BLUE)
    desk.peer.lights[3].value = 99  # a key of the keyboard's own
    desk.moods.show(OWN)
    light = desk.peer.lights[3]
    assert (light.value, light.effect, light.hue) == (99, 5, 100)
    desk.peer.lights[3].hue = 42
    desk.moods.show(BLUE)
    desk.moods.show(OWN)
    assert (light.value, light.effect, light.hue) == (99, 5, 42)


def test_a_mood_that_was_left_behind_is_not_taken_for_the_persons_own(store: BaselineStore) -> None:
    desk = Desk(ViaBoard(12), store)
    desk.moods.show(BLUE)
    mood = inside(desk.peer)
    desk.moods.show(OWN)
    desk.peer.eeprom = {3: desk.peer.lights[3].copy()}
    for name, value in mood[3].items():
        setattr(desk.peer.eeprom[3], name, value)  # a key saved what the lights were at that moment
    desk.peer.power_cycle()
    desk.restart()
    desk.moods.show(RED)
    desk.moods.show(OWN)
    light = desk.peer.lights[3]
    assert (light.effect, light.hue, light.saturation) == (5, 100, 200)


def test_single_leds_on_vialrgb(store: BaselineStore) -> None:
    peer = VialBoard(rgb_leds=20)
    desk = Desk(peer, store)
    assert desk.board.led_count == 20
    start = len(peer.writes)
    desk.moods.show(LightOverlay(leds={3: Rgb(255, 0, 0), 19: Rgb(0, 0, 255)}))
    runs = [write for write in peer.writes[start:] if write[:2] == b"\x07\x42"]
    assert [write[4] for write in runs] == [9, 9, 2]
    assert peer.rgb.effect == 1
    assert peer.painted[3] == (0, 255, 200)  # no brighter than the board allows
    assert peer.painted[19] == (170, 255, 200)
    assert peer.painted[4] == (100, 200, 20)  # around them: what the person had
    desk.moods.show(LightOverlay(Rgb(0, 255, 0), leds={0: Rgb(255, 255, 255)}))
    assert peer.painted[0] == (0, 0, 200)
    assert peer.painted[1] == (85, 255, 200)
    desk.moods.show(OWN)
    assert asdict(peer.rgb) == asdict(VialBoard(rgb_leds=20).rgb)


def test_around_single_leds_all_is_dark_if_the_person_had_it_dark(store: BaselineStore) -> None:
    peer = VialBoard(rgb_leds=4)
    peer.rgb.enabled = False
    desk = Desk(peer, store)
    desk.moods.show(LightOverlay(leds={1: Rgb(255, 0, 0)}))
    assert peer.painted == [(0, 0, 0), (0, 255, 200), (0, 0, 0), (0, 0, 0)]
    desk.moods.show(OWN)
    assert not peer.rgb.enabled


def test_without_single_leds_an_overlay_of_them_shows_nothing(store: BaselineStore) -> None:
    desk = Desk(ViaBoard(12), store)
    start = len(desk.peer.writes)
    desk.moods.show(LightOverlay(leds={1: Rgb(255, 0, 0)}))
    assert len(desk.peer.writes) == start


def test_vialrgb_breathes_if_it_can(store: BaselineStore) -> None:
    desk = Desk(VialBoard(rgb_leds=4), store)
    assert desk.board.plan(RED)["vialrgb.mode"] == 6
    steady = VialBoard(rgb_leds=4)
    steady.modes = (2, 13)
    desk = Desk(steady, store)
    assert desk.board.plan(RED)["vialrgb.mode"] == 2
    assert desk.board.led_count == 0


@pytest.mark.parametrize(
    ("colour", "hsv"),
    [((255, 0, 0), (0, 255, 255)), ((0, 255, 0), (85, 255, 255)), ((0, 0, 128), (170, 255, 128)),
     ((255, 255, 255), (0, 0, 255)), ((0, 0, 0), (0, 0, 0))],
)  # fmt: skip
def test_colours_as_qmk_counts_them(
    colour: tuple[int, int, int], hsv: tuple[int, int, int]
) -> None:
    assert hsv_of(Rgb(*colour)) == hsv


IDENTITY = DeviceIdentity("hid", 0x3434, 0x0361, "", "usb-1")
RECORD = Record({"rgb_matrix.hue": 3}, True, None, {"rgb_matrix.hue": 4}, ({"rgb_matrix.hue": 5},))


def test_records_are_kept_in_a_file_of_the_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "lights.json"
    store = BaselineStore(path)
    assert store.get(IDENTITY) is None
    store.put(IDENTITY, RECORD)
    other = DeviceIdentity("hid", 0x3434, 0x0361, "", "usb-2")
    store.put(other, Record({}))
    assert BaselineStore(path).get(IDENTITY) == RECORD
    assert BaselineStore(path).get(other) == Record({})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["lights.json"]


@pytest.mark.expected_log("cannot be read")
@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b""])
def test_a_damaged_file_is_begun_anew(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "lights.json"
    path.write_bytes(content)
    store = BaselineStore(path)
    assert store.get(IDENTITY) is None
    store.put(IDENTITY, RECORD)
    assert store.get(IDENTITY) == RECORD


def break_entry(change: Callable[[dict[str, object]], None], path: Path) -> None:
    content = json.loads(path.read_text())
    change(next(iter(content["boards"].values())))
    path.write_text(json.dumps(content))


@pytest.mark.expected_log("damaged")
@pytest.mark.parametrize(
    "change",
    [
        lambda entry: entry.update(baseline={"rgb_matrix.hue": "3"}),
        lambda entry: entry.update(baseline={"rgb_matrix.hue": 70000}),
        lambda entry: entry.update(baseline=[1]),
        lambda entry: entry.pop("moods"),
        lambda entry: entry.update(moods=3),
    ],
)
def test_a_damaged_entry_is_not_used(
    change: Callable[[dict[str, object]], None], tmp_path: Path
) -> None:
    path = tmp_path / "lights.json"
    BaselineStore(path).put(IDENTITY, RECORD)
    break_entry(change, path)
    assert BaselineStore(path).get(IDENTITY) is None


@pytest.mark.parametrize(
    "content", ["[]", '{"boards": 3, "format": 1}', '{"format": 2, "boards": {}}']
)
def test_another_file_is_not_ours(content: str, tmp_path: Path) -> None:
    path = tmp_path / "lights.json"
    path.write_text(content)
    assert BaselineStore(path).get(IDENTITY) is None


@pytest.mark.expected_log("cannot be kept")
def test_a_disk_that_takes_nothing_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: str, target: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    store = BaselineStore(tmp_path / "lights.json")
    monkeypatch.setattr("os.replace", full)
    store.put(IDENTITY, RECORD)
    store.put(IDENTITY, RECORD)
    assert list(tmp_path.iterdir()) == []
    assert sum("cannot be kept" in r.getMessage() for r in caplog.records) == 1


def test_another_kind_of_lighting_begins_a_new_baseline() -> None:
    """After new firmware the same board may have other settings."""
    assert baseline_for(RECORD, {"vialrgb.mode": 2}) == Record({"vialrgb.mode": 2})
    assert RECORD.to_restore({"vialrgb.mode": 2}) == {}
