# SPDX-License-Identifier: Apache-2.0
"""Threads use a connection while others end and close it: its descriptor is closed once, by the last one."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import Pipe

import pytest

from engine.wire import Wire
from tests.helpers.waiting import wait_until

posix = pytest.mark.skipif(sys.platform == "win32", reason="pipes there cannot be shut down")

ROUNDS = 300
WAIT_S = 30.0


def read_to_the_end(wire: Wire) -> None:
    try:
        while True:
            wire.recv_bytes()
    except (EOFError, OSError):
        pass
    finally:
        wire.close()


@posix
def test_who_ends_it_leaves_the_descriptor_open() -> None:
    ours, theirs = Pipe()
    wire = Wire(ours)
    wire.end()
    wire.end()
    assert os.fstat(ours.fileno())
    read_to_the_end(wire)
    assert ours.closed
    wire.end()
    wire.close()
    theirs.close()


@posix
@pytest.mark.parametrize("call_off", [Wire.end, Wire.close])
def test_whoever_waits_is_woken_before_the_descriptor_is_closed(
    call_off: Callable[[Wire], None],
) -> None:
    ours, theirs = Pipe()
    wire = Wire(ours)
    number = ours.fileno()
    reader = threading.Thread(target=read_to_the_end, args=(wire,))
    reader.start()
    wait_until(lambda: wire._users == 1)
    with wire._in_use():  # somebody sends, too
        call_off(wire)
        assert os.fstat(number), "a descriptor in use was closed"
        reader.join(WAIT_S)
        assert not reader.is_alive()
        assert os.fstat(number), "a descriptor in use was closed"
    assert ours.closed
    theirs.close()


@posix
def test_ending_and_closing_at_once_closes_once() -> None:
    with ThreadPoolExecutor(4) as pool:
        for _ in range(ROUNDS):
            ours, theirs = Pipe()
            wire = Wire(ours)
            start = threading.Barrier(4)

            def begin(work: Callable[[], None], start: threading.Barrier = start) -> None:
                start.wait(WAIT_S)
                work()

            works = (wire.end, lambda wire=wire: read_to_the_end(wire), wire.close, wire.end)
            calls = [pool.submit(begin, work) for work in works]
            for call in calls:
                call.result(WAIT_S)
            assert ours.closed
            theirs.close()  # raises if somebody closed the wrong descriptor


def test_after_the_close_no_new_file_is_touched() -> None:
    ours, theirs = Pipe()
    wire = Wire(ours)
    wire.close()
    theirs.close()
    others = [Pipe() for _ in range(4)]  # they get the numbers that became free
    wire.end()
    wire.close()
    for use in (lambda: wire.send_bytes(b"x"), wire.recv_bytes, lambda: wire.poll(0.0)):
        with pytest.raises(OSError, match="closed"):
            use()
    for one, two in others:
        one.send_bytes(b"still here")
        assert two.recv_bytes() == b"still here"
        one.close()
        two.close()
