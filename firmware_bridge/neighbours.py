# SPDX-License-Identifier: Apache-2.0
"""Other programs on the same keyboard: noticed by their answers, which come to us too, and left in peace.

Most of them take whatever report comes next for their answer, so one of ours at the wrong moment makes
them fail: VIA gives up, and Vial is off by one from then on (the-via/app issue 228, srwi/keypeek issue 18).
The only remedy is to send nothing while they talk, and nothing any more once they have come: a request of
ours that is under way when another program opens the keyboard is answered to that program too.
"""

from __future__ import annotations

import enum
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Protocol

from firmware_bridge.protocol.frames import is_frame
from firmware_bridge.texts import Text

UNKNOWN_PROGRAM = Text("another program")


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A row of neighbours.toml: who gets answers that begin with `low` to `high`."""

    low: int
    high: int
    program: str
    source: str
    answer: bool = True
    stays: bool = False


@dataclass(frozen=True, slots=True)
class Configurator:
    """A process row of neighbours.toml: a program that opens every keyboard it finds once it is ready."""

    name: str
    program: str
    source: str

    def fits(self, process: str) -> bool:
        """Whether a process of this name is the program: "vial", "Vial-v0.7.5-x86"."""
        return process.lower() == self.name or process.lower().startswith(f"{self.name}-")


@cache
def load_neighbours() -> tuple[Neighbour, ...]:
    """The rows of neighbours.toml that tell programs by their answers."""
    return tuple(
        Neighbour(
            low,
            high,
            row["program"],
            row["source"],
            row.get("answer", True),
            row.get("stays", False),
        )
        for row in _rows("row")
        for low, high in [row["first"]]
    )


@cache
def load_configurators() -> tuple[Configurator, ...]:
    """The rows of neighbours.toml that tell programs by their processes."""
    return tuple(Configurator(**row) for row in _rows("process"))


def _rows(table: str) -> list[dict[str, Any]]:
    text = resources.files("firmware_bridge").joinpath("neighbours.toml").read_text("utf-8")
    rows: list[dict[str, Any]] = tomllib.loads(text)[table]
    return rows


def program_of(report: bytes, rows: Iterable[Neighbour]) -> str | None:
    """Whose answer `report` is; None if it is no sign of a program, as our own frames are none."""
    row = _row_of(report, rows)
    return None if row is None else row.program


def _row_of(report: bytes, rows: Iterable[Neighbour]) -> Neighbour | None:
    if is_frame(report):
        return None  # for another host of ours, and perhaps in VIA form
    row = _first_row(report, rows)
    return row if row is not None and row.answer else None


def _is_unasked(report: bytes, rows: Iterable[Neighbour]) -> bool:
    """Whether it surely answers no other program."""
    row = _first_row(report, rows)
    return is_frame(report) or (row is not None and not row.answer)


def _first_row(report: bytes, rows: Iterable[Neighbour]) -> Neighbour | None:
    fitting = (row for row in rows if report[:1] and row.low <= report[0] <= row.high)
    return next(fitting, None)


class Sign(enum.IntEnum):
    """What the system tells of a program that may be about to talk to the keyboard."""

    LISTED = 1  # it read which keyboards there are
    STARTED = 2  # one that will open the keyboard when it is ready
    OPENED = 3


class Others(Protocol):
    """What the system tells of other programs on the keyboard that we have open."""

    def sign(self) -> Sign | None:
        """The strongest sign since the last call; costs microseconds."""
        ...

    def present(self) -> str | None:
        """The name of a program that has the keyboard open now, or will; may take 0.1 s."""
        ...


class NobodyTells:
    """A system on which an open keyboard does not show: others are noticed by their answers only."""

    def sign(self) -> Sign | None:
        return None

    def present(self) -> str | None:
        return None


class QuietOptions(Protocol):
    """The times of `QuietTimes`, in seconds."""

    @property
    def hush_s(self) -> float: ...

    @property
    def open_hush_s(self) -> float: ...

    @property
    def quiet_s(self) -> float: ...

    @property
    def stay_s(self) -> float: ...


class QuietTimes:
    """When to be silent for the sake of others. Times in seconds of the caller's clock.

    One sign of somebody gives a hush, because a program that looks for keyboards asks once and leaves: `hush_s`
    after an answer of theirs or a look at the list of keyboards, `open_hush_s` after they opened ours. The
    second one within `quiet_s` is a conversation, and so is a program that still has it open when the hush
    ends: silence until `quiet_s` after its last sign, and for as long as it has the keyboard open.

    Where nobody tells how long that is, a program that is often left open and idle (VIA, Vial) keeps us silent
    for `stay_s` after its last sign, or until `forget`: the person knows whether it was closed. Its first sign
    counts as its open.
    """

    def __init__(
        self,
        hush_s: float = 0.25,
        quiet_s: float = 5.0,
        rows: Iterable[Neighbour] | None = None,
        *,
        open_hush_s: float = 1.8,
        stay_s: float = 600.0,
        others: Others | None = None,
    ) -> None:
        """`open_hush_s` is longer than the 1 s after which Vial looks for keyboards again, opening each, and
        than the 1.5 s in which VIA gets to know a keyboard between its first two questions. With the 1 s
        between two of our SUBSCRIBEs it is shorter than the 3 s after which the keyboard forgets us.
        """
        self._hush_s = hush_s
        self._quiet_s = quiet_s
        self._open_hush_s = open_hush_s
        self._rows = tuple(load_neighbours() if rows is None else rows)
        self._others = others or NobodyTells()
        self._stay_s = quiet_s if others is not None else stay_s
        self._last = float("-inf")
        self._must_ask = True  # who has it open: at first, and after each hush for an open
        self.silent_until = float("-inf")
        self.program: str | None = None
        """Who is talking; None while nobody is."""
        self.is_left_open = False
        """Whether they may have the keyboard open for as long as they like, and nobody tells."""

    @classmethod
    def of(cls, options: QuietOptions, others: Others | None) -> QuietTimes:
        """With the times of `options`."""
        return cls(
            options.hush_s, options.quiet_s, open_hush_s=options.open_hush_s, stay_s=options.stay_s,
            others=others,
        )  # fmt: skip

    def forget(self) -> None:
        """Nobody else has the keyboard open, says the person."""
        self.silent_until = float("-inf")
        self.program = None
        self.is_left_open = False

    @property
    def told(self) -> Text:
        """Who is talking, and what ends our silence, for the person."""
        program = Text(self.program or UNKNOWN_PROGRAM)
        if self.is_left_open:
            return Text("{program} is using the keyboard. Close it, then resume.", program=program)
        return Text("{program} is using the keyboard. Thock goes on after it.", program=program)

    def look(self, now: float) -> bool:
        """Ask the system for signs, before each request; whether a conversation of others begins."""
        sign = self._others.sign()
        if sign is Sign.STARTED:
            self._must_ask = True
            self._last = now
        elif sign is Sign.OPENED:
            self._must_ask = True
            if self._is_talking(now):
                self.silent_until = now + self._quiet_s
            elif self._met(now, self._open_hush_s):
                self.program = self._others.present() or UNKNOWN_PROGRAM
                return True
        elif sign is Sign.LISTED:
            self.silent_until = max(self.silent_until, now + self._hush_s)
        if self._must_ask and now >= self.silent_until:
            self._must_ask = False
            self.program = self._others.present()
            if self.program is not None:
                self.silent_until = now + self._quiet_s
                return True
        return False

    def notice(self, report: bytes, now: float) -> bool:
        """A report came that is not for us; whether a conversation of others begins with it."""
        row = _row_of(report, self._rows)
        if self._is_talking(now):
            # Vial's answers have no mark of their own. All that comes now keeps us silent, but for what the
            # keyboard sends by itself: with keys that come for ever, that would be for ever.
            if _is_unasked(report, self._rows):
                return False
            if row is not None and self._says_more(row):
                self._begin(row)
            is_of_it = row is None or row.stays
            silence_s = self._silence_s if is_of_it else self._quiet_s
            self.silent_until = max(self.silent_until, now + silence_s)
            return False
        self.program = None
        self.is_left_open = False
        if row is None:
            return False
        if self._met(now, self._open_hush_s if self._may_stay(row) else self._hush_s):
            self._begin(row)
            self.silent_until = now + self._silence_s
        return self.program is not None

    def is_over(self, now: float) -> bool:
        """Whether everybody has left; if not, the silence goes on."""
        if now < self.silent_until:
            return False
        if self._others.present() is None:
            self.program = None
            self.is_left_open = False
            return True
        self.silent_until = now + self._quiet_s
        return False

    def _begin(self, row: Neighbour) -> None:
        self.program = row.program
        self.is_left_open = self._may_stay(row)

    def _may_stay(self, row: Neighbour) -> bool:
        return row.stays and self._stay_s > self._quiet_s

    def _says_more(self, row: Neighbour) -> bool:
        """Whether `row` tells more of the conversation than is known."""
        is_unknown = self.program == UNKNOWN_PROGRAM
        return is_unknown or (self._may_stay(row) and not self.is_left_open)

    @property
    def _silence_s(self) -> float:
        return self._stay_s if self.is_left_open else self._quiet_s

    def _is_talking(self, now: float) -> bool:
        return self.program is not None and now < self.silent_until

    def _met(self, now: float, hush_s: float) -> bool:
        """Somebody gave a sign; whether it is the second one."""
        talking = now - self._last < self._quiet_s
        self._last = now
        self.silent_until = max(self.silent_until, now + (self._quiet_s if talking else hush_s))
        return talking
