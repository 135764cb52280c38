# SPDX-License-Identifier: Apache-2.0
"""The thread that lists devices: prompt, bounded in time, deaf to errors of drivers."""

from __future__ import annotations

import itertools
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from firmware_bridge.discovery.candidates import Candidate
from firmware_bridge.discovery.watch import (
    ChangeSource,
    DeviceWatch,
    EnumerationHungError,
    NameSource,
    NoSource,
    OwnLooks,
    best_source,
)
from firmware_bridge.transport.base import DeviceIdentity
from tests.helpers.waiting import wait_until


def candidate(path: str) -> Candidate:
    return Candidate(path, DeviceIdentity("hid", 1, 1, path), True, "")


class Lister:
    """A scan that gives `found`; may be told to hang or fail."""

    def __init__(self) -> None:
        self.found = [candidate("a")]
        self.calls = 0
        self.free = threading.Event()
        self.free.set()
        self.error: Exception | None = None

    def __call__(self) -> list[Candidate]:
        self.calls += 1
        self.free.wait(60)
        if self.error is not None:
            raise self.error
        return list(self.found)


@pytest.fixture
def lister() -> Lister:
    return Lister()


class Every:
    """A system that tells nothing; looked at every `poll_s`."""

    def __init__(self, poll_s: float) -> None:
        self.poll_s = poll_s

    def wait(self, timeout_s: float) -> bool:
        time.sleep(min(timeout_s, self.poll_s))
        return False

    def close(self) -> None:
        pass


MakeWatch = Callable[..., DeviceWatch]


@pytest.fixture
def make_watch(lister: Lister) -> Iterator[MakeWatch]:
    started: list[DeviceWatch] = []

    def make(source: ChangeSource | None = None, **times: float) -> DeviceWatch:
        watch = DeviceWatch([lister], source or NoSource(), **times)
        watch.start()
        started.append(watch)
        return watch

    yield make
    lister.free.set()
    for watch in started:
        watch.stop()
        assert not watch._thread.is_alive()


def test_the_first_list_is_waited_for(make_watch: MakeWatch, lister: Lister) -> None:
    assert make_watch().candidates() == (candidate("a"),)


def test_without_events_it_looks_again_after_the_interval(
    make_watch: MakeWatch, lister: Lister
) -> None:
    watch = make_watch(Every(0.05))
    known = watch.candidates()
    assert not watch.wait_change(known, 0.01)
    lister.found.append(candidate("b"))
    assert watch.wait_change(known, 30)
    assert watch.candidates() == (candidate("a"), candidate("b"))


def test_a_change_of_device_names_is_noticed_at_once(make_watch: MakeWatch, lister: Lister) -> None:
    names = {"hidraw0"}
    watch = make_watch(NameSource(lambda: frozenset(names)))
    known = watch.candidates()
    wait_until(lambda: lister.calls == 2)  # the beginning counts as a change; after that seldom
    lister.found.append(candidate("b"))
    assert not watch.wait_change(known, 0.3)
    assert lister.calls == 2
    names.add("hidraw1")
    assert watch.wait_change(known, 30)


def test_a_device_that_was_told_before_all_of_it_was_there_is_found_a_second_later(
    make_watch: MakeWatch, lister: Lister
) -> None:
    names = {"hidraw0"}
    watch = make_watch(NameSource(lambda: frozenset(names)))
    known = watch.candidates()
    wait_until(lambda: lister.calls == 2)  # the beginning counts as a change
    names.add("hidraw1")
    wait_until(lambda: lister.calls == 3)
    lister.found.append(candidate("b"))  # complete only now
    assert watch.wait_change(known, 30)
    calls = lister.calls
    time.sleep(1.5)
    assert lister.calls == calls  # and then seldom


def test_a_device_that_comes_while_the_devices_are_listed_is_noticed_right_after() -> None:
    names = {"hidraw0"}
    source = NameSource(lambda: frozenset(names))
    names.add("hidraw1")
    start = time.monotonic()
    assert source.wait(60)
    assert time.monotonic() - start < 30


def test_the_nodes_of_one_keyboard_make_one_change() -> None:
    looks = itertools.count(1)  # each of the first looks finds one node more
    source = NameSource(lambda: min(next(looks), 3))
    assert source.wait(60)
    assert not source.wait(0.05)


