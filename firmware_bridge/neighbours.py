# SPDX-License-Identifier: Apache-2.0
"""Other programs on the same keyboard: noticed by their answers, which come to us too, and left in peace.

Most of them take whatever report comes next for their answer, so one of ours at the wrong moment makes
them fail: VIA gives up, and Vial is off by one from then on (the-via/app issue 228, srwi/keypeek issue 18).
The only remedy is to send nothing while they talk.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources

UNKNOWN_PROGRAM = "another program"


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A row of neighbours.toml: who gets answers that begin with `low` to `high`."""

    low: int
    high: int
    program: str
    source: str
    answer: bool = True


@cache
def load_neighbours() -> tuple[Neighbour, ...]:
    """The rows of neighbours.toml."""
    text = resources.files("firmware_bridge").joinpath("neighbours.toml").read_text("utf-8")
    rows = tomllib.loads(text)["row"]
    return tuple(
        Neighbour(low, high, row["program"], row["source"], row.get("answer", True))
        for row in rows
        for low, high in [row["first"]]
    )


def program_of(report: bytes, rows: Iterable[Neighbour]) -> str | None:
    """Whose answer `report` is; None if it is no sign of a program. It must not be ours."""
    for row in rows:
        if report[:1] and row.low <= report[0] <= row.high:
            return row.program if row.answer else None
    return None


class QuietTimes:
    """When to be silent for the sake of others. Times in seconds of the caller's clock.

    One answer of somebody else's gives `hush_s`, because a program that looks for keyboards asks once and
    leaves. The second one within `quiet_s` is a conversation: silence until `quiet_s` after its last report.
    """

    def __init__(
        self, hush_s: float = 0.25, quiet_s: float = 5.0, rows: Iterable[Neighbour] | None = None
    ) -> None:
        self._hush_s = hush_s
        self._quiet_s = quiet_s
        self._rows = tuple(load_neighbours() if rows is None else rows)
        self._last = float("-inf")
        self.silent_until = float("-inf")
        self.program: str | None = None
        """Who is talking; None while nobody is."""

    def notice(self, report: bytes, now: float) -> bool:
        """A report came that is not for us; whether a conversation of others begins with it."""
        program = program_of(report, self._rows)
        if self.program is not None and now < self.silent_until:
            # Vial's answers have no mark of their own. All that comes now keeps us silent.
            self.program = program if self.program == UNKNOWN_PROGRAM and program else self.program
            self.silent_until = now + self._quiet_s
            return False
        self.program = None
        if program is None:
            return False
        talking = now - self._last < self._quiet_s
        self._last = now
        self.silent_until = now + (self._quiet_s if talking else self._hush_s)
        self.program = program if talking else None
        return talking

    def extend(self, now: float) -> None:
        """They are still there."""
        self.silent_until = now + self._quiet_s


def is_open_elsewhere(node: str, proc: str = "/proc") -> bool:
    """Linux: whether another process of this user has the device node open. False where nobody can tell.

    A program that is idle leaves no trace on the bus, but would take our next answers for its own.
    Costs 20 us per open file of all processes that this user may look into (measured: 16 ms for 835).
    """
    try:
        others = [
            entry for entry in os.listdir(proc) if entry.isdigit() and int(entry) != os.getpid()
        ]
    except OSError:
        return False
    return any(_has_open(f"{proc}/{process}/fd", node) for process in others)


def _has_open(handles: str, node: str) -> bool:
    try:
        names = os.listdir(handles)
    except OSError:  # of another user, or it has just ended
        return False
    for name in names:
        try:
            if os.readlink(f"{handles}/{name}") == node:
                return True
        except OSError:
            continue
    return False
