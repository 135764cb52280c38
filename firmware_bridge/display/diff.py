# SPDX-License-Identifier: Apache-2.0
"""The fewest runs that turn one picture on a display into another.

`room` is the number of characters or bytes that one frame carries (payload minus row and column, 22
at N = 32). The runs of one change form a group: the first of it carries FIRST, the last LAST, and
with that the keyboard shows the new picture at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from firmware_bridge.display.frame import BitmapFrame, TextFrame
from firmware_bridge.protocol.messages import BitmapRun, TextRun


@dataclass(frozen=True, slots=True)
class TextChange:
    """Runs of text; `clears` says whether the first one clears the picture before (FIRST)."""

    runs: tuple[TextRun, ...]
    clears: bool


def text_change(before: TextFrame | None, after: TextFrame, room: int) -> TextChange:
    """What to send so that `after` stands where `before` does; None: anything may stand there.

    A run clears its row to the right of it, so a row is sent from its first difference to its end.
    """
    if before is None:
        runs = [
            run
            for row, text in enumerate(after.rows)
            if text.rstrip()
            for run in _row_runs(row, 0, text, room)
        ]
        return TextChange(tuple(runs) or (TextRun(0, 0, ""),), clears=True)
    height = max(len(before.rows), len(after.rows))
    changed: list[TextRun] = []
    for row, (old, new) in enumerate(
        zip(_padded(before, height), _padded(after, height), strict=True)
    ):
        if old != new:
            changed += _row_runs(row, _first_difference(old, new), new, room)
    return TextChange(tuple(changed), clears=False)


def bitmap_runs(before: BitmapFrame | None, after: BitmapFrame, room: int) -> tuple[BitmapRun, ...]:
    """What to send so that `after` stands where `before` does; None or another size: everything.

    Greedy from the left: a run starts at the first difference and is as long as a frame can be, which
    needs the fewest frames; equal bytes at its end are left out.
    """
    if before is not None and (before.width, before.height) != (after.width, after.height):
        before = None
    runs: list[BitmapRun] = []
    for page in range(after.height // 8):
        start = page * after.width
        new = after.pages[start : start + after.width]
        old = None if before is None else before.pages[start : start + after.width]
        runs += (BitmapRun(page, x, data) for x, data in _page_runs(old, new, room))
    return tuple(runs)


def _padded(frame: TextFrame, height: int) -> list[str]:
    rows = [row.rstrip() for row in frame.rows]
    return rows + [""] * (height - len(rows))


def _first_difference(old: str, new: str) -> int:
    shorter = min(len(old), len(new))
    return next((i for i in range(shorter) if old[i] != new[i]), shorter)


def _row_runs(row: int, column: int, text: str, room: int) -> Iterator[TextRun]:
    text = text.rstrip()
    for start in range(column, max(len(text), column + 1), room):
        yield TextRun(row, start, text[start : start + room])


def _page_runs(old: bytes | None, new: bytes, room: int) -> Iterator[tuple[int, bytes]]:
    x = 0
    while x < len(new):
        if old is not None and old[x] == new[x]:
            x += 1
            continue
        end = min(x + room, len(new))
        while old is not None and old[end - 1] == new[end - 1]:
            end -= 1
        yield x, new[x:end]
        x = end
