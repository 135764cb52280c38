# SPDX-License-Identifier: Apache-2.0
"""The comparison with the reference: the spec passes it, and it tells near ties from errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from engine.cuda.cluster_interpreter import ClusterInterpreter
from engine.cuda.cluster_schedule import build
from engine.cuda.parity import Expected, QuantisedSource, compare, expect
from engine.fp8.model import quantise_model
from engine.fp8.quantise import Grouping
from tests.helpers.random_source import RandomSource, tiny_config

CONFIG = tiny_config(heads=(9, 3), head_dim=32, dim=288, ffn=256, vocab=100)
WINDOWS = np.random.default_rng(3).integers(0, 100, (2, 128))


def test_the_spec_agrees_with_the_reference(tmp_path: Path) -> None:
    source = RandomSource(CONFIG)
    expect(source, WINDOWS).save(tmp_path / "kept.npz")
    expected = Expected.load(tmp_path / "kept.npz")
    model = quantise_model(source)
    schedule = build(CONFIG, 8, width=16, all_logits=True)
    found = np.concatenate(
        [ClusterInterpreter(model, 128).run(schedule, w.tolist(), 0) for w in WINDOWS]
    )
    result = compare(found, expected)
    assert result["positions"] == 256
    assert result["top1_same"] > 0.99
    assert result["unexplained"] == 0
    assert result["largest_error_of_best_tokens_over_range"] < 2e-3


def test_a_wrong_best_token_is_explained_only_by_a_near_tie() -> None:
    reference = np.zeros((2, 40), dtype=np.float32)
    reference[:, 0], reference[:, 1], reference[:, 2] = 5.0, 4.99, 1.0
    order = np.argsort(-reference, axis=1, kind="stable")[:, :32]
    expected = Expected(
        WINDOWS, order, np.take_along_axis(reference, order, axis=1), np.full(2, 5, np.float32)
    )
    device = reference.copy()
    device[0, 1] += 0.02  # by more than half the gap: a near tie
    assert compare(device, expected)["unexplained"] == 0
    assert compare(device, expected)["top1_same"] == 0.5
    device[1, 30] = 6.0  # a token that the reference would never name
    device[1, :5] = reference[1, :5]
    assert compare(device, expected)["different"] == 2


def test_the_quantised_source_has_a_head_of_its_own() -> None:
    source = QuantisedSource(RandomSource(CONFIG), Grouping.CHANNEL)
    assert "head" in source.tensor_names()
    embed, head = source.tensor("embed"), source.tensor("head")
    assert embed.shape == head.shape
    assert not np.array_equal(embed, head)
