# SPDX-License-Identifier: Apache-2.0
"""Damaged and hostile GGUF files, each with the field that the error must name.

`field` is a part of the message; None where the damage may also leave a sound model (random flips
in the weights). All derive from tiny sound files, so a reader can only spend much time or memory
on one of them if it believes a number in it.
"""

from __future__ import annotations

import copy
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.helpers.gguf_image import (
    ARRAY,
    BOOL,
    STRING,
    U64,
    GgufImage,
    f32,
    string,
    strings,
    text_value,
    u32,
)
from tests.helpers.gguf_writer import make_tiny_gguf

NAN_HALF, INF_HALF = b"\x01\x7e", b"\x00\xfc"
HUGE = (1 << 63, (1 << 64) - 1, 1 << 40, 1 << 32)
# offsets of the scales in a block, and its size
SCALES = {
    "F16": (2, (0,)),
    "Q4_0": (18, (0,)),
    "Q4_1": (20, (0, 2)),
    "Q5_0": (22, (0,)),
    "Q5_1": (24, (0, 2)),
    "Q8_0": (34, (0,)),
    "Q4_K": (144, (0, 2)),
    "Q5_K": (176, (0, 2)),
    "Q6_K": (210, (208,)),
}


@dataclass(frozen=True)
class Mutant:
    path: Path
    field: str | None


def gguf_mutants(folder: Path) -> list[Mutant]:
    """Write all of them into `folder`."""
    sound = make_tiny_gguf(folder / "sound.gguf", dim=32, ffn_dim=32, n_layers=1, n_heads=4)
    mutants: list[Mutant] = []

    def save(content: bytes | GgufImage, name: str, field: str | None) -> None:
        path = folder / f"{len(mutants):03}-{name}.gguf"
        path.write_bytes(content) if isinstance(content, bytes) else content.write(path)
        mutants.append(Mutant(path, field))

    base = GgufImage.read(sound.path)
    for name, field, change in (*_counts(), *_keys(), *_tensors(), *_tokenizer()):
        image = copy.deepcopy(base)
        change(image)
        save(image, name, field)
    raw = sound.path.read_bytes()
    header = len(base.header())
    for cut in np.linspace(1, len(raw) - 1, 40).astype(int).tolist():
        save(raw[:cut], f"cut-{cut}", "" if cut < len(raw) - 31 else None)
    for name, content in _bad_scales(folder):
        save(content, name, "tensor blk.0.attn_k.weight")
    rng = np.random.default_rng(6)
    for number in range(60):
        # every third one in the list of tensors, which is the last kilobyte of the header
        start = header - 700 if number % 3 == 0 else 0
        save(_flip(raw, rng, start, header, 1 + number % 6), "header-flip", None)
    for _ in range(10):
        save(_flip(raw, rng, header, len(raw), 32), "flip", None)
    return mutants


def _flip(raw: bytes, rng: np.random.Generator, start: int, end: int, count: int) -> bytes:
    """`raw` with one bit flipped in each of `count` places from `start` to `end`."""
    out = bytearray(raw)
    for place in rng.integers(start, end, count):
        out[place] ^= 1 << rng.integers(0, 8)
    return bytes(out)


_Change = tuple[str, str, Callable[[GgufImage], object]]


def _attribute(name: str, value: object) -> Callable[[GgufImage], object]:
    return lambda image: setattr(image, name, value)


def _counts() -> Iterator[_Change]:
    yield "magic", "magic", _attribute("magic", b"GGUP")
    yield "old-magic", "magic", _attribute("magic", b"tjgg")
    for version in (0, 1, 4, 3 << 24):
        yield f"version-{version}", "version", _attribute("version", version)
    for number in HUGE:
        yield "keys", "metadata_kv_count", _attribute("n_keys", number)
        yield "tensors", "tensor_count", _attribute("n_tensors", number)
    yield "one-key-less", "", lambda image: setattr(image, "n_keys", len(image.keys) - 1)
    yield "one-key-more", "", lambda image: setattr(image, "n_keys", len(image.keys) + 1)
    # Without its last tensor, output.weight, the file is a sound model with a tied head.
    yield "tensor-less", "tensor", lambda i: setattr(i, "n_tensors", len(i.tensors) - 2)
    yield "tensor-more", "tensor", lambda i: setattr(i, "n_tensors", len(i.tensors) + 1)
    yield "tensors-1000", "tensor", _attribute("n_tensors", 1000)


