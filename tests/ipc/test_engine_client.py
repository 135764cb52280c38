# SPDX-License-Identifier: Apache-2.0
"""EngineClient: states, what happens to requests, restarts, and that nothing is left behind."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from engine.channel import MessageTooLargeError
from engine.client import (
    FAKE_ENGINE,
    MAX_OPEN,
    ClientLimits,
    EngineClient,
    EngineState,
)
from engine.errors import EngineUnavailableError
from engine.messages import (
    Cancel,
    Chat,
    Event,
    Failed,
    Forget,
    Forgotten,
    ModelLoaded,
    ReplyFinished,
    ReplyGrew,
    Suggest,
    SuggestionsReady,
    Turn,
)
from tests.helpers.engines import WAIT_S, Supervised, argv_for, supervised
from tests.helpers.processes import command_line, is_zombie
from tests.helpers.timing import undisturbed

_CANARY = "zyzzyva"
_NO_RESTART = ClientLimits(connect_s=60.0, exit_s=0.5, restarts=0)
posix = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A reply of 400 tokens that takes 4 s."""
    path = tmp_path / "script.json"
    path.write_text(json.dumps({"replies": ["word " * 400], "token_ms": 10}))
    return path


@pytest.fixture(params=["script", pytest.param("smollm2", marks=pytest.mark.model)])
def model(request: pytest.FixtureRequest) -> Path:
    """The scripted and the real model."""
    path: Path = request.getfixturevalue(request.param)
    return path


def _odd(kind: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "tests.helpers.odd_engine", kind)


def _chat(request: int) -> Chat:
    turns = [Turn(role="user", content="Tell me a story.")]
    return Chat(request=request, turns=turns, max_tokens=1000)


def _kill(talk: Supervised) -> None:
    pid = talk.client.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


def _wait_until_gone(pid: int) -> float:
    """Seconds until the process is gone (a zombie is: its parent was killed, and init may not reap)."""
    start = time.monotonic()
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() - start < WAIT_S
        time.sleep(0.01)
    return time.monotonic() - start


# ---------------------------------------------------------------- ordinary life


def test_states_of_an_ordinary_life() -> None:
    with supervised() as talk:
        before = talk.client.state
        talk.client.start("default")
        assert (before, talk.client.state) == (EngineState.STOPPED, EngineState.STARTING)
        states = [talk.states.get(timeout=WAIT_S) for _ in range(3)]
        talk.client.stop()
        states.append(talk.states.get(timeout=WAIT_S))
    assert states == [
        (EngineState.STARTING, ""),
        (EngineState.LOADING, ""),
        (EngineState.READY, ""),
        (EngineState.STOPPED, ""),
    ]
    assert talk.client.pid is None


def test_commands_wait_while_the_child_starts() -> None:
    with supervised() as talk:
        talk.client.start("default")
        talk.send(Forget(request=1))
        talk.until(EngineState.READY)
        assert talk.next().type == "model-loaded"
        assert isinstance(talk.next(), Forgotten)


def test_commands_are_refused_when_nothing_runs() -> None:
    with supervised() as talk:
        with pytest.raises(EngineUnavailableError):
            talk.send(Forget(request=1))
        talk.start()
        talk.client.stop()
        with pytest.raises(EngineUnavailableError):
            talk.send(Forget(request=2))


def test_request_numbers_are_used_once_at_a_time(script: Path) -> None:
    with supervised() as talk:
        talk.start(script)
        talk.send(_chat(1))
        with pytest.raises(ValueError, match="number 1"):
            talk.send(Forget(request=1))
        with pytest.raises(ValueError, match="number 0"):
            talk.send(Forget(request=0))
        talk.send(Cancel(request=1))
        talk.until_last(1)
        talk.ask(Forget(request=1))


def test_open_requests_are_bounded_and_all_are_answered(script: Path) -> None:
    with supervised() as talk:
        talk.start(script)
        for request in range(1, MAX_OPEN + 1):
            talk.send(Suggest(request=request, text="one two three"))
        with pytest.raises(EngineUnavailableError, match=str(MAX_OPEN)):
            talk.send(Suggest(request=MAX_OPEN + 1, text="x"))
        answers = [talk.next() for _ in range(MAX_OPEN)]
        assert all(isinstance(answer, SuggestionsReady) for answer in answers)
        talk.ask(Suggest(request=1, text="again"))


