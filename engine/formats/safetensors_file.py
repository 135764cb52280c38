# SPDX-License-Identifier: Apache-2.0
"""Where the tensors stand in a safetensors file.

Layout: 8 bytes with the length of a JSON header (little-endian), the header, the weights
(https://github.com/huggingface/safetensors). The library itself hands BF16 out through torch only,
so the header is read here and the weights take the same way as those of a GGUF file.
"""

from __future__ import annotations

import struct
from typing import Any

from engine.errors import ModelFileError, UnsupportedModelError
from engine.formats.bounds import printable
from engine.formats.json_file import parse_json
from engine.formats.mapped_file import MappedFile
from engine.formats.tensors import StoredTensor, TensorType, check_placement, stored_size
from engine.texts import Text

MAX_HEADER_BYTES = 1 << 24  # 70B models have 100 KB
MAX_DIMENSIONS = 8
_LENGTH = struct.Struct("<Q")
_TYPES = {"F32": TensorType.F32, "F16": TensorType.F16, "BF16": TensorType.BF16}


def read_safetensors(file: MappedFile, ignored: frozenset[str]) -> dict[str, StoredTensor]:
    """The tensors of one file, by their names in it, without those whose last part is `ignored`.

    Raises:
        ModelFileError: the header is damaged, or a tensor lies outside the file or over another.
        UnsupportedModelError: a type other than F32, F16 and BF16.
    """
    length = _LENGTH.unpack(file.read(0, _LENGTH.size, "header length"))[0]
    if length > MAX_HEADER_BYTES:
        reason = Text(
            "is {length}, allowed are {max_header_bytes}",
            length=length,
            max_header_bytes=MAX_HEADER_BYTES,
        )
        raise ModelFileError(file.path, "header length", reason)
    data = file.read(_LENGTH.size, length, "header")
    header = parse_json(file.path, "header", data)
    header.pop("__metadata__", None)
    start = _LENGTH.size + length
    tensors = {
        name: _read_entry(file, name, entry, start)
        for name, entry in header.items()
        if name.rsplit(".", 1)[-1] not in ignored
    }
    check_placement(tensors.values())
    return tensors


def _read_entry(file: MappedFile, name: str, entry: Any, data_start: int) -> StoredTensor:
    field = Text("tensor {name}", name=printable(name))
    if not isinstance(entry, dict):
        raise ModelFileError(file.path, field, "is described by no object")
    dtype = entry.get("dtype")
    if not isinstance(dtype, str):
        raise ModelFileError(file.path, field, "has no dtype")
    if dtype not in _TYPES:
        reason = Text(
            "has type {dtype}; Thock reads {types}", dtype=printable(dtype), types=", ".join(_TYPES)
        )
        raise UnsupportedModelError(file.path, field, reason)
    shape = _whole_numbers(entry.get("shape"))
    if not shape or len(shape) > MAX_DIMENSIONS or not all(shape):
        raise ModelFileError(file.path, field, "has an empty shape or none")
    offsets = _whole_numbers(entry.get("data_offsets"))
    if offsets is None or len(offsets) != 2:
        raise ModelFileError(file.path, field, "has no pair of data_offsets")
    kind = _TYPES[dtype]
    size = stored_size(kind, shape)
    if size is None or offsets[1] - offsets[0] != size:
        reason = Text(
            "takes {offsets} bytes, its shape asks for {size}",
            offsets=offsets[1] - offsets[0],
            size=size,
        )
        raise ModelFileError(file.path, field, reason)
    return StoredTensor(file, printable(name), kind, shape, data_start + offsets[0], size)


def _whole_numbers(value: Any) -> tuple[int, ...] | None:
    """A list of numbers from 0 to 2**63, or None. The bound keeps their product cheap."""
    if not isinstance(value, list) or len(value) > MAX_DIMENSIONS:
        return None
    whole = all(type(number) is int and 0 <= number < 1 << 63 for number in value)
    return tuple(value) if whole else None
