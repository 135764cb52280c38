# SPDX-License-Identifier: Apache-2.0
"""The default model: opens fast, and its weights are those that gguf-py reads."""

from __future__ import annotations

import time
from pathlib import Path

import gguf
import numpy as np
import pytest

from engine.formats import open_model
from engine.formats.check import check_model
from tests.helpers.gguf_writer import gguf_name, interleave

pytestmark = pytest.mark.model


def test_the_header_opens_in_200_ms(smollm2: Path) -> None:
    seconds = []
    for _ in range(10):
        start = time.perf_counter()
        open_model(smollm2).close()
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.2, seconds


def test_settings_and_tokenizer(smollm2: Path) -> None:
    model = open_model(smollm2)
    config, spec = model.config, model.tokenizer
    shape = (config.n_layers, config.dim, config.n_heads, config.n_kv_heads, config.head_dim)
    assert shape == (30, 576, 9, 3, 64)
    assert (config.vocab_size, config.tied_head, config.rope_theta) == (49152, True, 100_000.0)
    assert config.parameters == 134_515_008
    assert (len(spec.tokens), len(spec.merges), spec.pre) == (49152, 48900, "smollm")
    assert (spec.bos_id, spec.eos_ids, spec.add_bos) == (1, (2, 0), False)
    assert spec.chat_template is not None
    model.close()


def test_weights_against_gguf(smollm2: Path) -> None:
    model = open_model(smollm2)
    theirs = {tensor.name: tensor for tensor in gguf.GGUFReader(smollm2).tensors}
    assert len(theirs) == len(model.tensor_names())
    heads = {"wq": 9, "wk": 3}
    layers = ("layers.0.", "layers.29.")  # all types and parts; the other 28 are alike
    for name in model.tensor_names():
        if name.startswith("layers.") and not name.startswith(layers):
            continue
        ours = model.tensor(name)
        part = name.rsplit(".", 1)[-1]
        if part in heads:
            ours = interleave(ours, heads[part])
        tensor = theirs[gguf_name(name)]
        np.testing.assert_array_equal(
            ours, gguf.quants.dequantize(tensor.data, tensor.tensor_type), err_msg=name
        )
    model.close()


def test_check(smollm2: Path) -> None:
    report = check_model(smollm2)
    assert report.tensor_types == {"Q4_1": 210, "F32": 61, "Q8_0": 1}
    assert report.warnings == ()
