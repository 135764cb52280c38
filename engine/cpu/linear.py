# SPDX-License-Identifier: Apache-2.0
"""x @ W.T + b for a fixed float32 W, as fast as the memory allows for a handful of rows.

torch's plain linear goes through MKL, which takes two to four times as long as reading W for 2 to 16
rows, and picks another kernel, with other rounding, for another number of rows. oneDNN with W
reordered once does neither: a row's result has the same bits whatever the number of rows. All
matrices of SmolLM2-135M (540 MB; two AVX2 cores read that in 16 ms) take, without and with it,
32 and 21 ms for 1 row, 48 and 28 ms for 8, 275 and 197 ms for 128.

The two operators used here are those of torch.compile's CPU backend (torch/_inductor/mkldnn_ir.py).
torch does not document them, so they are tried out first, and the plain linear takes their place
where they are missing.
"""

from __future__ import annotations

import platform
from functools import lru_cache
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

# The number of rows that the order of W is made for: a keystroke's tokens or a few candidates.
_TUNED_ROWS = 8


class Linear(Protocol):
    """Maps (n, in) to (n, out), float32."""

    def __call__(self, x: Tensor) -> Tensor: ...


class PlainLinear:
    """torch.nn.functional.linear. Keeps `weight` (out, in) itself, so that others may share it."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self._weight = weight
        self._bias = bias

    def __call__(self, x: Tensor) -> Tensor:
        return functional.linear(x, self._weight, self._bias)


class PackedLinear:
    """oneDNN's linear with a reordered copy of `weight` (out, in)."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self._weight = torch.ops.mkldnn._reorder_linear_weight(weight, _TUNED_ROWS)
        self._bias = bias

    def __call__(self, x: Tensor) -> Tensor:
        y: Tensor = torch.ops.mkldnn._linear_pointwise(x, self._weight, self._bias, "none", [], "")
        return y


def make_linear(weight: Tensor, bias: Tensor | None = None) -> Linear:
    """The faster of the two that works here."""
    return PackedLinear(weight, bias) if packing_works() else PlainLinear(weight, bias)


@lru_cache(maxsize=1)
def packing_works() -> bool:
    """Whether PackedLinear exists in this torch on this processor and gives the right numbers."""
    if platform.machine().lower() not in ("x86_64", "amd64"):  # measured there only
        return False
    weight = torch.linspace(-1, 1, 48 * 32).reshape(48, 32)
    x = torch.linspace(1, -1, 3 * 32).reshape(3, 32)
    bias = torch.arange(48, dtype=torch.float32)
    try:
        packed = PackedLinear(weight, bias)(x)
    except (AttributeError, TypeError, RuntimeError):  # absent, or of another signature
        return False
    return torch.allclose(packed, PlainLinear(weight, bias)(x), atol=1e-4)
