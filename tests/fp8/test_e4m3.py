# SPDX-License-Identifier: Apache-2.0
"""The e4m3 codec against torch's cast and against the written rules of the format."""

from __future__ import annotations

import math

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from engine.fp8 import e4m3

FLOATS = hnp.arrays(np.float32, st.integers(1, 64), elements=st.floats(width=32, allow_nan=False))


def by_the_rules(code: int) -> float:
    """OFP8 1.0, written again from its table rather than from the module."""
    sign = -1.0 if code >> 7 else 1.0
    exponent, mantissa = code >> 3 & 15, code & 7
    if exponent == 15 and mantissa == 7:
        return math.nan
    if exponent == 0:
        return sign * mantissa * 2.0**-9
    return sign * (1 + mantissa / 8) * 2.0 ** (exponent - 7)


def test_every_code_has_the_value_of_the_standard() -> None:
    expected = np.array([by_the_rules(code) for code in range(256)], dtype=np.float32)
    np.testing.assert_array_equal(e4m3.VALUES, expected)
    torch_values = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).float().numpy()
    np.testing.assert_array_equal(e4m3.VALUES, torch_values)


def test_every_code_survives_a_round_trip() -> None:
    codes = np.arange(256, dtype=np.uint8)
    numbers = codes & 0x7F != e4m3.NAN_CODE
    np.testing.assert_array_equal(e4m3.encode(e4m3.decode(codes))[numbers], codes[numbers])


def test_nan_is_kept_and_infinity_saturates() -> None:
    values = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 464.0, -0.0], dtype=np.float32)
    codes = e4m3.encode(values)
    assert codes.tolist() == [0x7F, 0x7E, 0xFE, 0x7E, 0xFE, 0x7E, 0x80]


@given(FLOATS)
def test_encoding_is_the_cast_of_torch_after_clamping(values: np.ndarray) -> None:
    clamped = torch.from_numpy(values.copy()).clamp(-e4m3.MAX, e4m3.MAX)
    expected = clamped.to(torch.float8_e4m3fn).view(torch.uint8).numpy()
    np.testing.assert_array_equal(e4m3.encode(values), expected)


def test_ties_and_their_neighbours_round_to_even() -> None:
    finite = np.unique(e4m3.VALUES[np.isfinite(e4m3.VALUES)]).astype(np.float64)
    ties = ((finite[1:] + finite[:-1]) / 2).astype(np.float32)
    below, above = np.nextafter(ties, np.float32(-1e9)), np.nextafter(ties, np.float32(1e9))
    assert np.array_equal(e4m3.decode(e4m3.encode(below)), finite[:-1].astype(np.float32))
    assert np.array_equal(e4m3.decode(e4m3.encode(above)), finite[1:].astype(np.float32))
    assert not (e4m3.encode(ties) & 1).any()


@given(FLOATS)
def test_the_nearest_value_is_chosen(values: np.ndarray) -> None:
    finite = e4m3.VALUES[np.isfinite(e4m3.VALUES)].astype(np.float64)
    clipped = np.clip(values.astype(np.float64), -e4m3.MAX, e4m3.MAX)
    best = np.abs(clipped[:, None] - finite[None, :]).min(axis=1)
    found = np.abs(clipped - e4m3.decode(e4m3.encode(values)))
    np.testing.assert_array_equal(found, best)
