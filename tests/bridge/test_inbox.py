# SPDX-License-Identifier: Apache-2.0
"""The inbox keeps order, loses nothing, and its waits end: also where queue.SimpleQueue waits for ever."""

from __future__ import annotations

import queue
import threading
import time

import pytest

from firmware_bridge.inbox import Inbox


def test_what_comes_in_goes_out_in_order() -> None:
    inbox: Inbox[int | None] = Inbox()
    for item in (1, None, 2):
        inbox.put(item)
    assert not inbox.empty()
    assert [inbox.get(0) for _ in range(3)] == [1, None, 2]
    assert inbox.empty()
    with pytest.raises(queue.Empty):
        inbox.get(0)


def test_an_item_ends_the_wait() -> None:
    inbox: Inbox[int] = Inbox()
    threading.Timer(0.05, lambda: inbox.put(7)).start()
    assert inbox.get() == 7


def test_a_wait_ends_however_short_it_is_and_whatever_was_put_before() -> None:
    """queue.SimpleQueue hangs here within some thousand rounds."""
    inbox: Inbox[int] = Inbox()
    end = time.monotonic() + 1
    while time.monotonic() < end:
        inbox.put(1)
        inbox.get()
        for timeout in (0.0, 1e-9, 1e-6, 1e-5):
            with pytest.raises(queue.Empty):
                inbox.get(timeout)


def test_a_wait_is_as_long_as_it_was_asked_for() -> None:
    inbox: Inbox[int] = Inbox()
    inbox.put(1)
    inbox.get()  # the bell has rung for nothing
    began = time.monotonic()
    with pytest.raises(queue.Empty):
        inbox.get(0.2)
    assert 0.2 <= time.monotonic() - began < 30


def test_nothing_is_lost_between_threads() -> None:
    inbox: Inbox[tuple[int, int]] = Inbox()
    count, writers = 3000, 4

    def write(writer: int) -> None:
        for number in range(count):
            inbox.put((writer, number))

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(writers)]
    for thread in threads:
        thread.start()
    got = [inbox.get(10) for _ in range(count * writers)]
    for thread in threads:
        thread.join()
    assert inbox.empty()
    for writer in range(writers):
        assert [number for who, number in got if who == writer] == list(range(count))
