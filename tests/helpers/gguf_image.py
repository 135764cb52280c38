# SPDX-License-Identifier: Apache-2.0
"""A GGUF file taken apart, so that a test can spoil one field and write the rest unchanged.

It trusts its input (files of `gguf_writer`) and knows nothing of engine.formats.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
STRING, ARRAY = 8, 9
U32, I32, F32, BOOL, U64 = 4, 5, 6, 7, 10


def string(text: str | bytes) -> bytes:
    raw = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(raw)) + raw


def text_value(text: str) -> tuple[int, bytes]:
    return STRING, string(text)


def u32(number: int) -> tuple[int, bytes]:
    return U32, struct.pack("<I", number)


def f32(number: float) -> tuple[int, bytes]:
    return F32, struct.pack("<f", number)


def strings(texts: list[str]) -> tuple[int, bytes]:
    body = b"".join(string(text) for text in texts)
    return ARRAY, struct.pack("<IQ", STRING, len(texts)) + body


@dataclass
class TensorInfo:
    name: str
    dims: tuple[int, ...]  # row length first, as in the file
    type: int
    offset: int
    n_dims: int | None = None  # what is written, if not len(dims)


@dataclass
class GgufImage:
    """`keys` hold (type, raw value). `n_keys`, `n_tensors` None: the true counts are written."""

    keys: list[tuple[bytes, int, bytes]]
    tensors: list[TensorInfo]
    data: bytearray
    magic: bytes = b"GGUF"
    version: int = 3
    n_keys: int | None = None
    n_tensors: int | None = None
    alignment: int = 32

    @classmethod
    def read(cls, path: Path) -> GgufImage:
        raw = path.read_bytes()
        position = 8
        n_tensors, n_keys = struct.unpack_from("<QQ", raw, position)
        position += 16

        def take_string() -> bytes:
            nonlocal position
            size = struct.unpack_from("<Q", raw, position)[0]
            position += 8 + size
            return raw[position - size : position]

        keys = []
        for _ in range(n_keys):
            name = take_string()
            kind = struct.unpack_from("<I", raw, position)[0]
            position += 4
            start = position
            position = _end_of_value(raw, position, kind)
            keys.append((name, kind, raw[start:position]))
        tensors = []
        for _ in range(n_tensors):
            name = take_string()
            n_dims = struct.unpack_from("<I", raw, position)[0]
            dims = struct.unpack_from(f"<{n_dims}Q", raw, position + 4)
            position += 4 + 8 * n_dims
            kind, offset = struct.unpack_from("<IQ", raw, position)
            position += 12
            tensors.append(TensorInfo(name.decode(), dims, kind, offset))
        data_start = (position + 31) // 32 * 32
        return cls(keys, tensors, bytearray(raw[data_start:]))

    def set(self, key: str, value: tuple[int, bytes] | None) -> GgufImage:
        """Replace, add or (None) remove a key; returns the image itself."""
        name = key.encode()
        if value is None:
            self.keys = [entry for entry in self.keys if entry[0] != name]
            return self
        entry = (name, *value)
        if any(old[0] == name for old in self.keys):
            self.keys = [entry if old[0] == name else old for old in self.keys]
        else:
            self.keys.append(entry)
        return self

    def tensor(self, name: str) -> TensorInfo:
        return next(info for info in self.tensors if info.name == name)

    def header(self) -> bytes:
        n_keys = len(self.keys) if self.n_keys is None else self.n_keys
        n_tensors = len(self.tensors) if self.n_tensors is None else self.n_tensors
        parts = [self.magic, struct.pack("<IQQ", self.version, n_tensors, n_keys)]
        parts += [string(k) + struct.pack("<I", kind) + value for k, kind, value in self.keys]
        for info in self.tensors:
            n_dims = len(info.dims) if info.n_dims is None else info.n_dims
            parts.append(string(info.name) + struct.pack("<I", n_dims))
            parts.append(struct.pack(f"<{len(info.dims)}Q", *info.dims))
            parts.append(struct.pack("<IQ", info.type, info.offset))
        raw = b"".join(parts)
        return raw + bytes(-len(raw) % self.alignment)

    def write(self, path: Path) -> Path:
        path.write_bytes(self.header() + self.data)
        return path


def _end_of_value(raw: bytes, position: int, kind: int) -> int:
    if kind == STRING:
        return position + 8 + int(struct.unpack_from("<Q", raw, position)[0])
    if kind != ARRAY:
        return position + SIZES[kind]
    element, count = struct.unpack_from("<IQ", raw, position)
    position += 12
    if element != STRING:
        return position + int(count) * SIZES[element]
    for _ in range(count):
        position = _end_of_value(raw, position, STRING)
    return position
