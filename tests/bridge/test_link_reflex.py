# SPDX-License-Identifier: Apache-2.0
"""A reflex shows its picture at its key, without anybody being told before, and never at another moment."""

from __future__ import annotations

import threading
import time
from collections import deque

import pytest

from firmware_bridge.display.frame import BitmapFrame, TextFrame
from firmware_bridge.errors import DeviceGoneError
from firmware_bridge.events import BridgeEvent, KeyPressed
from firmware_bridge.keys.usage import Usage
from firmware_bridge.link import Link
from firmware_bridge.link_plan import Plan
from firmware_bridge.link_reflex import Reflex
from firmware_bridge.link_state import LinkState
from firmware_bridge.neighbours import Sign
from firmware_bridge.transport.virtual import VirtualKeyboard, VirtualTransport
from tests.helpers.reflex_lab import ASK, ENTER, TEXT_INTERVAL_S, ReflexLab
from tests.helpers.waiting import wait_until


@pytest.fixture
def lab() -> ReflexLab:
    lab = ReflexLab()
    lab.show("question")
    lab.now += 1
    lab.turns(4)
    lab.texts.clear()
    return lab


@pytest.mark.parametrize("kind", ["key", "macro"])
def test_the_picture_goes_out_before_the_key_is_told(lab: ReflexLab, kind: str) -> None:
    lab.expect("reply")
    told = len(lab.told)
    if kind == "key":
        lab.keyboard.press(Usage.ENTER)
    else:
        lab.keyboard.macro(ASK)
    lab.turns(1)
    assert lab.texts == [("reply", told)]
    assert len(lab.told) == told + 1
    lab.turns(8)
    assert lab.last_texts() == ["reply"], "once"
    assert lab.keyboard.panel() == shown("reply")


def test_the_same_picture_that_is_shown_afterwards_changes_nothing(lab: ReflexLab) -> None:
    lab.expect("reply")
    lab.keyboard.press(Usage.ENTER)
    lab.turns(4)
    lab.link.set_reflex(None)
    lab.link.show(TextFrame(("reply",)))
    lab.now += 1
    lab.turns(8)
    assert lab.last_texts() == ["reply"]


@pytest.mark.parametrize("then", ["newer", "question"])
def test_what_is_wanted_while_the_picture_goes_out_comes_after_it(
    lab: ReflexLab, then: str
) -> None:
    lab.expect("reply")
    lab.keyboard.press(Usage.ENTER)
    lab.while_writing.append(lambda: lab.link.show(TextFrame((then,))))
    lab.turns(4)
    assert lab.last_texts() == ["reply"]
    lab.now += 1
    lab.turns(8)
    assert lab.last_texts() == [then]
    assert lab.keyboard.panel() == shown(then)


def test_a_picture_whose_write_failed_is_sent_by_the_next_session(lab: ReflexLab) -> None:
    def fail() -> None:
        raise DeviceGoneError("unplugged")

    lab.expect("reply")
    lab.keyboard.press(Usage.ENTER)
    lab.while_writing.append(fail)
    with pytest.raises(DeviceGoneError):
        lab.turns(4)
    assert lab.last_texts() == ["reply"]
    lab.now += 1
    lab.connect()
    assert lab.last_texts() == ["reply"]
    assert lab.keyboard.panel() == shown("reply")


