# SPDX-License-Identifier: Apache-2.0
"""Damaged and hostile Hugging Face folders, each with the field that the error must name."""

from __future__ import annotations

import json
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.helpers.gguf_mutations import Mutant
from tests.helpers.hf_writer import make_tiny_hf

WEIGHTS, CONFIG, TOKENIZER = "model.safetensors", "config.json", "tokenizer.json"
K = "model.layers.0.self_attn.k_proj.weight"


def hf_mutants(folder: Path) -> list[Mutant]:
    """Write all of them into `folder`."""
    sound = make_tiny_hf(folder / "sound", dim=32, ffn_dim=32, n_layers=1).path
    sharded = make_tiny_hf(folder / "sharded", dim=32, ffn_dim=32, n_layers=1, shards=2).path
    mutants: list[Mutant] = []

    def start(name: str, field: str | None, base: Path = sound) -> Path:
        path = folder / f"{len(mutants):03}-{name}"
        shutil.copytree(base, path)
        mutants.append(Mutant(path, field))
        return path

    for field, change in _header_changes():
        _edit_header(start("header", field) / WEIGHTS, change)
    raw = (sound / WEIGHTS).read_bytes()
    header_size = 8 + struct.unpack_from("<Q", raw)[0]
    for length in (0, 1, (1 << 64) - 1, 1 << 63, 1 << 30, 1 << 24):
        (start("length", "header") / WEIGHTS).write_bytes(struct.pack("<Q", length) + raw[8:])
    for content in (b"", b"{", b"[" * 100_000, b'{"a":' * 50_000, b"\xff", b"[]", b'{"a":1e999}'):
        packed = struct.pack("<Q", len(content)) + content
        (start("json", "") / WEIGHTS).write_bytes(packed)
    for cut in np.linspace(0, len(raw) - 1, 15).astype(int).tolist():
        (start(f"cut-{cut}", "") / WEIGHTS).write_bytes(raw[:cut])
    for file, field, values in _json_changes():
        path = start("json-field", field) / file
        content = json.loads(path.read_text())
        for key, value in values.items():
            _set(content, key, value)
        path.write_text(json.dumps(content))
    for file in (CONFIG, TOKENIZER, "tokenizer_config.json", "generation_config.json"):
        for content in (b"", b"[1]", b"[" * 200_000, b'{"a": NaN}', b'{"a":1,"a":2}', b"{\xff}"):
            (start("content", file) / file).write_bytes(content)
    _bombs(start)
    _files(start, sharded)
    _nan_weights(start)
    rng = np.random.default_rng(7)
    for number in range(40):
        path = start("flip", None) / (WEIGHTS, CONFIG, TOKENIZER)[number % 3]
        spoiled = bytearray(path.read_bytes())
        end = header_size if path.name == WEIGHTS else len(spoiled)
        for place in rng.integers(0, end, 1 + number % 4):
            spoiled[place] ^= 1 << rng.integers(0, 7)  # one bit, so that text stays ASCII
        path.write_bytes(spoiled)
    return mutants


def _set(content: dict[str, Any], key: str, value: object) -> None:
    """`key` may be dotted; the value ... removes it."""
    *parents, last = key.split("/")
    for parent in parents:
        content = content[parent]
    if value is ...:
        content.pop(last)
    else:
        content[last] = value


def _edit_header(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    raw = path.read_bytes()
    size = struct.unpack_from("<Q", raw)[0]
    header = json.loads(raw[8 : 8 + size])
    change(header)
    packed = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(packed)) + packed + raw[8 + size :])


def _header_changes() -> list[tuple[str, Callable[[dict[str, Any]], object]]]:
    def entry(field: str, key: str, value: object) -> tuple[str, Callable[[Any], object]]:
        return field, lambda header: _set(header[K], key, value)

    name = f"tensor {K}"
    return [
        *(entry(name, "data_offsets", v) for v in ([0], [1 << 62, (1 << 62) + 2048], "x", [-4, 0])),
        entry(name, "data_offsets", [8, 4]),
        entry(name, "data_offsets", [0.0, 2048.0]),
        entry(name, "data_offsets", [1 << 80, 1 << 81]),
        entry("tensor", "data_offsets", [0, 2048]),  # lies over another
        *(entry(name, "shape", v) for v in ([], [0, 32], [1 << 62, 1 << 62], [-1, 2], [True, 2])),
        entry(name, "shape", [32, 16]),
        entry(name, "shape", [1] * 100_000),
        *(entry(name, "dtype", v) for v in ("F16", "F64", "F8_E4M3", "nonsense", 7, None)),
        (name, lambda header: header.update({K: [1, 2]})),
        (name, lambda header: header.pop(K)),
        ("tensor x\\x1b[2J", lambda header: header.update({"x\x1b[2J": header[K]})),
    ]


