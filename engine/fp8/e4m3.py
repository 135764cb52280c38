# SPDX-License-Identifier: Apache-2.0
"""The 8-bit float `e4m3` of the Open Compute Project, variant FN: no infinity, largest value 448.

One sign bit, four exponent bits with bias 7, three mantissa bits; 0x7F and 0xFF are NaN.
Source: OCP 8-bit Floating Point Specification (OFP8) 1.0, table 1; the same cast as the PTX
instruction `cvt.rn.satfinite.e4m3x2.f32`: to nearest, ties to even, saturating at +-448.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Codes: TypeAlias = NDArray[np.uint8]
Floats: TypeAlias = NDArray[np.float32]

MAX: Final = 448.0
SMALLEST_NORMAL: Final = 2.0**-6
SMALLEST_SUBNORMAL: Final = 2.0**-9
NAN_CODE: Final = 0x7F

_F32_SIGN: Final = np.uint32(0x8000_0000)
# float32 keeps 23 mantissa bits and a bias of 127; e4m3 keeps 3 and a bias of 7.
_DROPPED_BITS: Final = 20
_REBIAS: Final = np.uint32((127 - 7) << 3)


def _decode_table() -> Floats:
    code = np.arange(256, dtype=np.int32)
    exponent, mantissa = (code >> 3) & 15, code & 7
    normal = np.ldexp(1.0 + mantissa / 8.0, exponent - 7)
    value = np.where(exponent == 0, mantissa * SMALLEST_SUBNORMAL, normal)
    value = np.where(code & 0x7F == NAN_CODE, np.nan, value)
    table: Floats = np.where(code & 0x80, -value, value).astype(np.float32)
    table.flags.writeable = False
    return table


VALUES: Final = _decode_table()
"""Value of each of the 256 codes, float32, shape (256,)."""


def decode(codes: Codes) -> Floats:
    """Values of `codes`, any shape, exact in float32."""
    return VALUES[codes]


def encode(values: Floats) -> Codes:
    """Nearest codes of `values`, any shape; ties to the even code; beyond +-448 saturates.

    NaN becomes 0x7F, as in the hardware cast; infinity saturates. Negative zero keeps its sign.
    """
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    sign = ((bits & _F32_SIGN) >> np.uint32(24)).astype(np.uint8)
    magnitude_bits = bits & ~_F32_SIGN
    is_nan = magnitude_bits > np.uint32(0x7F80_0000)
    magnitude = np.minimum(magnitude_bits.view(np.float32), np.float32(MAX))
    clipped = np.where(is_nan, np.float32(0), magnitude).view(np.uint32)
    # Round to nearest even on the bits: a carry out of the mantissa correctly bumps the exponent.
    odd = (clipped >> np.uint32(_DROPPED_BITS)) & np.uint32(1)
    half = np.uint32((1 << (_DROPPED_BITS - 1)) - 1)
    normal = ((clipped + half + odd) >> np.uint32(_DROPPED_BITS)) - _REBIAS
    # Subnormals are multiples of 2^-9; the product is exact, so rint rounds once. Code 8 = 2^-6.
    small = clipped.view(np.float32) < np.float32(SMALLEST_NORMAL)
    subnormal = np.rint(np.where(small, clipped.view(np.float32), 0) * np.float32(2**9))
    code = np.where(small, subnormal.astype(np.uint32), normal)
    code = np.where(is_nan, np.uint32(NAN_CODE), code)
    return code.astype(np.uint8) | np.where(is_nan, np.uint8(0), sign)
