# SPDX-License-Identifier: Apache-2.0
"""Which device a link gets, and what the person is told when there is none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from firmware_bridge.discovery.candidates import Candidate
from firmware_bridge.discovery.opener import DeviceOpener
from firmware_bridge.errors import (
    DeviceBusyError,
    DeviceGoneError,
    DevicePermissionError,
    TransportError,
)
from firmware_bridge.transport.base import DeviceIdentity
from firmware_bridge.via.protocol import Command
from tests.helpers.peers import PeerTransport, row_of


class Bench:
    """Devices by path, and a clock that moves when told or waited for."""

    def __init__(self) -> None:
        self.now = 100.0
        self.devices: dict[str, tuple[Candidate, PeerTransport]] = {}
        self.errors: dict[str, TransportError] = {}
        self.opened: list[str] = []
        self.claimed = False

    def plug(
        self, path: str, name: str, serial: str = "", location: str = "usb-1", **changes: object
    ) -> DeviceIdentity:
        transport = PeerTransport(row_of(name))
        identity = DeviceIdentity("hid", 0xFEED, 1, serial, location, name)
        transport.identity = replace(identity, **changes)  # type: ignore[arg-type]
        transport.open = lambda: self.open(path)  # type: ignore[method-assign]
        matches = transport.identity.transport == "hid"
        candidate = Candidate(path, transport.identity, matches, "", 1, 32)
        self.devices[path] = (candidate, transport)
        return transport.identity

    def open(self, path: str) -> None:
        self.opened.append(path)
        if path in self.errors:
            raise self.errors[path]

    def opener(self, selected: DeviceIdentity | None = None) -> DeviceOpener:
        return DeviceOpener(
            lambda: [candidate for candidate, _ in self.devices.values()],
            lambda candidate: self.devices[candidate.path][1],
            selected=selected,
            is_claimed=lambda vendor, product: self.claimed,
            clock=self.clock,
        )

    def clock(self) -> float:
        return self.now + sum(transport.now for _, transport in self.devices.values())

    def written(self, path: str) -> list[bytes]:
        return self.devices[path][1].written


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_the_first_with_the_module_is_opened_and_the_others_are_asked_once(bench: Bench) -> None:
    bench.plug("a", "VIA 12", "1A")
    wanted = bench.plug("b", "Thock on VIA 12", "1B")
    opener = bench.opener()
    for _ in range(5):
        assert opener().identity == wanted
    assert bench.opened.count("a") == 1
    assert bench.devices["a"][1].closed == 1


def test_the_keyboard_is_given_as_open_as_it_was_when_it_was_asked(bench: Bench) -> None:
    bench.plug("a", "Thock on VIA 12")
    opener = bench.opener()
    opener()
    assert bench.opened == ["a"]
    assert bench.devices["a"][1].closed == 0


def test_a_device_that_fails_while_it_is_asked_is_closed(bench: Bench) -> None:
    bench.plug("a", "Thock on VIA 12")
    bench.errors["a"] = DeviceBusyError("held")
    with pytest.raises(DeviceBusyError):
        bench.opener()()
    assert bench.devices["a"][1].closed == 1


def test_nothing_found_says_what_was_seen(bench: Bench) -> None:
    bench.plug("a", "VIA 12", "1A")
    bench.plug("b", "SignalRGB", "1B")
    with pytest.raises(DeviceGoneError) as caught:
        bench.opener()()
    assert "VIA 12: its firmware has no Thock module (VIA, protocol 12)" in caught.value.advice
    assert "SignalRGB: its firmware speaks another language" in caught.value.advice


def test_a_board_that_comes_back_elsewhere_is_preferred_and_asked_without_via(
    bench: Bench,
) -> None:
    bench.plug("a", "Thock on VIA 12", "1A")
    opener = bench.opener()
    opener()
    del bench.devices["a"]
    other = bench.plug("b", "Thock on VIA 12", "1B", "usb-2")
    back = bench.plug("c", "Thock on VIA 12", "1A", "usb-3")
    assert opener().identity == back
    assert not any(report[0] == Command.GET_VERSION for report in bench.written("c"))
    del bench.devices["c"]
    assert opener().identity == other
    assert bench.written("b")[0][0] == Command.GET_VERSION


def test_a_chosen_board_is_never_replaced_by_its_twin(bench: Bench) -> None:
    chosen = bench.plug("a", "Thock on VIA 12", "0", "usb-1")
    bench.plug("b", "Thock on VIA 12", "0", "usb-2")
    opener = bench.opener(chosen)
    assert opener().identity == chosen
    del bench.devices["a"]
    with pytest.raises(DeviceGoneError, match="chosen keyboard"):
        opener()
    assert "b" not in bench.opened


def test_a_serial_port_is_asked_only_when_it_was_chosen(bench: Bench) -> None:
    port = bench.plug("a", "Thock on plain QMK", "1A", transport="serial")
    with pytest.raises(DeviceGoneError):
        bench.opener()()
    assert bench.opened == []
    assert bench.opener(port)().identity == port
    assert not any(report[0] == Command.GET_VERSION for report in bench.written("a"))


def test_silent_devices_are_asked_ever_more_seldom_and_others_once(bench: Bench) -> None:
    bench.plug("a", "silent receiver", "1A")
    bench.plug("b", "SignalRGB", "1B")
    opener = bench.opener()
    for _ in range(20):
        with pytest.raises(DeviceGoneError):
            opener()
        bench.now += 3
    assert bench.opened.count("a") == 4  # after 0, 6, 18 and 39 s
    assert bench.opened.count("b") == 1


def test_a_keyboard_that_answers_late_is_found_after_all(bench: Bench) -> None:
    bench.plug("a", "silent receiver", "1A")
    opener = bench.opener()
    for _ in range(40):
        with pytest.raises(DeviceGoneError):
            opener()
        bench.now += 3
    slow = bench.plug("a", "Thock on VIA 12", "1A")
    bench.now += 61
    assert opener().identity == slow


def test_a_device_that_was_plugged_in_anew_is_asked_anew(bench: Bench) -> None:
    bench.plug("a", "VIA 12", "1A")
    opener = bench.opener()
    with pytest.raises(DeviceGoneError):
        opener()
    del bench.devices["a"]
    with pytest.raises(DeviceGoneError):
        opener()
    back = bench.plug("a", "Thock on VIA 12", "1A")  # the module was flashed meanwhile
    assert opener().identity == back


def test_a_known_board_that_starts_up_is_asked_until_it_answers(bench: Bench) -> None:
    bench.plug("a", "Thock on plain QMK", "1A")
    opener = bench.opener()
    opener()
    awake = bench.devices["a"]
    bench.plug("a", "silent receiver", "1A")
    asleep = bench.devices["a"]
    asleep = (replace(asleep[0], identity=awake[0].identity), asleep[1])
    for _ in range(5):
        bench.devices["a"] = asleep
        with pytest.raises(DeviceGoneError):
            opener()
    bench.devices["a"] = awake
    opener()


@pytest.mark.parametrize("kind", [DevicePermissionError, DeviceBusyError])
def test_why_a_device_cannot_be_opened_goes_before_what_else_was_seen(
    bench: Bench, kind: type[TransportError]
) -> None:
    bench.plug("a", "VIA 12", "1A")
    bench.plug("b", "Thock on VIA 12", "1B")
    bench.plug("c", "Thock on VIA 12", "1C")
    bench.errors = {"b": DeviceGoneError("b"), "c": kind("c", "do this")}
    opener = bench.opener()
    with pytest.raises(TransportError):
        opener()
    bench.now += 2
    with pytest.raises(kind) as caught:
        opener()
    assert caught.value.advice == "do this"


def test_permissions_of_a_new_device_are_waited_for(bench: Bench) -> None:
    bench.plug("a", "Thock on VIA 12", "1A")
    bench.errors["a"] = DevicePermissionError("a")
    opener = bench.opener()
    with pytest.raises(DeviceGoneError, match="just plugged in"):
        opener()
    bench.now += 2
    with pytest.raises(DevicePermissionError):
        opener()


def test_a_board_that_another_program_took_from_the_system_is_busy(bench: Bench) -> None:
    bench.plug("a", "Thock on VIA 12", "1A")
    opener = bench.opener()
    opener()
    del bench.devices["a"]
    bench.claimed = True
    with pytest.raises(DeviceBusyError, match="took the keyboard"):
        opener()
    bench.claimed = False
    with pytest.raises(DeviceGoneError):
        opener()
