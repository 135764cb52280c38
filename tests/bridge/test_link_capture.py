# SPDX-License-Identifier: Apache-2.0
"""Capture over a session: asked for where it is allowed, told in order, ended with permission or link."""

from __future__ import annotations

import pytest

from firmware_bridge.events import CaptureEnded, CaptureStarted, KeyPressed, KeyReleased
from firmware_bridge.firmware.virtual_core import BoardConfig
from firmware_bridge.protocol.capabilities import Feature
from firmware_bridge.protocol.frames import FrameType
from firmware_bridge.protocol.messages import EventKinds, Subscribe
from tests.helpers.session_lab import SessionLab

CAPTURES = EventKinds.CAPTURES


@pytest.fixture
def lab() -> SessionLab:
    lab = SessionLab()
    lab.output.allowed = CAPTURES
    lab.settle()
    lab.sent.clear()
    lab.events.clear()
    return lab


def kinds_asked(lab: SessionLab) -> list[int]:
    return [int(Subscribe.unpack(f.payload).kinds) for f in lab.sent if f.type == 1]


def begin(lab: SessionLab) -> None:
    assert lab.core.begin_capture(lab.ms)
    assert lab.core.captured_key_event(0, 4, 4, True, lab.ms)
    lab.core.task(lab.ms)
    lab.settle()


def test_captured_keys_come_marked_between_beginning_and_end(lab: SessionLab) -> None:
    begin(lab)
    lab.core.end_capture(lab.ms)
    lab.core.captured_key_event(0, 4, 4, False, lab.ms)
    lab.core.key_event(0, 5, 5, True, lab.ms)
    lab.core.task(lab.ms)
    lab.settle()
    ms = lab.ms & 0xFFFF
    assert lab.events == [
        CaptureStarted(ms, lab.now),
        KeyPressed(4, 0, 4, ms, lab.now, captured=True),
        CaptureEnded(ms, lab.now),
        KeyReleased(4, 0, 4, ms, lab.now, captured=True),
        KeyPressed(5, 0, 5, ms, lab.now),
    ]


def test_a_change_of_mind_is_told_at_once_and_then_once_a_second(lab: SessionLab) -> None:
    lab.output.allowed = EventKinds(0)
    lab.settle()
    assert kinds_asked(lab) == [3]
    lab.output.allowed = CAPTURES | EventKinds.TYPING
    lab.settle()
    lab.run(2.5)
    assert kinds_asked(lab) == [3, 15, 15, 15]


def test_a_capture_that_is_no_longer_allowed_ends_on_both_sides(lab: SessionLab) -> None:
    begin(lab)
    lab.output.allowed = EventKinds(0)
    lab.settle()
    assert not lab.core.capturing
    assert isinstance(lab.events[-1], CaptureEnded)
    lab.run(2)
    assert sum(isinstance(event, CaptureEnded) for event in lab.events) == 1


def test_a_capture_that_nobody_can_end_any_more_ends_with_its_keys(lab: SessionLab) -> None:
    begin(lab)
    lifted = lab.session.lift_keys(lab.now)
    assert [type(event) for event in lifted] == [KeyReleased, CaptureEnded]
    assert isinstance(lifted[0], KeyReleased)
    assert lifted[0].captured
    assert lab.session.lift_keys(lab.now) == []


def test_a_board_without_capture_is_not_asked() -> None:
    lab = SessionLab(BoardConfig(features=Feature(63)))
    lab.output.allowed = CAPTURES
    lab.run(1.5)
    assert kinds_asked(lab) == [3, 3]
    assert FrameType.ACCEPT not in {frame.type for frame in lab.sent}