def test_names_that_never_rest_are_told_all_the_same() -> None:
    counter = itertools.count()
    source = NameSource(lambda: next(counter))
    assert source.wait(5)


def test_a_word_of_the_kernel_ends_the_pause_and_a_flood_does_no_harm() -> None:
    names = {"hidraw0"}
    ours, kernel = socket.socketpair(type=socket.SOCK_STREAM)
    ours.setblocking(False)
    source = NameSource(lambda: frozenset(names), uevents=ours)
    kernel.sendall(b"change@/devices/battery\0" * 1000)
    start = time.monotonic()
    assert not source.wait(60)
    names.add("hidraw1")
    kernel.sendall(b"add@/devices/usb\0")
    assert source.wait(60)
    assert time.monotonic() - start < 30
    assert not source.wait(0.01)
    source.close()
    kernel.close()
    assert ours.fileno() == -1


def test_who_subscribed_hears_of_new_lists_only(make_watch: MakeWatch, lister: Lister) -> None:
    heard: list[str] = []
    watch = make_watch(Every(0.01))
    watch.candidates()
    watch.subscribe(lambda: heard.append(threading.current_thread().name))
    calls = lister.calls
    wait_until(lambda: lister.calls > calls + 3)
    assert heard == []
    lister.found.append(candidate("b"))
    wait_until(lambda: heard)
    calls = lister.calls
    wait_until(lambda: lister.calls > calls + 3)
    assert heard == ["thock-devices"]


def test_a_list_that_hangs_is_told_and_holds_up_nobody(
    make_watch: MakeWatch, lister: Lister
) -> None:
    watch = make_watch(Every(0.01), limit_s=30.0)
    watch.candidates()
    lister.free.clear()
    calls = lister.calls
    wait_until(lambda: lister.calls > calls)
    watch._limit_s = 0.1
    wait_until(watch._is_late)
    start = time.monotonic()
    with pytest.raises(EnumerationHungError) as caught:
        watch.candidates()
    assert time.monotonic() - start < 20  # the list hangs for longer
    assert "unplug them" in caught.value.advice
    watch._limit_s = 30.0
    lister.free.set()
    wait_until(lambda: not watch._is_late())
    assert watch.candidates() == (candidate("a"),)


def test_a_list_that_hangs_from_the_start_is_told(make_watch: MakeWatch, lister: Lister) -> None:
    lister.free.clear()
    watch = make_watch(limit_s=0.1)
    with pytest.raises(EnumerationHungError):
        watch.candidates()
    watch._limit_s = 30.0  # for its end


@pytest.mark.expected_log("hangs and is left behind")
def test_stop_leaves_a_hung_list_behind(lister: Lister) -> None:
    watch = DeviceWatch([lister], NoSource(), limit_s=0.1)
    lister.free.clear()
    watch.start()
    wait_until(lambda: lister.calls)
    watch.stop()
    lister.free.set()
    watch._thread.join(10)


@pytest.mark.expected_log("listing devices failed")
def test_one_kind_of_device_that_cannot_be_listed_does_not_hide_the_other(
    lister: Lister, caplog: pytest.LogCaptureFixture
) -> None:
    broken = Lister()
    broken.error = OSError("driver")
    watch = DeviceWatch([broken, lister], Every(0.01))
    watch.start()
    try:
        assert watch.candidates() == (candidate("a"),)
        wait_until(lambda: broken.calls > 3)
    finally:
        watch.stop()
    assert caplog.text.count("listing devices failed") == 1


def test_the_best_source_depends_on_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert isinstance(best_source(OwnLooks()), NoSource)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(Path, "exists", lambda path: False)
    source = best_source(OwnLooks())
    assert isinstance(source, NameSource)
    source.close()


@pytest.mark.expected_log("tells no changes")
def test_a_source_that_fails_is_replaced_by_looking(make_watch: MakeWatch, lister: Lister) -> None:
    class Broken(Every):
        def wait(self, timeout_s: float) -> bool:
            raise OSError(105, "No buffer space available")

    watch = make_watch(Broken(60))
    watch.candidates()
    wait_until(lambda: isinstance(watch._source, NoSource))
    calls = lister.calls
    wait_until(lambda: lister.calls > calls)
