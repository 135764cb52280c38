# SPDX-License-Identifier: Apache-2.0
"""One thread reads a connection, others end it: nobody closes a descriptor that is not his any more."""

from __future__ import annotations

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import Pipe

import pytest

from app.ipc.protocol import Wire

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes there cannot be shut down")

ROUNDS = 300


def read_to_the_end(wire: Wire) -> None:
    try:
        while True:
            wire.connection.recv_bytes()
    except EOFError:
        pass
    finally:
        wire.close()


def test_the_one_who_ends_leaves_the_descriptor_to_the_reader() -> None:
    ours, theirs = Pipe()
    wire = Wire(ours)
    wire.end()
    wire.end()
    number = ours.fileno()
    assert os.fstat(number)
    read_to_the_end(wire)
    assert ours.closed
    wire.end()
    wire.close()
    theirs.close()


def test_ending_and_closing_at_once_closes_once() -> None:
    with ThreadPoolExecutor(3) as pool:
        for _ in range(ROUNDS):
            ours, theirs = Pipe()
            wire = Wire(ours)
            start = threading.Barrier(3)

            def end(wire: Wire = wire, start: threading.Barrier = start) -> None:
                start.wait()
                wire.end()

            def close(wire: Wire = wire, start: threading.Barrier = start) -> None:
                start.wait()
                read_to_the_end(wire)
                wire.close()

            calls = [pool.submit(end), pool.submit(close), pool.submit(end)]
            for call in calls:
                call.result(5)
            assert ours.closed
            theirs.close()  # raises if somebody closed the wrong descriptor


def test_an_end_after_the_close_touches_no_new_file() -> None:
    ours, theirs = Pipe()
    wire = Wire(ours)
    wire.close()
    theirs.close()
    others = [Pipe() for _ in range(4)]  # they get the numbers that became free
    wire.end()
    wire.close()
    for one, two in others:
        one.send_bytes(b"still here")
        assert two.recv_bytes() == b"still here"
        one.close()
        two.close()
