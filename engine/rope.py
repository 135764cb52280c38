# SPDX-License-Identifier: Apache-2.0
"""Rotary position embedding: the angles, computed once in float64 and shared by every backend.

Formulas: RoFormer (https://arxiv.org/abs/2104.09864) for the base frequencies; "llama3" scaling as in
https://github.com/meta-llama/llama-models (`apply_scaling`), the same as transformers' `rope_type: llama3`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from engine.config import ModelConfig, RopeLayout, RopeScaling, RopeScalingKind
from engine.formats.source import ModelSource

ROPE_FACTORS = "rope_factors"


def inverse_frequencies(
    config: ModelConfig, factors: NDArray[np.float32] | None = None
) -> NDArray[np.float64]:
    """Radians per position of each rotary pair, shape (head_dim/2,).

    `factors` are the frequency divisors that some files carry beside or instead of a scaling rule.
    """
    exponents = np.arange(0, config.head_dim, 2, dtype=np.float64) / config.head_dim
    frequencies = _scaled(config.rope_theta**-exponents, config.rope_scaling)
    return frequencies if factors is None else frequencies / factors.astype(np.float64)


def _scaled(frequencies: NDArray[np.float64], scaling: RopeScaling) -> NDArray[np.float64]:
    if scaling.kind is RopeScalingKind.NONE:
        return frequencies
    stretched = frequencies / scaling.factor
    if scaling.kind is RopeScalingKind.LINEAR:
        return stretched
    # LLAMA3: long waves are stretched, short waves kept, those between blended by how many turns
    # they make within the context that the model was first trained on.
    turns = scaling.original_context * frequencies / (2 * math.pi)
    kept = (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor)
    kept = np.clip(kept, 0.0, 1.0)
    return kept * frequencies + (1 - kept) * stretched


def rope_tables(
    source: ModelSource, positions: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Cosine and sine of every angle, each of shape (positions, head_dim/2).

    Raises:
        ValueError: the source does not hand out rows in HALF_SPLIT order.
        ModelFileError: the file's `rope_factors` are damaged.
    """
    if source.config.rope_layout is not RopeLayout.HALF_SPLIT:
        raise ValueError(
            "backends need rotary rows in HALF_SPLIT order; the reader must reorder them"
        )
    factors = source.tensor(ROPE_FACTORS) if ROPE_FACTORS in source.tensor_names() else None
    angles = np.outer(np.arange(positions), inverse_frequencies(source.config, factors))
    return np.cos(angles), np.sin(angles)
