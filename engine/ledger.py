# SPDX-License-Identifier: Apache-2.0
"""What became of the rows of a KV cache that were computed before anybody asked for them."""

from __future__ import annotations


class RowLedger:
    """Mirrors a cache that grows and is cut at its end.

    A row computed ahead is wasted if it is dropped before any answer used it. Of those that are still
    held nobody knows yet.
    """

    def __init__(self) -> None:
        self._is_ahead: list[bool] = []
        self._computed = 0
        self._wasted = 0

    def __len__(self) -> int:
        return len(self._is_ahead)

    def add(self, count: int, *, ahead: bool) -> None:
        """`count` rows were computed, before they were asked for or after."""
        self._is_ahead += [ahead] * count
        self._computed += count * ahead

    def cut(self, count: int) -> None:
        """Only the first `count` rows are kept."""
        self._wasted += sum(self._is_ahead[count:])
        del self._is_ahead[count:]

    def use(self, count: int) -> None:
        """An answer is made of the first `count` rows."""
        count = min(count, len(self._is_ahead))
        self._is_ahead[:count] = [False] * count

    def take(self) -> tuple[int, int]:
        """Rows computed ahead and rows wasted since the last call."""
        counts = self._computed, self._wasted
        self._computed = self._wasted = 0
        return counts