def _keys() -> Iterator[_Change]:
    def value(key: str, change: tuple[int, bytes] | None) -> _Change:
        return f"key-{key[-12:]}", key, lambda image: image.set(key, change)

    tokens = "tokenizer.ggml.tokens"
    for number in HUGE:
        yield value("general.name", (STRING, struct.pack("<Q", number)))
        yield value(tokens, (ARRAY, struct.pack("<IQ", STRING, number)))
        yield value(tokens, (ARRAY, struct.pack("<IQQ", STRING, 2, number)))
        yield value("tokenizer.ggml.token_type", (ARRAY, struct.pack("<IQ", 5, number)))
    yield value("general.name", (ARRAY, struct.pack("<IQ", ARRAY, 1) * 200))
    many = 1 << 20  # as many strings as are allowed at all: 8 MiB, 1 Mi Python objects
    yield value(tokens, (ARRAY, struct.pack("<IQ", STRING, many - 40) + bytes(8 * (many - 40))))
    yield value("general.tags", (ARRAY, struct.pack("<IQ", STRING, many + 1) + bytes(8 * many + 8)))
    for kind in (13, 255, 0xFFFF_FFFF):
        yield value("general.name", (kind, bytes(8)))
        yield value("general.name", (ARRAY, struct.pack("<IQ", kind, 1) + bytes(8)))
    for alignment in (0, 1, 3, 24, 1 << 17, 1 << 31):
        yield value("general.alignment", u32(alignment))
    yield value("general.alignment", (U64, struct.pack("<Q", 1 << 63)))
    yield value("general.alignment", text_value("32"))
    yield "key-twice", "llama.block_count", lambda i: i.keys.append((b"llama.block_count", *u32(1)))
    yield "key-empty", "metadata key", lambda i: i.keys.insert(0, (b"", *u32(1)))
    yield "key-binary", "metadata key", lambda i: i.keys.insert(0, (b"\x1b[2J\xff", *u32(1)))
    yield "key-long", "metadata key", lambda i: i.keys.insert(0, (b"k" * 70_000, *u32(1)))
    counts = ("block_count", "embedding_length", "feed_forward_length", "context_length")
    for name in (*counts, "attention.head_count", "attention.head_count_kv"):
        for change in (None, u32(0), u32(0xFFFF_FFFF), text_value("4"), f32(4.0)):
            if change is not None or name != "attention.head_count_kv":
                yield value(f"llama.{name}", change)
    yield value("llama.attention.head_count_kv", u32(3))
    yield value("llama.vocab_size", u32(285))
    for name in ("attention.layer_norm_rms_epsilon", "rope.freq_base"):
        for real in (float("nan"), float("inf"), -1.0):
            yield value(f"llama.{name}", f32(real))
    for name, change in (
        ("key_length", u32(7)),
        ("key_length", u32(4096)),
        ("value_length", u32(2)),
    ):
        yield value(f"llama.attention.{name}", change)
    yield value("llama.rope.scaling.factor", f32(float("nan")))
    yield value("general.architecture", None)
    yield value("general.architecture", u32(1))
    yield value("general.architecture", (STRING, string(b"\xff\xfe")))


def _tensors() -> Iterator[_Change]:
    def info(field: str, **changes: object) -> _Change:
        def change(image: GgufImage) -> None:
            for name, new in changes.items():
                setattr(image.tensor("blk.0.attn_k.weight"), name, new)

        return "tensor-" + "-".join(changes), field, change

    name = "tensor blk.0.attn_k.weight"
    top = 1 << 64
    for offset in (top - 32, top - 1, 1 << 63, 1 << 40, 33):
        yield info(name, offset=offset)
    yield info("tensor", offset=0)  # lies over another
    for dims in ((0, 16), (1 << 63, 2), (1 << 32, 1 << 32), (top - 1, top - 1), (16, 32), (512,)):
        yield info(name, dims=dims)
    for n_dims in (0, 5, 0xFFFF_FFFF):
        yield info(name, n_dims=n_dims)
    for kind in (4, 16, 20, 9999, 0xFFFF_FFFF, 14):
        yield info(name, type=kind)
    yield info(name, type=8)  # smaller than it was, so a gap follows
    yield info("tensor blk.0.attn_q.weight", name="blk.0.attn_q.weight")
    yield info(name, name="blk.9.attn_k.weight")
    yield info("name of tensor", name="\x1b[2J")
    yield info("name of tensor", name="n" * 300)


def _tokenizer() -> Iterator[_Change]:
    def value(key: str, change: tuple[int, bytes] | None, field: str = "") -> _Change:
        key = f"tokenizer.ggml.{key}"
        return f"tokenizer-{key[-8:]}", field or key, lambda image: image.set(key, change)

    yield value("merges", None)
    yield value("merges", strings([]))
    yield value("merges", strings(["a b", "nospace"]), "merges[1]")
    yield value("merges", u32(1))
    bad = struct.pack("<IQ", STRING, 1) + string(b"\xff \xff")
    yield value("merges", (ARRAY, bad), "merges[0]")
    yield value("tokens", None)
    yield value("tokens", strings(["a"]))
    yield value("tokens", (ARRAY, struct.pack("<IQ", 4, 286) + bytes(4 * 286)))
    yield value("tokens", (ARRAY, struct.pack("<IQ", STRING, 286) + string(b"\xc0") * 286))
    yield value("token_type", (ARRAY, struct.pack("<IQ", 5, 3) + bytes(12)))
    yield value("token_type", (ARRAY, struct.pack("<IQ", 5, 286) + b"\xff" * (4 * 286)))
    yield value("token_type", strings(["a"] * 286))
    yield value("model", None)
    yield value("model", text_value("no-such-kind"))
    yield value("model", text_value("llama"), "scores")  # which the file lacks
    yield value("bos_token_id", u32(286))
    yield value("eos_token_id", u32(1 << 30))
    yield value("eos_token_id", (STRING, string("2")))
    yield value("add_bos_token", (BOOL, b"\x07"))
    yield value("add_bos_token", text_value("yes"))


def _bad_scales(folder: Path) -> Iterator[tuple[str, GgufImage]]:
    for quant, (size, scales) in SCALES.items():
        wide = 256 if quant.endswith("_K") else 32
        path = folder / f"sound-{quant}.gguf"
        make_tiny_gguf(path, quant=quant, dim=wide, ffn_dim=wide, n_layers=1)
        for scale in scales:
            image = GgufImage.read(path)
            place = image.tensor("blk.0.attn_k.weight").offset + 2 * size + scale
            image.data[place : place + 2] = INF_HALF if scale else NAN_HALF
            yield f"scale-{quant}-{scale}", image
