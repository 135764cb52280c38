# SPDX-License-Identifier: Apache-2.0
"""Scales, groups and their edges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from engine.fp8 import e4m3
from engine.fp8.quantise import Grouping, quantise, quantise_two_term

SHAPES = st.tuples(st.integers(1, 5), st.integers(1, 400))
MATRICES = SHAPES.flatmap(
    lambda shape: hnp.arrays(
        np.float32, shape, elements=st.floats(-1000, 1000, width=32, allow_subnormal=False)
    )
)
GROUPINGS = st.sampled_from(list(Grouping))


@given(MATRICES, GROUPINGS)
def test_error_is_at_most_one_sixteenth_or_half_a_smallest_step(
    matrix: np.ndarray, grouping: Grouping
) -> None:
    result = quantise(matrix, grouping)
    scale = np.repeat(result.scales, grouping or matrix.shape[1], axis=1)[:, : matrix.shape[1]]
    allowed = np.maximum(np.abs(matrix) / 16, scale * e4m3.SMALLEST_SUBNORMAL / 2) * 1.00001
    assert (np.abs(result.dequantise() - matrix) <= allowed + 1e-30).all()


@given(MATRICES, GROUPINGS)
def test_no_code_is_nan_and_the_largest_of_a_group_is_448(
    matrix: np.ndarray, grouping: Grouping
) -> None:
    result = quantise(matrix, grouping)
    assert (result.codes & 0x7F != e4m3.NAN_CODE).all()
    width = grouping or matrix.shape[1]
    for group, start in enumerate(range(0, matrix.shape[1], width)):
        part = np.abs(matrix[:, start : start + width]).max(axis=1)
        codes = np.abs(e4m3.decode(result.codes[:, start : start + width])).max(axis=1)
        clear = part > 1e-10
        assert (codes[clear] == e4m3.MAX).all(), group


@pytest.mark.parametrize("grouping", list(Grouping))
def test_ragged_last_group_has_its_own_scale(grouping: Grouping) -> None:
    matrix = np.ones((2, 576), dtype=np.float32)
    matrix[:, 512:] = 1e-3
    result = quantise(matrix, grouping)
    assert result.scales.shape == (2, grouping.groups(576))
    if grouping in (Grouping.G32, Grouping.G64, Grouping.G128):
        np.testing.assert_allclose(result.dequantise(), matrix, rtol=1e-6)


def test_zero_and_tiny_rows_give_zeros_not_nan() -> None:
    matrix = np.zeros((3, 64), dtype=np.float32)
    matrix[1] = 1e-38
    matrix[2, 3] = 5.0
    values = quantise(matrix).dequantise()
    assert np.isfinite(values).all()
    assert not values[:2].any()
    assert values[2, 3] == pytest.approx(5.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_damaged_weights_are_refused(bad: float) -> None:
    matrix = np.ones((2, 32), dtype=np.float32)
    matrix[1, 7] = bad
    with pytest.raises(ValueError, match="NaN or infinity"):
        quantise(matrix)


def test_empty_matrices_are_refused() -> None:
    with pytest.raises(ValueError, match="shape"):
        quantise(np.zeros((0, 4), dtype=np.float32))


def test_two_terms_are_much_closer_than_one() -> None:
    matrix = np.random.default_rng(0).standard_normal((64, 576)).astype(np.float32)
    one = np.abs(quantise(matrix).dequantise() - matrix).max()
    two = np.abs(quantise_two_term(matrix).dequantise() - matrix).max()
    assert two < one / 12
