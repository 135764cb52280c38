# SPDX-License-Identifier: Apache-2.0
"""Which page of a growing text is shown: every page stays for as long as it takes to read it."""

from __future__ import annotations

from collections.abc import Sequence

_LEAST_S = 1.5


class Pager:
    """Pages of some rows. A page turns by itself once it is read and the next one exists.

    The reader is taken to read what is shown at `characters_per_second`, and to wait for the rest of
    a page that still grows. All times are seconds of one clock.
    """

    def __init__(self, characters_per_second: float) -> None:
        self._speed = characters_per_second
        self.start(0.0)

    def start(self, now: float) -> None:
        """A new text begins."""
        self._lines: tuple[str, ...] = ()
        self._rows = 1
        self._show(0, now)

    def update(self, lines: Sequence[str], rows: int, now: float) -> None:
        """The text is `lines` now, on a display of `rows` rows."""
        self._lines = tuple(lines)
        self._rows = max(rows, 1)
        if self._page > self._last:
            self._show(self._last, now)
        self._count(now)

    @property
    def lines(self) -> tuple[str, ...]:
        """The page that is shown."""
        return self._lines[self._page * self._rows : (self._page + 1) * self._rows]

    @property
    def has_more(self) -> bool:
        """Whether another page follows."""
        return self._page < self._last

    @property
    def deadline(self) -> float | None:
        """When the page turns by itself."""
        return max(self._read_at, self._since + _LEAST_S) if self.has_more else None

    def turn_if_due(self, now: float) -> None:
        """Turn to the next page if this one is read."""
        if self.deadline is not None and now >= self.deadline:
            self._show(self._page + 1, now)

    def turn(self, now: float) -> None:
        """The person wants the next page; after the last one comes the first."""
        self._show(self._page + 1 if self.has_more else 0, now)

    def turn_back(self, now: float) -> None:
        """The person wants the page before; before the first there is none."""
        self._show(max(self._page - 1, 0), now)

    @property
    def _last(self) -> int:
        return max((len(self._lines) - 1) // self._rows, 0)

    def _show(self, page: int, now: float) -> None:
        self._page = page
        self._since = now
        self._read_at = now
        self._counted = 0
        self._count(now)

    def _count(self, now: float) -> None:
        """Let the reader begin with what is new on the page, when done with what was there before."""
        shown = sum(map(len, self.lines))
        if shown > self._counted:
            self._read_at = max(self._read_at, now) + (shown - self._counted) / self._speed
            self._counted = shown
