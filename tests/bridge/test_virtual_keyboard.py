# SPDX-License-Identifier: Apache-2.0
"""The virtual keyboard behaves like a USB port: bounded queues, several handles, a plug."""

from __future__ import annotations

import time

import pytest

from firmware_bridge.errors import DeviceGoneError
from firmware_bridge.firmware.virtual_core import BoardConfig
from firmware_bridge.lights.overlay import LightEffect, Rgb
from firmware_bridge.protocol.frames import Frame, FrameType, decode, encode
from firmware_bridge.protocol.key_messages import KeyReport
from firmware_bridge.protocol.light_messages import LightsFill
from firmware_bridge.protocol.messages import (
    EventKinds,
    Message,
    SetStatus,
    Status,
    Subscribe,
    TextRun,
)
from firmware_bridge.transport.virtual import IN_QUEUE_REPORTS, VirtualKeyboard, VirtualTransport

KEYS = Subscribe(EventKinds.KEYS | EventKinds.MACROS)


class Clock:
    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now


def say(handle: VirtualTransport, message: Message) -> FrameType:
    handle.write(encode(Frame(message.type, 3, 0, message.pack()), 32))
    answer = handle.read(1.0)
    assert answer is not None
    return decode(answer).type


def opened(keyboard: VirtualKeyboard) -> VirtualTransport:
    handle = VirtualTransport(keyboard)
    handle.open()
    return handle


def read_keys(handle: VirtualTransport) -> list[KeyReport]:
    reports = []
    while (report := handle.read(0.001)) is not None:
        reports.append(KeyReport.unpack(decode(report).payload))
    return reports


def test_keys_and_macros_come_out_in_order() -> None:
    keyboard = VirtualKeyboard()
    handle = opened(keyboard)
    assert say(handle, KEYS) is FrameType.ACK
    assert keyboard.press(0x04)
    assert keyboard.release(0x04)
    assert keyboard.press(0x7E01, 3, 4)
    assert keyboard.macro(2)
    events = [event for report in read_keys(handle) for event in report.events]
    assert [(e.kind, e.pressed, e.row, e.column, e.keycode) for e in events] == [
        (False, True, 0, 0x04, 0x04),
        (False, False, 0, 0x04, 0x04),
        (False, True, 3, 4, 0x7E01),
        (True, True, 2, 0, 0),
        (True, False, 2, 0, 0),
    ]


def test_a_key_that_nobody_asked_for_goes_nowhere() -> None:
    keyboard = VirtualKeyboard()
    handle = opened(keyboard)
    assert not keyboard.press(0x04)
    assert handle.read(0.01) is None


def test_a_full_queue_makes_the_firmware_keep_and_then_count_events() -> None:
    keyboard = VirtualKeyboard()
    handle = opened(keyboard)
    say(handle, KEYS)
    ring = 32
    presses = IN_QUEUE_REPORTS + ring + 10
    taken = [keyboard.press(i) for i in range(presses)]
    assert taken == [True] * (IN_QUEUE_REPORTS + ring) + [False] * 10
    reports = read_keys(handle)
    keys = [event.keycode for report in reports for event in report.events]
    assert keys == list(range(IN_QUEUE_REPORTS + ring))
    assert sum(report.dropped for report in reports) == 10
    assert [report.first_index for report in reports][:3] == [0, 1, 2]


def test_the_press_of_a_key_does_not_wait_for_the_host() -> None:
    keyboard = VirtualKeyboard()
    say(opened(keyboard), KEYS)
    start = time.perf_counter()
    for i in range(5000):
        keyboard.press(i & 0xFF)
    assert (time.perf_counter() - start) / 5000 < 0.001


def test_every_handle_gets_every_report_and_a_slow_one_misses_some() -> None:
    keyboard = VirtualKeyboard()
    quick, slow = opened(keyboard), opened(keyboard)
    say(quick, KEYS)
    slow_start = slow.read(0.01)
    assert slow_start is not None
    assert decode(slow_start).type is FrameType.ACK
    seen = []
    for i in range(IN_QUEUE_REPORTS + 20):
        keyboard.press(i)
        seen += [event.keycode for report in read_keys(quick) for event in report.events]
    assert seen == list(range(IN_QUEUE_REPORTS + 20))
    missed = [event.keycode for report in read_keys(slow) for event in report.events]
    assert missed == list(range(IN_QUEUE_REPORTS))


def test_without_a_handle_nothing_can_be_sent_and_events_wait() -> None:
    keyboard = VirtualKeyboard()
    handle = opened(keyboard)
    say(handle, KEYS)
    handle.close()
    assert keyboard.press(0x04)
    handle = opened(keyboard)
    (report,) = read_keys(handle)
    assert report.events[0].keycode == 0x04


def test_unplugging_kills_handles_and_takes_the_state() -> None:
    keyboard = VirtualKeyboard(BoardConfig(rotation=1))
    handle = opened(keyboard)
    say(handle, KEYS)
    say(handle, SetStatus(Status.ERROR))
    keyboard.unplug()
    assert not keyboard.plugged
    with pytest.raises(DeviceGoneError):
        handle.read(1.0)
    with pytest.raises(DeviceGoneError, match="unplugged"):
        VirtualTransport(keyboard).open()
    assert not keyboard.press(0x04)
    assert not keyboard.macro(0)
    assert keyboard.status is Status.IDLE
    assert not keyboard.display_taken
    assert not keyboard.subscribed
    assert not any(keyboard.panel().pages)
    assert (keyboard.panel().width, keyboard.panel().height) == (32, 128)
    assert keyboard.leds() == (None,) * 16
    keyboard.plug()
    keyboard.plug()
    assert keyboard.status is Status.IDLE
    with pytest.raises(DeviceGoneError):
        handle.read(0.01)  # the old handle stays dead
    handle.close()
    handle.open()
    assert say(handle, KEYS) is FrameType.ACK


def test_looking_runs_the_firmware_so_the_host_that_fell_silent_is_forgotten() -> None:
    clock = Clock()
    keyboard = VirtualKeyboard(clock=clock)
    handle = opened(keyboard)
    say(handle, KEYS)
    say(handle, TextRun(0, 0, "hello"))
    say(handle, LightsFill(LightEffect.SOLID, Rgb(9, 8, 7)))
    say(handle, SetStatus(Status.PAUSED))
    assert keyboard.subscribed
    assert keyboard.display_taken
    assert keyboard.status is Status.PAUSED
    assert set(keyboard.leds()) == {Rgb(9, 8, 7)}
    assert any(keyboard.panel().pages)
    clock.now += 3.0
    assert not keyboard.display_taken
    assert not keyboard.subscribed
    assert keyboard.status is Status.IDLE
    assert set(keyboard.leds()) == {None}
    assert not any(keyboard.panel().pages)


def test_opening_twice_keeps_one_queue() -> None:
    keyboard = VirtualKeyboard()
    handle = opened(keyboard)
    handle.open()
    say(handle, KEYS)
    keyboard.press(1)
    assert len(read_keys(handle)) == 1