def test_a_message_over_the_limit_is_refused_and_leaves_no_trace() -> None:
    turns = [Turn(role="user", content="x" * 32_000)] * 40
    with supervised() as talk:
        talk.start()
        with pytest.raises(MessageTooLargeError):
            talk.send(Chat(request=1, turns=turns))
        talk.ask(Forget(request=1))


def test_a_large_message_passes_while_replies_come(script: Path) -> None:
    turns = [Turn(role="user", content="x" * 32_000)] * 30  # 960 kB, far over any socket's buffer
    with supervised() as talk:
        talk.start(script)
        talk.send(Chat(request=1, turns=turns, max_tokens=3))
        assert isinstance(talk.until_last(1)[-1], ReplyFinished)


def test_send_returns_at_once_while_the_child_is_frozen(script: Path) -> None:
    with supervised() as talk:
        talk.start(script)
        pid = talk.client.pid
        assert pid is not None
        psutil.Process(pid).suspend()
        for request in range(1, 65):  # 2 MB in all; one that waited would wait for ever
            talk.send(Suggest(request=request, text="x" * 32_000))
        psutil.Process(pid).resume()
        for request in range(1, 65):
            talk.until_last(request)


def test_stop_ends_a_frozen_child(script: Path) -> None:
    with supervised(limits=ClientLimits(exit_s=0.3)) as talk:
        talk.start(script)
        pid = talk.client.pid
        assert pid is not None
        psutil.Process(pid).suspend()
        for request in range(1, 65):
            talk.send(Suggest(request=request, text="x" * 32_000))
        talk.client.stop(0.5)
        assert not psutil.pid_exists(pid)


def test_stop_in_mid_reply_answers_the_request_and_waits_for_no_more_of_it(script: Path) -> None:
    script.write_text(json.dumps({"replies": ["word " * 400], "token_ms": 1000}))
    with supervised(limits=ClientLimits(exit_s=60)) as talk:
        talk.start(script)
        talk.send(_chat(1))
        assert isinstance(talk.next(), ReplyGrew)
        start = time.monotonic()
        talk.client.stop(60)
        assert time.monotonic() - start < 30  # who does not leave is ended after a minute
        failed = talk.until_last(1)[-1]
        assert isinstance(failed, Failed)
        assert failed.code == "engine-stopped"


def test_unload_gives_the_memory_back_and_start_brings_the_model_again() -> None:
    with supervised(limits=ClientLimits(exit_s=60)) as talk:
        talk.start()
        pid = talk.client.pid
        assert pid is not None
        psutil.Process(pid).suspend()
        start = time.monotonic()
        talk.client.unload()
        assert time.monotonic() - start < 30  # the child does not leave yet
        psutil.Process(pid).resume()
        talk.until(EngineState.STOPPED)
        assert not psutil.pid_exists(pid)
        talk.start()
        talk.ask(Forget(request=1))


def test_start_takes_the_place_of_a_running_child() -> None:
    with supervised() as talk:
        talk.start()
        first = talk.client.pid
        assert talk.start(max_context=64).context_length == 64
        assert talk.client.pid not in (first, None)
        assert first is not None
        assert not psutil.pid_exists(first)


def test_stop_while_the_child_starts() -> None:
    with supervised(_odd("never-connects"), ClientLimits(exit_s=0.2)) as talk:
        talk.client.start("default")
        talk.send(Forget(request=1))
        talk.client.stop()
        assert talk.until_last(1)[-1].type == "failed"
        talk.until(EngineState.STOPPED)


def test_the_child_runs_at_a_lower_priority_in_a_session_of_its_own() -> None:
    with supervised() as talk:
        talk.start()
        pid = talk.client.pid
        assert pid is not None
        if sys.platform != "win32":
            assert os.getsid(pid) == pid
            os.kill(pid, signal.SIGINT)  # Ctrl-C is none of its business
            talk.ask(Forget(request=1))
        ours, its = psutil.Process().nice(), psutil.Process(pid).nice()
        assert its > ours or its == 19  # there is nothing lower


@pytest.mark.skipif(sys.platform != "linux", reason="reads another process's limits")
def test_a_crash_writes_no_core_file() -> None:
    with supervised() as talk:
        talk.start()
        assert psutil.Process(talk.client.pid).rlimit(psutil.RLIMIT_CORE) == (1, 1)


def test_the_key_is_in_neither_arguments_nor_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    key = b"0123456789abcdef" * 2
    monkeypatch.setattr(secrets, "token_bytes", lambda count: key[:count])
    with supervised() as talk:
        talk.start()
        child = psutil.Process(talk.client.pid)
        assert child.cmdline()[1:6] == ["-P", "-m", "engine.server", "--fake", "--address"]
        shown = f"{child.cmdline()} {child.environ()}"
        assert key.decode() not in shown
        assert key.hex() not in shown


