# SPDX-License-Identifier: Apache-2.0
"""The clock of the computer's sleep: still while it is awake, whatever else happens to the clocks."""

from __future__ import annotations

import sys
import time

import pytest

from firmware_bridge.sleep_clock import NAP_S, system_sleep_clock


def test_the_clock_stands_while_the_computer_is_awake() -> None:
    slept = system_sleep_clock()
    before = slept()
    time.sleep(0.2)
    assert abs(slept() - before) < NAP_S / 5


@pytest.mark.skipif(sys.platform != "linux", reason="the clocks of Linux")
def test_sleep_shows_and_a_wall_clock_that_is_set_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = {time.CLOCK_BOOTTIME: 500.0, time.CLOCK_MONOTONIC: 400.0}
    monkeypatch.setattr(time, "clock_gettime", clocks.__getitem__)
    monkeypatch.setattr(time, "time", lambda: 1e9)
    slept = system_sleep_clock()
    before = slept()
    monkeypatch.setattr(time, "time", lambda: 2e9)
    assert slept() == before
    clocks[time.CLOCK_BOOTTIME] += 3600
    assert slept() == before + 3600


def test_a_system_without_such_clocks_falls_back_to_the_wall_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "platform", "plan9")
    slept = system_sleep_clock()
    now = time.time()
    before = slept()
    monkeypatch.setattr(time, "time", lambda: now + 3600)
    assert slept() == pytest.approx(before + 3600, abs=60)