def test_a_display_that_has_changed_is_planned_for_anew(
    lab: ReflexLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    carried_out: list[object] = []
    carry_out = lab.session.carried_out

    def watch(plan: Plan, wanted_at: float, now: float) -> None:
        carried_out.append(plan)
        carry_out(plan, wanted_at, now)

    monkeypatch.setattr(lab.session, "carried_out", watch)
    lab.expect("reply")
    lab.show("another question")
    lab.last_texts()
    lab.keyboard.press(Usage.ENTER)
    lab.turns(1)
    assert lab.last_texts() == ["reply"]
    assert len(carried_out) == 1


@pytest.mark.parametrize("usage", [Usage.A, Usage.LEFT_CONTROL, Usage.KEYPAD_ENTER])
def test_another_key_takes_it_away(lab: ReflexLab, usage: int) -> None:
    lab.expect("reply")
    lab.keyboard.press(usage)
    lab.keyboard.press(Usage.ENTER)
    lab.turns(8)
    assert lab.last_texts() == []


def test_a_release_takes_it_away_too(lab: ReflexLab) -> None:
    """It may end a key that the system repeats, or a modifier: whoever knows the text must look first."""
    lab.keyboard.press(Usage.A)
    lab.turns(4)
    lab.expect("reply")
    lab.keyboard.release(Usage.A)
    lab.keyboard.press(Usage.ENTER)
    lab.turns(8)
    assert lab.last_texts() == []


def test_an_event_that_it_does_not_know_of_makes_it_void(lab: ReflexLab) -> None:
    known = lab.told[-1]
    lab.keyboard.press(Usage.A)
    lab.turns(4)
    lab.expect("reply", known)
    lab.keyboard.press(Usage.ENTER)
    lab.turns(8)
    assert lab.last_texts() == []


def test_a_reflex_that_is_taken_back_does_nothing(lab: ReflexLab) -> None:
    lab.expect("reply")
    lab.link.set_reflex(None)
    lab.keyboard.press(Usage.ENTER)
    lab.turns(8)
    assert lab.last_texts() == []


def test_what_is_shown_after_it_was_set_off_stays(lab: ReflexLab) -> None:
    lab.expect("reply")
    lab.keyboard.press(Usage.ENTER)
    lab.turns(4)
    lab.link.set_reflex(None)
    lab.link.show(TextFrame(("paused",)))
    lab.now += 2 * TEXT_INTERVAL_S
    lab.turns(8)
    assert lab.last_texts() == ["reply", "paused"]


def test_lost_keys_make_it_void(lab: ReflexLab) -> None:
    lab.expect("reply")
    for _ in range(40):  # more than the keyboard's ring holds while nobody reads
        lab.keyboard.press(Usage.A)
        lab.keyboard.release(Usage.A)
    lab.keyboard.press(Usage.ENTER)
    lab.turns(60)
    assert lab.last_texts() == []


def test_it_does_not_wait_for_the_interval_and_what_follows_waits_longer(lab: ReflexLab) -> None:
    lab.expect("reply")
    lab.link.show(TextFrame(("typed",)))
    lab.turns(4)
    assert lab.last_texts() == ["typed"]
    lab.now += 0.001
    lab.keyboard.press(Usage.ENTER)
    lab.turns(8)
    assert lab.last_texts() == ["reply"]
    lab.link.show(TextFrame(("more",)))
    lab.now += TEXT_INTERVAL_S
    lab.turns(8)
    assert lab.last_texts() == []
    lab.now += TEXT_INTERVAL_S
    lab.turns(8)
    assert lab.last_texts() == ["more"]


def test_reflexes_keep_to_twenty_updates_a_second(lab: ReflexLab) -> None:
    end = lab.now + 2.0
    number = 0
    while lab.now < end:
        number += 1
        lab.expect(f"reply {number}")
        lab.keyboard.macro(ASK)
        lab.turns(6)
        lab.now += 0.004
    assert 30 <= len(lab.last_texts()) <= 42


@pytest.mark.expected_log("not shown: a bitmap of 8x8")
def test_a_picture_that_does_not_fit_is_refused_as_any_other(lab: ReflexLab) -> None:
    frame = BitmapFrame(8, 8, bytes(8))
    lab.link.set_reflex(Reflex(frame, ENTER, frozenset(), lab.told[-1]))
    lab.keyboard.press(Usage.ENTER)
    lab.turns(8)
    assert lab.last_texts() == []
    assert isinstance(lab.told[-1], KeyPressed)


def test_set_while_the_display_changes_it_is_ready_when_that_is_over(lab: ReflexLab) -> None:
    lab.link.show(TextFrame(("a line of text that needs", "several frames to be shown", "on it")))
    lab.now += 1
    lab.turns(1)
    lab.expect("reply")
    lab.turns(12)
    lab.texts.clear()
    lab.keyboard.press(Usage.ENTER)
    lab.turns(1)
    assert lab.last_texts() == ["reply"]


def test_without_time_for_a_plan_it_is_shown_all_the_same(lab: ReflexLab) -> None:
    reflex = Reflex(TextFrame(("reply",)), ENTER, frozenset(), lab.told[-1])
    told = len(lab.told)
    # Both come while the link waits for the next report.
    lab.meanwhile += [
        lambda: lab.link.set_reflex(reflex),
        lambda: lab.keyboard.press(Usage.ENTER),
    ]
    lab.turns(1)
    assert lab.texts == [("reply", told)]


def test_it_works_through_a_running_link_that_is_told_by_another_thread() -> None:
    keyboard = VirtualKeyboard()
    told: deque[BridgeEvent] = deque(maxlen=1)
    link = Link(lambda: VirtualTransport(keyboard), told.append)
    link.start()
    try:
        assert link.wait_for(LinkState.READY, 10)
        link.show(TextFrame(("question",)))
        wait_until(lambda: keyboard.panel() == shown("question"))
        link.set_reflex(Reflex(TextFrame(("reply",)), ENTER, frozenset(), told[-1]))
        wait_until(lambda: link._reflex._planned is not None)
        keyboard.press(Usage.ENTER)
        wait_until(lambda: keyboard.panel() == shown("reply"))
        assert isinstance(told[-1], KeyPressed)
    finally:
        assert link.stop(10)


def test_set_from_many_threads_never_shows_what_was_replaced() -> None:
    """The last `show` after a `set_reflex(None)` stands, whatever keys come meanwhile."""
    keyboard = VirtualKeyboard()
    told: deque[BridgeEvent] = deque(maxlen=1)
    link = Link(lambda: VirtualTransport(keyboard), told.append)
    link.start()
    stop = threading.Event()

    def type_on() -> None:
        while not stop.is_set():
            keyboard.macro(ASK)
            time.sleep(0.001)

    typist = threading.Thread(target=type_on)
    try:
        wait_until(lambda: told)
        typist.start()
        for number in range(60):
            reply = TextFrame((f"reply {number}",))
            link.set_reflex(Reflex(reply, frozenset(), frozenset({ASK}), told[-1]))
            time.sleep(0.002)
            link.set_reflex(None)
            link.show(TextFrame((f"shown {number}",)))
        wait_until(lambda: keyboard.panel() == shown("shown 59"))
        time.sleep(0.2)
        assert keyboard.panel() == shown("shown 59")
    finally:
        stop.set()
        typist.join()
        assert link.stop(10)


def shown(text: str) -> BitmapFrame:
    """The panel of a board that shows `text` in its first row."""
    lab = ReflexLab()
    lab.show(text)
    return lab.keyboard.panel()


def test_another_program_that_has_just_come_is_given_way(lab: ReflexLab) -> None:
    lab.expect("reply")
    lab.session._quiet._others = OneCame()
    lab.keyboard.press(Usage.ENTER)
    incoming = lab.transport.read(1)
    assert incoming is not None
    lab.link._react(incoming, lab.session, lab.transport, lab.now)
    assert lab.last_texts() == []
    assert lab.session._quiet.silent_until > lab.now


class OneCame:
    """Another program opened the keyboard a moment ago."""

    def __init__(self) -> None:
        self._signs = iter([Sign.OPENED])

    def sign(self) -> Sign | None:
        return next(self._signs, None)

    def present(self) -> str | None:
        return "VIA"
