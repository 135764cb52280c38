# SPDX-License-Identifier: Apache-2.0
"""The keyboard of `thock run`, put together as the command does it, on devices of others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.commands.keyboards import any_keyboard, lock_folder
from app.config.paths import UnsafeFolderError
from app.settings import LightsSettings
from firmware_bridge.device_lock import LockedTransport
from firmware_bridge.discovery.candidates import Candidate
from firmware_bridge.discovery.watch import OwnLooks
from firmware_bridge.events import BridgeEvent, LinkReady
from firmware_bridge.lights.overlay import LightOverlay, Rgb
from firmware_bridge.protocol.capabilities import Feature
from firmware_bridge.transport.base import DeviceIdentity, Transport
from tests.helpers.peers import PeerRow, row_of
from tests.helpers.transports import ScriptedTransport
from tests.helpers.via_peers import Peer, ViaBoard
from tests.helpers.waiting import wait_until

BLUE = LightOverlay(Rgb(0, 0, 255))
HUE_BLUE, HUE_OWN = 170, 100


class Shelf:
    """What is plugged in, in place of the list of devices of this computer."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._plugged: dict[str, tuple[Candidate, Peer]] = {}
        self._listeners: list[Callable[[], None]] = []
        self.looks = OwnLooks()
        self.opened: list[str] = []

    def plug(self, name: str) -> Peer:
        row: PeerRow = row_of(name)
        peer = row.make()
        node = self._folder / f"hidraw{len(self._plugged)}"
        node.touch()
        identity = DeviceIdentity("hid", row.vendor, 1, peer.serial, name, name)
        self._plugged[name] = (Candidate(str(node), identity, True, "", 1, 32), peer)
        self._tell()
        return peer

    def unplug(self, name: str) -> None:
        del self._plugged[name]
        self._tell()

    def make_transport(
        self, _library: object, candidate: Candidate, locks: Path | None = None
    ) -> Transport:
        name = candidate.identity.product
        self.opened.append(name)
        transport = ScriptedTransport(self._plugged[name][1])
        transport.identity = candidate.identity
        assert locks is not None
        return LockedTransport(transport, locks)

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def candidates(self) -> tuple[Candidate, ...]:
        return tuple(candidate for candidate, _ in self._plugged.values())

    def subscribe(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)

    def _tell(self) -> None:
        for listener in self._listeners:
            listener()


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    shelf = Shelf(tmp_path)
    monkeypatch.setattr("app.commands.keyboards.system_watch", lambda _library: shelf)
    monkeypatch.setattr("firmware_bridge.discovery.system.make_transport", shelf.make_transport)
    monkeypatch.setattr("app.commands.keyboards.runtime_folder", lambda: tmp_path)
    monkeypatch.setattr("app.commands.keyboards.lights_file", lambda: tmp_path / "lights.json")
    return shelf


def ready(events: list[BridgeEvent]) -> Iterator[Feature]:
    return (event.capabilities.features for event in events if isinstance(event, LinkReady))


def test_auto_falls_back_to_the_lights_of_a_board_without_the_module(shelf: Shelf) -> None:
    peer = shelf.plug("VIA 11, lossy")
    assert isinstance(peer, ViaBoard)
    before = peer.lights[3].copy()
    events: list[BridgeEvent] = []
    with any_keyboard(LightsSettings()) as make:
        keyboard = make(events.append)
        keyboard.set_lights(BLUE)
        keyboard.start()
        wait_until(lambda: peer.lights[3].hue == HUE_BLUE)
        assert list(ready(events)) == [Feature.LIGHTS]
        assert keyboard.stop()
    assert peer.lights[3] == before
    assert not peer.trapped


def test_a_board_with_the_module_is_preferred_and_the_other_left_alone(shelf: Shelf) -> None:
    via = shelf.plug("VIA 12")
    module = shelf.plug("Thock on VIA 12")
    events: list[BridgeEvent] = []
    with any_keyboard(LightsSettings()) as make:
        keyboard = make(events.append)
        keyboard.start()
        wait_until(lambda: list(ready(events)))
        assert Feature.KEYS in next(ready(events))
        asked = len(via.writes)
        keyboard.set_lights(BLUE)
        wait_until(lambda: module.writes[-1:] and module.writes[-1][:3] == b"\xe7\x4c\x15")
        assert len(via.writes) == asked
        assert keyboard.stop()
    assert not via.trapped
    assert not module.trapped


def test_the_chosen_keyboard_may_be_one_for_lights_only(shelf: Shelf) -> None:
    others, chosen = shelf.plug("VIA 12"), shelf.plug("VialRGB")
    with any_keyboard(LightsSettings(), chosen="VialRGB") as make:
        keyboard = make(lambda event: None)
        keyboard.set_lights(BLUE)
        keyboard.start()
        wait_until(lambda: any(write[:2] == b"\x07\x41" for write in chosen.writes))
        assert keyboard.stop()
    assert others.writes == []


@pytest.mark.expected_log("no device is 'Thock on VIA 12' yet")
def test_a_chosen_keyboard_that_is_not_plugged_in_is_waited_for(shelf: Shelf) -> None:
    others = shelf.plug("VIA 12")
    events: list[BridgeEvent] = []
    with any_keyboard(LightsSettings(), chosen="Thock on VIA 12") as make:
        keyboard = make(events.append)
        keyboard.start()
        shelf.plug("Thock on VIA 12")
        wait_until(lambda: list(ready(events)))
        assert keyboard.stop()
    assert set(shelf.opened) == {"Thock on VIA 12"}
    assert others.writes == []


@pytest.mark.expected_log("no locks on keyboards")
def test_without_a_safe_place_for_locks_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def unsafe() -> Path:
        raise UnsafeFolderError("not yours")

    monkeypatch.setattr("app.commands.keyboards.runtime_folder", unsafe)
    assert lock_folder() is None


def test_without_stock_lights_a_board_is_asked_once_and_left_alone(shelf: Shelf) -> None:
    peer = shelf.plug("VIA 12")
    with any_keyboard(LightsSettings(stock=False)) as make:
        keyboard = make(lambda event: None)
        keyboard.set_lights(BLUE)
        keyboard.start()
        wait_until(lambda: peer.writes)
        assert keyboard.stop()
    assert not any(write[0] == 0x07 for write in peer.writes)
