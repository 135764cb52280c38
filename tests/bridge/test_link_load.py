# SPDX-License-Identifier: Apache-2.0
"""Fast typing under heavy output, and many connections: nothing lost, nothing left behind."""

from __future__ import annotations

import gc
import random
import threading
import time
from pathlib import Path

import pytest

from firmware_bridge.display.frame import BitmapFrame, TextFrame
from firmware_bridge.events import BridgeEvent, EventsDropped, KeyPressed, KeyReleased, LinkReady
from firmware_bridge.lights.overlay import LightOverlay, Rgb
from firmware_bridge.link import Link
from firmware_bridge.link_state import LinkOptions, LinkState
from firmware_bridge.transport.virtual import VirtualKeyboard, VirtualTransport
from tests.helpers.timing import undisturbed
from tests.helpers.waiting import wait_until

PRESSES = 2000
WORDS_A_MINUTE = 200
LETTERS_A_WORD = 5
AHEAD = 60  # events that the link has not told; the keyboard and its port keep more


def hammer(link: Link, stop: threading.Event) -> None:
    """Output as fast as it can be asked for."""
    dice = random.Random(1)
    while not stop.is_set():
        link.show(TextFrame((f"{dice.random()}"[:21], f"{dice.random()}"[:21])))
        link.set_status(dice.randrange(6))
        link.show(BitmapFrame(128, 32, dice.randbytes(512)))
        link.set_lights(LightOverlay(leds={dice.randrange(16): Rgb(1, 2, 3)}))
        time.sleep(0.001)


@pytest.mark.parametrize("pause_s", [60 / (WORDS_A_MINUTE * LETTERS_A_WORD) / 20, 0.0])
def test_two_thousand_presses_arrive_in_order_while_output_is_hammered(pause_s: float) -> None:
    """At 20 times the pace of 200 words a minute, and in bursts with no pause within a word."""
    keyboard = VirtualKeyboard()
    events: list[BridgeEvent] = []
    link = Link(lambda: VirtualTransport(keyboard), events.append)
    link.start()
    wait_until(lambda: events)
    assert isinstance(events.pop(), LinkReady)
    stop = threading.Event()
    output = threading.Thread(target=hammer, args=(link, stop))
    output.start()
    times = []
    try:
        for i in range(PRESSES):
            # Where the link has no processor for a while the keyboard's ring would rightly run over.
            # mypy infers no type for a lambda with a default
            wait_until(lambda i=i: 2 * i - len(events) < AHEAD)  # type: ignore[misc]
            start = time.perf_counter()
            keyboard.press(i)
            keyboard.release(i)
            times.append(time.perf_counter() - start)
            if pause_s:
                time.sleep(pause_s)
            elif i % LETTERS_A_WORD == 0:
                time.sleep(0.002)
        wait_until(lambda: len(events) >= 2 * PRESSES)
    finally:
        stop.set()
        output.join()
        assert link.stop(10)
    assert not [event for event in events if isinstance(event, EventsDropped)]
    keys = [(type(e), e.keycode) for e in events if isinstance(e, KeyPressed | KeyReleased)]
    assert keys == [(kind, i) for i in range(PRESSES) for kind in (KeyPressed, KeyReleased)]
    stats = link.stats
    assert stats.dropped == stats.naks == stats.foreign == 0
    assert stats.reports_out > 50
    assert undisturbed(times) < 0.005  # a press waits for one call into the core


def open_files() -> int:
    """Where the system shows them; elsewhere only threads are counted."""
    listing = Path("/proc/self/fd")
    return len(list(listing.iterdir())) if listing.is_dir() else 0


def test_two_hundred_connections_leave_no_thread_and_no_file_behind() -> None:
    keyboard = VirtualKeyboard()
    options = LinkOptions(search_s=0.001, backoff_first_s=0.001, backoff_limit_s=0.001)
    gc.collect()
    threads, files = threading.active_count(), open_files()
    link = Link(lambda: VirtualTransport(keyboard), lambda event: None, options=options)
    link.show(TextFrame(("here again",)))
    link.start()
    for i in range(1, 101):  # one link, the plug pulled each time
        wait_until(lambda i=i: link.stats.connections == i)  # type: ignore[misc]
        assert threading.active_count() == threads + 1
        keyboard.unplug()
        keyboard.plug()
    assert link.stop(10)
    for _ in range(100):  # a new link each time
        other = Link(lambda: VirtualTransport(keyboard), lambda event: None, options=options)
        other.start()
        assert other.wait_for(LinkState.READY, 10)
        assert other.stop(10)
    gc.collect()
    assert threading.active_count() == threads
    assert open_files() == files
    assert not keyboard.subscribed
