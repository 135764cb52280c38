# SPDX-License-Identifier: Apache-2.0
"""An engine child that hangs is noticed and replaced; one that is only slow is left in peace."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from engine.client import ClientLimits, EngineState
from engine.inbox import Job
from engine.messages import Chat, Failed, Forget, Forgotten, ModelLoaded, ReplyFinished, Turn
from engine.pulse import Effort, Pulse
from tests.helpers.engines import Supervised

IDLE = Effort(1.0, 0)


class Watched:
    """A pulse whose process does what the test says."""

    def __init__(self) -> None:
        self.effort = IDLE
        self.pulse = Pulse(lambda _: None, lambda: self.effort)
        self.job = Job(Forget(request=7))
        self.pulse.watch(self.job)
        assert self.pulse.look() == 7  # it has just begun

    def computes(self, seconds: float) -> None:
        self.effort = Effort(self.effort.computed_s + seconds, self.effort.read)


def test_a_worker_that_waits_for_ever_gives_no_sign_though_threads_live() -> None:
    watched = Watched()
    for _ in range(20):
        watched.computes(0.0002)  # the looking itself
        assert watched.pulse.look() is None
    watched.job.cancelled()
    assert watched.pulse.look() == 7  # it goes on after all
    assert watched.pulse.look() is None


def test_one_long_step_is_no_hang_while_the_process_computes_or_reads() -> None:
    watched = Watched()
    for _ in range(120):
        watched.computes(0.9)
        assert watched.pulse.look() == 7
    for _ in range(120):
        watched.effort = Effort(watched.effort.computed_s, watched.effort.read + 1)
        assert watched.pulse.look() == 7
    assert watched.pulse.look() is None


def test_computing_for_ever_without_a_step_is_a_hang_as_well() -> None:
    watched = Watched()
    signs = 0
    for _ in range(2000):
        watched.computes(1.0)
        signs += watched.pulse.look() is not None
    assert 120 < signs < 1000


def test_rests_and_other_machines_are_waited_for_and_no_job_needs_no_sign() -> None:
    watched = Watched()
    watched.job.is_resting = True
    assert watched.pulse.look() == watched.pulse.look() == 7
    watched.job.is_resting = False
    watched.pulse.is_elsewhere = True
    assert watched.pulse.look() == watched.pulse.look() == 7
    watched.pulse.watch(None)
    assert watched.pulse.look() is None


def _chat(request: int) -> Chat:
    return Chat(request=request, turns=[Turn(role="user", content="why?")], max_tokens=4)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.expected_log("gave no sign of life")
def test_a_stopped_child_with_work_is_replaced_and_one_without_is_left() -> None:
    talk = Supervised(limits=ClientLimits(silence_s=6))
    try:
        talk.start()
        stopped = talk.client.pid
        assert stopped is not None
        os.kill(stopped, signal.SIGSTOP)
        time.sleep(8)  # nothing is asked of it
        os.kill(stopped, signal.SIGCONT)
        assert isinstance(talk.ask(Forget(request=9)), Forgotten)
        assert talk.client.pid == stopped
        os.kill(stopped, signal.SIGSTOP)
        talk.send(_chat(1))
        failed = talk.next()
        assert isinstance(failed, Failed)
        assert failed.code == "engine-died"
        assert "gave no sign of life for 6 s" in talk.until(EngineState.RESTARTING)
        assert isinstance(talk.next(), ModelLoaded)
        assert talk.client.pid != stopped
        assert isinstance(talk.ask(_chat(2)), ReplyFinished)
    finally:
        talk.client.stop()


def test_a_slow_answer_is_no_hang(tmp_path: Path) -> None:
    """The scripted engine sleeps for each token as if another device computed it."""
    script = tmp_path / "slow.json"
    script.write_text('{"replies": ["a"], "token_ms": 8000}')
    talk = Supervised(limits=ClientLimits(silence_s=6))
    try:
        talk.start(script)
        assert isinstance(talk.ask(_chat(1)), ReplyFinished)
        assert isinstance(talk.ask(Forget(request=2)), Forgotten)
    finally:
        talk.client.stop()
