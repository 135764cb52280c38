# SPDX-License-Identifier: Apache-2.0
"""Small random models of every supported kind give the logits that `transformers` gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.config import RopeScaling, RopeScalingKind
from engine.cpu.backend import CpuBackend
from engine.formats.open import open_model
from engine.reference.backend import ReferenceBackend
from tests.helpers.gguf_writer import make_tiny_gguf
from tests.helpers.hf_writer import make_tiny_hf
from tests.helpers.transformers_reference import TransformersReference

LINEAR = RopeScaling(RopeScalingKind.LINEAR, factor=4.0)
LLAMA3 = RopeScaling(RopeScalingKind.LLAMA3, 8.0, 1.0, 4.0, original_context=32)
# `transformers` computes in float32 as we do; measured: 1.2e-5 at logits of a few units.
ROUNDING = 5e-5

KINDS: dict[str, dict[str, Any]] = {
    "llama": {},
    "llama, tied": {"tied": True},
    "llama 9/3": {"n_heads": 9, "n_kv_heads": 3, "dim": 144},
    "llama 4/4": {"n_kv_heads": 4},
    "llama 8/2": {"n_heads": 8, "n_kv_heads": 2},
    "llama 4/1": {"n_kv_heads": 1},
    "llama, head_dim of its own": {"head_dim": 24},
    "llama, linear scaling": {"rope_scaling": LINEAR},
    "llama, llama3 scaling": {"rope_scaling": LLAMA3},
    "llama, bfloat16": {"dtype": "bfloat16"},
    "qwen2": {"arch": "qwen2"},
    "qwen2, tied": {"arch": "qwen2", "tied": True, "n_heads": 8, "n_kv_heads": 1},
    "mistral": {"arch": "mistral"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_huggingface_folder(tmp_path: Path, kind: str) -> None:
    tiny = make_tiny_hf(tmp_path / "tiny", seed=5, **KINDS[kind])
    tokens = np.random.default_rng(5).integers(0, tiny.config.vocab_size, 100).tolist()
    expected = TransformersReference.from_folder(tiny.path).logits(tokens)
    assert np.ptp(expected) > 1  # else the comparison says nothing
    source = open_model(tiny.path)
    for backend in (CpuBackend(source, threads=1), ReferenceBackend(source)):
        logits = backend.forward_all(tokens, 0)
        np.testing.assert_allclose(logits, expected, atol=ROUNDING, rtol=0)
    source.close()


@pytest.mark.parametrize("kind", ["llama", "llama 9/3", "llama 4/1", "qwen2", "llama, tied"])
def test_gguf_file(tmp_path: Path, kind: str) -> None:
    """The rows of W_q and W_k lie in another order in a GGUF file of the llama architecture."""
    tiny = make_tiny_gguf(tmp_path / "tiny.gguf", seed=5, **KINDS[kind])
    tokens = np.random.default_rng(5).integers(0, tiny.config.vocab_size, 100).tolist()
    expected = TransformersReference.from_gguf(tiny.path).logits(tokens)
    source = open_model(tiny.path)
    logits = CpuBackend(source, threads=1).forward_all(tokens, 0)
    source.close()
    np.testing.assert_allclose(logits, expected, atol=ROUNDING, rtol=0)
