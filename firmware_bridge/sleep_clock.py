# SPDX-License-Identifier: Apache-2.0
"""How long the computer has slept, by two kinds of clocks: one that stops meanwhile and one that goes on.

Their difference grows by a sleep and by nothing else; a wall clock that somebody sets does not move it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

SleepClock = Callable[[], float]
"""Seconds that the computer has slept since some moment in the past."""

NAP_S = 0.5
"""Less than this is no sleep: the clocks are not read at the same moment, and Windows counts in 16 ms."""


def system_sleep_clock() -> SleepClock:
    """The clock of this system.

    Linux: CLOCK_BOOTTIME against CLOCK_MONOTONIC (clock_gettime(2)). macOS: CLOCK_MONOTONIC_RAW goes on,
    CLOCK_UPTIME_RAW stops (its clock_gettime(3)). Windows: GetTickCount64 against
    QueryUnbiasedInterruptTime. Elsewhere the wall clock, which may also be set, against the monotonic one.
    """
    if sys.platform == "linux":
        return _difference(time.CLOCK_BOOTTIME, time.CLOCK_MONOTONIC)
    if sys.platform == "darwin":
        return _difference(time.CLOCK_MONOTONIC_RAW, time.CLOCK_UPTIME_RAW)
    if sys.platform == "win32":
        return _windows_sleep_clock()
    return lambda: time.time() - time.monotonic()


if sys.platform != "win32":

    def _difference(goes_on: int, stops: int) -> SleepClock:
        return lambda: time.clock_gettime(goes_on) - time.clock_gettime(stops)


if sys.platform == "win32":

    def _windows_sleep_clock() -> SleepClock:
        import ctypes

        kernel = ctypes.windll.kernel32
        kernel.GetTickCount64.restype = ctypes.c_uint64
        awake = ctypes.c_uint64()  # in units of 100 ns

        def slept() -> float:
            kernel.QueryUnbiasedInterruptTime(ctypes.byref(awake))
            return float(kernel.GetTickCount64()) / 1e3 - awake.value / 1e7

        return slept
