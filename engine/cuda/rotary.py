# SPDX-License-Identifier: Apache-2.0
"""Cosines and sines of the rotary embedding, as the kernel reads them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.config import ModelConfig, RopeScalingKind


def frequencies(
    config: ModelConfig, factors: NDArray[np.float32] | None = None
) -> NDArray[np.float64]:
    """Radians a position of each pair, shape (head_dim / 2,).

    `factors` are frequency divisors from the model file. The `llama3` formula is that of Llama 3.1
    (meta-llama/llama-models, `apply_scaling`): long wavelengths are stretched, short ones kept.
    """
    pair = np.arange(config.head_dim // 2, dtype=np.float64)
    inverse: NDArray[np.float64] = config.rope_theta ** (-2.0 * pair / config.head_dim)
    if factors is not None:
        return inverse / factors
    scaling = config.rope_scaling
    if scaling.kind is RopeScalingKind.NONE:
        return inverse
    if scaling.kind is RopeScalingKind.LINEAR:
        return inverse / scaling.factor
    turns = scaling.original_context * inverse / (2.0 * np.pi)
    low, high = scaling.low_freq_factor, scaling.high_freq_factor
    keep = np.clip((turns - low) / (high - low), 0.0, 1.0)
    return keep * inverse + (1.0 - keep) * inverse / scaling.factor


def table(
    config: ModelConfig, positions: int, factors: NDArray[np.float32] | None = None
) -> NDArray[np.float32]:
    """(positions, head_dim / 2, 2) float32: cosine and sine, computed in float64."""
    angles = np.arange(positions, dtype=np.float64)[:, None] * frequencies(config, factors)
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1).astype(np.float32)