# ---------------------------------------------------------------- deaths


@posix
@pytest.mark.expected_log("engine child died: it was killed by SIGKILL")
def test_killed_in_mid_reply_the_next_reply_works(model: Path) -> None:
    with supervised(argv_for(model)) as talk:
        began = time.monotonic()
        loaded = talk.start(model)
        first = time.monotonic() - began - loaded.seconds
        talk.send(_chat(1))
        talk.send(Suggest(request=2, text="waiting"))
        assert isinstance(talk.next(), ReplyGrew)
        killed = time.monotonic()
        _kill(talk)
        for request in (1, 2):
            failed = talk.until_last(request)[-1]
            assert isinstance(failed, Failed)
            assert failed.code == "engine-died"
        told = time.monotonic() - killed
        assert "SIGKILL" in talk.until(EngineState.RESTARTING)
        talk.send(_chat(3))
        again = talk.next()
        assert isinstance(again, ModelLoaded)
        assert isinstance(talk.next(), ReplyGrew)
        seconds = time.monotonic() - killed
        print(
            f"killed: told after {told * 1000:.0f} ms, next reply began after {seconds * 1000:.0f} ms, "
            f"of which {again.seconds * 1000:.0f} ms to load the model"
        )
        assert seconds - again.seconds < 3 * first + 3.0  # it is a start and no more


@posix
@pytest.mark.expected_log("engine child died")
@pytest.mark.expected_log("engine given up: the engine died 4 times within 10 minutes")
def test_the_fourth_death_within_ten_minutes_is_the_last() -> None:
    now = [0.0]
    with supervised(clock=lambda: now[0]) as talk:
        talk.start()

        def die() -> None:
            _kill(talk)
            talk.until(EngineState.RESTARTING)
            talk.until(EngineState.READY)
            assert talk.next().type == "model-loaded"

        for now[0] in (0.0, 100.0, 599.0, 600.0):  # the first is 10 minutes old at the fourth
            die()
        now[0] = 699.0
        talk.send(Forget(request=1))
        assert isinstance(talk.next(), Forgotten)
        _kill(talk)
        state, reason = talk.states.get(timeout=WAIT_S)
        assert state is EngineState.FAILED
        assert "died 4 times within 10 minutes" in reason
        assert "SIGKILL" in reason
        with pytest.raises(EngineUnavailableError):
            talk.send(Forget(request=2))
        talk.start()  # by hand, it gets a new chance
        talk.ask(Forget(request=2))


def _fail(talk: Supervised) -> str:
    """Start and wait for FAILED; gives the reason."""
    talk.client.start("default")
    while True:
        state, reason = talk.states.get(timeout=WAIT_S)
        if state is EngineState.FAILED:
            return reason


@pytest.mark.expected_log("engine child died")
@pytest.mark.expected_log("engine given up")
@pytest.mark.parametrize(
    ("kind", "connect_s", "words"),
    [
        ("breaks-at-once", 60.0, "ended with exit code 1\ncannot find libsomething.so"),
        ("never-connects", 1.0, "did not connect within 1 s"),
        ("never-speaks", 1.0, "did not connect within 1 s"),
        ("speaks-garbage", 60.0, "not a valid message"),
    ],
)
def test_a_child_that_is_none_is_given_up_with_the_reason(
    kind: str, connect_s: float, words: str
) -> None:
    with supervised(_odd(kind), replace(_NO_RESTART, connect_s=connect_s)) as talk:
        assert words in _fail(talk)
        assert talk.client.pid is None


@pytest.mark.expected_log("engine child died")
@pytest.mark.expected_log("engine given up")
def test_a_child_that_cannot_start_is_tried_four_times() -> None:
    with supervised(_odd("breaks-at-once")) as talk:
        assert "4 times" in _fail(talk)


@pytest.mark.expected_log("engine given up: the engine speaks message version")
def test_another_version_is_refused_at_once() -> None:
    with supervised(_odd("other-version")) as talk:
        assert "install both from the same release" in _fail(talk)


@pytest.mark.expected_log("engine child died")
@pytest.mark.expected_log("engine given up")
def test_a_program_that_does_not_exist() -> None:
    with supervised(("/nonexistent/python",), _NO_RESTART) as talk:
        assert "cannot start the engine child" in _fail(talk)


