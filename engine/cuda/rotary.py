# SPDX-License-Identifier: Apache-2.0
"""Cosines and sines of the rotary embedding, in the form that the kernel reads."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.config import ModelConfig
from engine.rope import inverse_frequencies


def table(
    config: ModelConfig, positions: int, factors: NDArray[np.float32] | None = None
) -> NDArray[np.float32]:
    """(positions, head_dim / 2, 2) float32: cosine and sine, computed in float64."""
    frequencies = inverse_frequencies(config, factors)
    angles = np.arange(positions, dtype=np.float64)[:, None] * frequencies
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1).astype(np.float32)
