# SPDX-License-Identifier: Apache-2.0
"""Weights to e4m3 codes and float32 scales, per output channel or per group of columns."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from engine.fp8 import e4m3

# A channel of zeros, or of values near zero, would get a scale of 0 and the quotient NaN. With the
# floor its largest code is small, which is right: such a channel contributes nothing.
SCALE_FLOOR: Final = np.float32(2.0**-60)


class Grouping(enum.IntEnum):
    """How many columns of one row share a scale. The last group of a row may be shorter."""

    CHANNEL = 0
    G32 = 32
    G64 = 64
    G128 = 128
    G192 = 192

    def groups(self, columns: int) -> int:
        """Number of scales that a row of `columns` values has."""
        return 1 if self is Grouping.CHANNEL else -(-columns // self)


@dataclass(frozen=True, slots=True)
class QuantisedMatrix:
    """`codes` (rows, columns) uint8 e4m3; `scales` (rows, groups) float32; value = code * scale."""

    codes: NDArray[np.uint8]
    scales: NDArray[np.float32]
    grouping: Grouping

    @property
    def shape(self) -> tuple[int, int]:
        rows, columns = self.codes.shape
        return int(rows), int(columns)

    def dequantise(self) -> NDArray[np.float32]:
        """Values, float32, shape (rows, columns)."""
        return e4m3.decode(self.codes) * _spread(self.scales, self.grouping, self.shape[1])


@dataclass(frozen=True, slots=True)
class TwoTermMatrix:
    """A matrix as the sum of two e4m3 matrices: about 7 significant bits at 2 bytes a weight."""

    high: QuantisedMatrix
    low: QuantisedMatrix

    def dequantise(self) -> NDArray[np.float32]:
        return self.high.dequantise() + self.low.dequantise()


def _spread(scales: NDArray[np.float32], grouping: Grouping, columns: int) -> NDArray[np.float32]:
    if grouping is Grouping.CHANNEL:
        return scales
    return np.repeat(scales, grouping, axis=1)[:, :columns]


def _group_maxima(matrix: NDArray[np.float32], grouping: Grouping) -> NDArray[np.float32]:
    magnitude = np.abs(matrix)
    if grouping is Grouping.CHANNEL:
        largest: NDArray[np.float32] = magnitude.max(axis=1, keepdims=True)
        return largest
    starts = np.arange(0, matrix.shape[1], grouping)
    maxima: NDArray[np.float32] = np.maximum.reduceat(magnitude, starts, axis=1)
    return maxima


def quantise(matrix: NDArray[np.float32], grouping: Grouping = Grouping.CHANNEL) -> QuantisedMatrix:
    """Round `matrix` (rows, columns) to e4m3 with the scale max|w| / 448 of each row or group.

    Raises:
        ValueError: not a matrix, empty, or holding NaN or infinity.
    """
    if matrix.ndim != 2 or matrix.size == 0:
        raise ValueError(f"expected a matrix with at least one value, got shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise ValueError("the matrix holds NaN or infinity; the model file is damaged")
    values = np.ascontiguousarray(matrix, dtype=np.float32)
    scales = np.maximum(_group_maxima(values, grouping) / np.float32(e4m3.MAX), SCALE_FLOOR)
    codes = e4m3.encode(values / _spread(scales, grouping, values.shape[1]))
    return QuantisedMatrix(codes, scales.astype(np.float32), grouping)


def quantise_two_term(
    matrix: NDArray[np.float32], grouping: Grouping = Grouping.CHANNEL
) -> TwoTermMatrix:
    """As `quantise`, then the rounding error of the first term as a second e4m3 matrix."""
    high = quantise(matrix, grouping)
    return TwoTermMatrix(high, quantise(matrix - high.dequantise(), grouping))