@pytest.mark.expected_log("engine given up")
def test_a_model_that_cannot_be_loaded_is_not_tried_again(tmp_path: Path) -> None:
    with supervised() as talk:
        talk.client.start(tmp_path / "missing.json")
        talk.send(Forget(request=1))
        failed = talk.next()
        assert isinstance(failed, Failed)
        assert (failed.request, failed.code) == (1, "model-file")
        states = [talk.states.get(timeout=WAIT_S) for _ in range(3)]
        assert [state for state, _ in states][1:] == [EngineState.LOADING, EngineState.FAILED]
        assert "missing.json" in states[-1][1]
        assert talk.client.pid is None


@pytest.mark.expected_log("engine child died")
@pytest.mark.expected_log("engine given up")
def test_the_last_words_of_a_child_hold_no_content(caplog: pytest.LogCaptureFixture) -> None:
    with supervised(_odd("quotes-and-dies"), _NO_RESTART) as talk, caplog.at_level("DEBUG"):
        talk.start()
        failed = talk.ask(Suggest(request=1, text=_CANARY))
        assert isinstance(failed, Failed)
        assert _CANARY not in failed.message
        state, reason = talk.states.get(timeout=WAIT_S)
        assert state is EngineState.FAILED
        assert "exit code 7" in reason
        assert "all is lost" in reason
        assert _CANARY not in reason
    assert _CANARY not in caplog.text


def test_answers_to_nothing_are_dropped_and_none_comes_twice() -> None:
    with supervised(_odd("answers-strangely"), ClientLimits(exit_s=0.2)) as talk:
        talk.start()
        assert isinstance(talk.ask(Forget(request=5)), Forgotten)
        talk.client.stop()
        assert talk.events.empty()


@pytest.mark.expected_log("unexpected ZeroDivisionError at test_engine_client.py")
def test_a_callback_that_raises_ends_in_failed_without_a_child() -> None:
    states: list[EngineState] = []
    failed = threading.Event()

    def on_state(state: EngineState, reason: str) -> None:
        states.append(state)
        if state is EngineState.FAILED:
            failed.set()

    def on_event(event: Event) -> None:
        raise ZeroDivisionError

    client = EngineClient(on_event, on_state, argv=FAKE_ENGINE)
    client.start("default")
    assert failed.wait(WAIT_S)
    assert client.pid is None
    client.stop()
    assert states[-1] is EngineState.FAILED


@posix
def test_the_child_leaves_when_its_parent_is_killed(model: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-m", "tests.helpers.engine_parent", str(model)],
        stdout=subprocess.PIPE,
        text=True,
    )
    with parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert psutil.Process(child).status() != psutil.STATUS_ZOMBIE
        parent.kill()
        print(f"child gone {_wait_until_gone(child) * 1000:.0f} ms after its parent was killed")


# ---------------------------------------------------------------- cost


def test_the_parent_stays_small() -> None:
    """The client in a fresh interpreter, as the companion has it."""
    code = (
        "import sys, psutil, engine.client\n"
        "heavy = [m for m in ('torch', 'numpy', 'tokenizers') if m in sys.modules]\n"
        "print(heavy, psutil.Process().memory_info().rss // 2**20)"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    heavy, rss = out.rsplit(maxsplit=1)
    print(f"RSS with engine.client imported: {rss} MiB")
    assert heavy == "[]"
    assert int(rss) < 50


def _cycles(count: int) -> None:
    me = psutil.Process()
    for cycle in range(count):
        with supervised() as talk:
            talk.start()
            talk.ask(Forget(request=1))
        if cycle == 0:  # the first may import and cache
            threads = threading.active_count()
            files = me.num_fds()
    assert threading.active_count() == threads
    assert me.num_fds() == files
    assert not [p for p in me.children() if "engine" in " ".join(command_line(p))]
    assert not [p for p in me.children() if is_zombie(p)]


@posix
def test_starts_and_stops_leave_nothing_behind() -> None:
    _cycles(10)


@posix
@pytest.mark.slow
def test_a_hundred_starts_and_stops_leave_nothing_behind() -> None:
    _cycles(100)


def test_round_trip_is_short() -> None:
    with supervised() as talk:
        talk.start()
        times = []
        for request in range(1, 1001):
            start = time.perf_counter()
            talk.ask(Forget(request=request))
            times.append((time.perf_counter() - start) * 1e6)
        times.sort()
        print(f"round trip p50 {times[500]:.0f} us, p99 {times[990]:.0f} us")
        assert undisturbed(times) < 5000