def _json_changes() -> list[tuple[str, str, dict[str, object]]]:
    config: list[tuple[str, str, dict[str, object]]] = []
    for field in (
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "intermediate_size",
        "vocab_size",
        "max_position_embeddings",
    ):
        for value in (..., 0, -1, 1 << 62, 10**400, "4", 4.5, True, [4]):
            config.append((CONFIG, field, {field: value}))
    config = config[::2]  # every other one is enough to visit all fields and all values
    config += [
        (CONFIG, "num_key_value_heads", {"num_key_value_heads": 3}),
        (CONFIG, "head_dim", {"head_dim": 7}),
        (CONFIG, "head_dim", {"head_dim": 1 << 20}),
        (CONFIG, "rms_norm_eps", {"rms_norm_eps": "small"}),
        (CONFIG, "rope_theta", {"rope_theta": 10**400}),
        (CONFIG, "rope_scaling", {"rope_scaling": "linear"}),
        (CONFIG, "rope_scaling.factor", {"rope_scaling": {"type": "linear"}}),
        (CONFIG, "rope_scaling.factor", {"rope_scaling": {"type": "linear", "factor": 0}}),
        (CONFIG, "architectures", {"architectures": []}),
        (CONFIG, "architectures", {"architectures": [{}]}),
        (CONFIG, "tie_word_embeddings", {"tie_word_embeddings": "no"}),
        (CONFIG, "layer_types", {"layer_types": [7]}),
        (TOKENIZER, "model.merges", {"model/merges": []}),
        (TOKENIZER, "model.merges", {"model/merges": ...}),
        (TOKENIZER, "model.vocab", {"model/vocab": {}}),
        (TOKENIZER, "model.vocab", {"model/vocab": {"a": "b"}}),
        (TOKENIZER, "model.vocab", {"model/vocab": {"a": -1}}),
        (TOKENIZER, "model.vocab", {"model/vocab": {"a": 1 << 40}}),
        (TOKENIZER, "model.vocab", {"model/vocab": [[["a"], 0]], "model/type": "Unigram"}),
        (TOKENIZER, "model", {"model": 7}),
        (TOKENIZER, "added_tokens[0]", {"added_tokens": [7]}),
        (TOKENIZER, "added_tokens[0].id", {"added_tokens": [{"id": "x", "content": "y"}]}),
        (TOKENIZER, "post_processor", {"post_processor": []}),
        ("tokenizer_config.json", "bos_token", {"bos_token": "no such token"}),
        ("tokenizer_config.json", "chat_template", {"chat_template": 7}),
        ("tokenizer_config.json", "chat_template", {"chat_template": "x" * 300_000}),
        ("generation_config.json", "eos_token_id", {"eos_token_id": 286}),
        ("generation_config.json", "eos_token_id", {"eos_token_id": [1, {}]}),
    ]
    return config


def _bombs(start: Callable[..., Path]) -> None:
    """Much JSON in few bytes: parsed, 20 MB of it would take a gigabyte."""
    for unit in (b"[],", b'{"":0},', b'"\xf0\x9f\x98\x80aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",'):
        bomb = b'{"model":[' + unit * ((20 << 20) // len(unit)) + b"0]}"
        (start("bomb", TOKENIZER) / TOKENIZER).write_bytes(bomb)
    bomb = b'{"a":[' + b"[]," * (5 << 20) + b"0]}"
    (start("bomb", "header") / WEIGHTS).write_bytes(struct.pack("<Q", len(bomb)) + bomb)


def _files(start: Callable[..., Path], sharded: Path) -> None:
    """Missing files, and things that are no files."""
    (start("no-config", CONFIG) / CONFIG).unlink()
    (start("no-weights", WEIGHTS) / WEIGHTS).unlink()
    (start("no-tokenizer", TOKENIZER) / TOKENIZER).unlink()
    for file in (CONFIG, WEIGHTS, TOKENIZER):
        path = start("folder", file) / file
        path.unlink()
        path.mkdir()
        path = start("pipe", file) / file
        path.unlink()
        os.mkfifo(path)
    index = "model.safetensors.index.json"
    shard = "model-00002-of-00002.safetensors"
    (start("no-shard", shard, sharded) / shard).unlink()
    for key, value in (
        ("weight_map", {}),
        ("weight_map", 3),
        ("weight_map/x", "../sound/model.safetensors"),
        ("weight_map/x", "/dev/zero"),
        ("weight_map/x", shard),
        ("weight_map/model.norm.weight", "model-00001-of-00002.safetensors"),
    ):
        path = (
            start("index", "model.norm.weight" if "norm" in key else "weight_map", sharded) / index
        )
        content = json.loads(path.read_text())
        _set(content, key, value)
        path.write_text(json.dumps(content))


def _nan_weights(start: Callable[..., Path]) -> None:
    for bits in (b"\x00\x00\xc0\x7f", b"\x00\x00\x80\xff"):
        path = start("nan", "tensor") / WEIGHTS
        content = bytearray(path.read_bytes())
        content[-4:] = bits
        path.write_bytes(content)
