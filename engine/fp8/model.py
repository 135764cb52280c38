# SPDX-License-Identifier: Apache-2.0
"""A whole model in FP8: what the GPU engine uploads, quantised once from any ModelSource."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from engine.config import ModelConfig, RopeLayout, RopeScaling, RopeScalingKind
from engine.errors import ModelFileError, UnsupportedModelError
from engine.formats.source import ModelSource
from engine.fp8 import cache
from engine.fp8.packing import (
    STEP_COLUMNS,
    TILE_ROWS,
    gate_up_row_order,
    pack,
    rope_row_order,
)
from engine.fp8.quantise import Grouping, quantise
from engine.texts import Text


class Matrix(enum.Enum):
    """The packed matrices. QKV stacks W_q, W_k, W_v; GATE_UP interleaves its two by row."""

    QKV = "qkv"
    OUT = "out"
    GATE_UP = "gate_up"
    DOWN = "down"
    HEAD = "head"


LAYER_MATRICES: Final = (Matrix.QKV, Matrix.OUT, Matrix.GATE_UP, Matrix.DOWN)


@dataclass(frozen=True, slots=True)
class PackedMatrix:
    """`codes` (layers, tiles, steps, 32, 16) uint8; `scales` (layers, tiles, groups, 16) float32."""

    codes: NDArray[np.uint8]
    scales: NDArray[np.float32]

    @property
    def tiles(self) -> int:
        return int(self.codes.shape[1])

    @property
    def steps(self) -> int:
        return int(self.codes.shape[2])


@dataclass(frozen=True, slots=True)
class PackedModel:
    """Every tensor that a forward pass reads.

    `embed` (vocab, dim) float16; `norms` (layers, 2, dim) float32: attention, feed-forward;
    `final_norm` (dim,) float32; `bias` (layers, qkv rows) float32 in packed row order, or None.
    """

    config: ModelConfig
    grouping: Grouping
    matrices: Mapping[Matrix, PackedMatrix]
    embed: NDArray[np.float16]
    norms: NDArray[np.float32]
    final_norm: NDArray[np.float32]
    bias: NDArray[np.float32] | None
    rope_factors: NDArray[np.float32] | None = None

    @property
    def nbytes(self) -> int:
        """Bytes that the weights take on a device."""
        matrices = sum(m.codes.nbytes + m.scales.nbytes for m in self.matrices.values())
        rest: list[NDArray[Any] | None] = [
            self.embed,
            self.norms,
            self.final_norm,
            self.bias,
            self.rope_factors,
        ]
        return matrices + sum(a.nbytes for a in rest if a is not None)


def check_shape(config: ModelConfig, path: Path) -> None:
    """Refuse shapes that the packed layout cannot hold.

    Raises:
        UnsupportedModelError: a width is no multiple of the tile that it is cut into.
    """
    wrong = {
        "dim": (config.dim, STEP_COLUMNS),
        "ffn_dim": (config.ffn_dim, STEP_COLUMNS),
        "head_dim": (config.head_dim, TILE_ROWS),
        "query width": (config.n_heads * config.head_dim, STEP_COLUMNS),
    }
    for name, (width, tile) in wrong.items():
        if width % tile:
            raise UnsupportedModelError(
                path,
                name,
                Text("{width} is no multiple of {tile}", width=width, tile=tile),
            )


def _pack_rows(
    matrix: NDArray[np.float32], order: NDArray[np.int64] | None, grouping: Grouping
) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    quantised = quantise(matrix, grouping)
    codes, scales = quantised.codes, quantised.scales
    if order is not None:
        codes, scales = codes[order], scales[order]
    packed = pack(codes)
    padded = np.zeros((packed.shape[0] * TILE_ROWS, scales.shape[1]), dtype=np.float32)
    padded[: scales.shape[0]] = scales
    by_tile = padded.reshape(-1, TILE_ROWS, scales.shape[1]).transpose(0, 2, 1)
    return packed, np.ascontiguousarray(by_tile)


def _qkv_order(config: ModelConfig) -> NDArray[np.int64]:
    queries = config.n_heads * config.head_dim
    keys = config.n_kv_heads * config.head_dim
    layout = config.rope_layout
    return np.concatenate(
        [
            rope_row_order(config.n_heads, config.head_dim, layout),
            rope_row_order(config.n_kv_heads, config.head_dim, layout) + queries,
            np.arange(keys) + queries + keys,
        ]
    )


def _layer_rows(
    source: ModelSource, layer: int
) -> Iterator[tuple[Matrix, NDArray[np.float32], NDArray[np.int64] | None]]:
    config, at = source.config, f"layers.{layer}."
    qkv = np.concatenate([source.tensor(at + name) for name in ("wq", "wk", "wv")])
    yield Matrix.QKV, qkv, _qkv_order(config)
    yield Matrix.OUT, source.tensor(at + "wo"), None
    stack = np.concatenate([source.tensor(at + "w_gate"), source.tensor(at + "w_up")])
    yield Matrix.GATE_UP, stack, gate_up_row_order(config.ffn_dim)
    yield Matrix.DOWN, source.tensor(at + "w_down"), None


def quantise_model(source: ModelSource, grouping: Grouping = Grouping.CHANNEL) -> PackedModel:
    """Read, quantise and pack all tensors of `source`, one layer in memory at a time.

    Raises:
        UnsupportedModelError: a width that the packed layout cannot hold.
        ModelFileError: from the source.
    """
    config = source.config
    check_shape(config, source.path)
    parts: dict[Matrix, list[tuple[NDArray[np.uint8], NDArray[np.float32]]]] = {
        matrix: [] for matrix in Matrix
    }
    norms, biases = [], []
    for layer in range(config.n_layers):
        for matrix, rows, order in _layer_rows(source, layer):
            parts[matrix].append(_pack_rows(rows, order, grouping))
        at = f"layers.{layer}."
        norms.append([source.tensor(at + "attn_norm"), source.tensor(at + "ffn_norm")])
        if config.attention_bias:
            stacked = np.concatenate([source.tensor(at + name) for name in ("bq", "bk", "bv")])
            biases.append(stacked[_qkv_order(config)])
    embed = source.tensor("embed")
    head = embed if config.tied_head else source.tensor("head")
    parts[Matrix.HEAD].append(_pack_rows(head, None, grouping))
    names = source.tensor_names()
    return PackedModel(
        config=config,
        grouping=grouping,
        matrices={
            matrix: PackedMatrix(np.stack([c for c, _ in pairs]), np.stack([s for _, s in pairs]))
            for matrix, pairs in parts.items()
        },
        embed=embed.astype(np.float16),
        norms=np.array(norms, dtype=np.float32),
        final_norm=source.tensor("final_norm"),
        bias=np.array(biases, dtype=np.float32) if biases else None,
        rope_factors=source.tensor("rope_factors") if "rope_factors" in names else None,
    )


def _config_facts(config: ModelConfig) -> dict[str, Any]:
    facts = dataclasses.asdict(config)
    facts["rope_layout"] = config.rope_layout.value
    facts["rope_scaling"]["kind"] = config.rope_scaling.kind.value
    return facts


def _config_from(facts: dict[str, Any]) -> ModelConfig:
    scaling = dict(facts["rope_scaling"])
    scaling["kind"] = RopeScalingKind(scaling["kind"])
    return ModelConfig(
        **{
            **facts,
            "rope_layout": RopeLayout(facts["rope_layout"]),
            "rope_scaling": RopeScaling(**scaling),
        }
    )


def save(model: PackedModel, path: Path, source: str) -> None:
    """Write `model` to the cache file `path`; `source` is `cache.source_digest` of its origin."""
    arrays: dict[str, NDArray[Any]] = {
        "embed": model.embed,
        "norms": model.norms,
        "final_norm": model.final_norm,
    }
    if model.bias is not None:
        arrays["bias"] = model.bias
    if model.rope_factors is not None:
        arrays["rope_factors"] = model.rope_factors
    for matrix, packed in model.matrices.items():
        arrays[f"{matrix.value}.codes"] = packed.codes
        arrays[f"{matrix.value}.scales"] = packed.scales
    facts = {"config": _config_facts(model.config), "grouping": int(model.grouping)}
    cache.write(path, source, facts, arrays)


def load(path: Path, source: str | None = None) -> PackedModel:
    """Map a cache file that `save` wrote.

    Raises:
        ModelFileError: damaged, of another version, from another model file, or incomplete.
        FileNotFoundError: no such file.
    """
    cached = cache.read(path, source)
    arrays = cached.arrays
    try:
        return PackedModel(
            config=_config_from(cached.facts["config"]),
            grouping=Grouping(cached.facts["grouping"]),
            matrices={
                m: PackedMatrix(arrays[f"{m.value}.codes"], arrays[f"{m.value}.scales"])
                for m in Matrix
            },
            embed=arrays["embed"],
            norms=arrays["norms"],
            final_norm=arrays["final_norm"],
            bias=arrays.get("bias"),
            rope_factors=arrays.get("rope_factors"),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(path, "facts", "a tensor or field is missing") from error


def open_cached(
    source: ModelSource, path: Path, grouping: Grouping = Grouping.CHANNEL
) -> PackedModel:
    """The packed form of `source`: from the cache file `path` if it matches, else made and saved."""
    digest = f"{cache.source_digest(source.path)}-{grouping.name.lower()}"
    try:
        return load(path, digest)
    except (FileNotFoundError, ModelFileError):
        model = quantise_model(source, grouping)
        save(model, path, digest)
        return model
