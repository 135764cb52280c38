# SPDX-License-Identifier: Apache-2.0
"""The header of a GGUF file (version 2 or 3, little-endian): metadata and tensor positions.

Layout: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Nothing in the file is believed:
each count is bounded before it is used, each position is compared with the file's size.
Python's integers do not overflow, so `offset + size` is exact.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from engine.errors import ModelFileError, UnsupportedModelError
from engine.formats.gguf_metadata import LENGTH, SCALARS, Metadata, RawValue, ValueType
from engine.formats.mapped_file import MappedFile
from engine.formats.tensors import StoredTensor, TensorType, check_placement, stored_size
from engine.texts import Text

MAGIC = b"GGUF"
_OLD_MAGICS = (b"ggml", b"lmgg", b"ggjt", b"tjgg", b"ggla", b"algg", b"ggmf", b"fmgg")
VERSIONS = (2, 3)
MAX_KEYS = 1 << 14
MAX_TENSORS = 1 << 15
MAX_NAME_BYTES = 256  # of a key or a tensor; llama.cpp allows 63 for a tensor
MAX_DIMENSIONS = 4
MAX_STRINGS = 1 << 20  # in all arrays together; Llama 3 has 128 256 tokens and 280 147 merges
MAX_ARRAY_BYTES = 1 << 25
DEFAULT_ALIGNMENT = 32
MAX_ALIGNMENT = 1 << 16

_U32 = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """What stands in front of the weights. `tensors` are by their names in the file."""

    version: int
    metadata: Metadata
    tensors: dict[str, StoredTensor]


def read_header(file: MappedFile) -> GgufHeader:
    """Read everything up to the weights. Takes about 20 ms for a vocabulary of 50,000.

    Raises:
        ModelFileError: the header is damaged, cut short or contradicts itself.
        UnsupportedModelError: big-endian, an older format, or a tensor type that Thock lacks.
    """
    cursor = _Cursor(file)
    version = _read_version(cursor)
    n_tensors = cursor.count("tensor_count", MAX_TENSORS)
    n_keys = cursor.count("metadata_kv_count", MAX_KEYS)
    values: dict[str, RawValue] = {}
    for number in range(n_keys):
        key = cursor.name(Text("metadata key {name}", name=number))
        if key in values:
            raise ModelFileError(file.path, key, "stands twice in the metadata")
        values[key] = cursor.value(key)
    metadata = Metadata(file, values)
    infos = _read_infos(cursor, n_tensors)
    tensors = _place_tensors(file, infos, cursor.position, _alignment(metadata))
    return GgufHeader(version, metadata, tensors)


@dataclass(frozen=True, slots=True)
class _Info:
    shape: tuple[int, ...]
    type: int
    offset: int


class _Cursor:
    """A position in the header that only moves over bytes that exist."""

    def __init__(self, file: MappedFile) -> None:
        self.file = file
        self.position = 0
        self._strings_left = MAX_STRINGS

    def error(self, field: str, reason: str) -> ModelFileError:
        return ModelFileError(self.file.path, field, reason)

    def skip(self, size: int, field: str) -> int:
        """Move on by `size` bytes; returns where they start."""
        start, left = self.position, self.file.size - self.position
        if size > left:
            raise self.error(
                field,
                Text("needs {size} bytes, the file ends after {left} more", size=size, left=left),
            )
        self.position += size
        return start

    def u32(self, field: str) -> int:
        number: int = _U32.unpack_from(self.file.buffer, self.skip(_U32.size, field))[0]
        return number

    def u64(self, field: str) -> int:
        number: int = LENGTH.unpack_from(self.file.buffer, self.skip(LENGTH.size, field))[0]
        return number

    def count(self, field: str, most: int) -> int:
        number = self.u64(field)
        if number > most:
            raise self.error(
                field, Text("is {number}, allowed are {most}", number=number, most=most)
            )
        return number

    def name(self, field: str) -> str:
        """A key or the name of a tensor: printable ASCII, so that messages can show it."""
        size = self.count(field, MAX_NAME_BYTES)
        start = self.skip(size, field)
        raw = self.file.buffer[start : start + size]
        if not raw or not all(0x20 < byte < 0x7F for byte in raw):
            raise self.error(field, "is empty or no printable ASCII")
        return raw.decode("ascii")

    def value(self, key: str) -> RawValue:
        """Step over one value and remember where it stands."""
        kind = self._type(key)
        if kind is ValueType.ARRAY:
            return self._array(key)
        start = self.position
        if kind is ValueType.STRING:
            self.skip(self.u64(key), key)
        else:
            self.skip(SCALARS[kind].size, key)
        return RawValue(kind, start, self.position)

    def _type(self, key: str) -> ValueType:
        number = self.u32(key)
        try:
            return ValueType(number)
        except ValueError:
            raise self.error(
                key, Text("has the unknown value type {number}", number=number)
            ) from None

    def _array(self, key: str) -> RawValue:
        element = self._type(key)
        if element is ValueType.ARRAY:  # llama.cpp refuses these too
            raise self.error(key, "is an array of arrays")
        count = self.u64(key)
        start = self.position
        if element is ValueType.STRING:
            self._skip_strings(count, key)
        else:
            self.skip(count * SCALARS[element].size, key)
        if self.position - start > MAX_ARRAY_BYTES:
            reason = Text(
                "is {position} bytes long, allowed are {max_array_bytes}",
                position=self.position - start,
                max_array_bytes=MAX_ARRAY_BYTES,
            )
            raise self.error(key, reason)
        return RawValue(ValueType.ARRAY, start, self.position, element, count)

    def _skip_strings(self, count: int, key: str) -> None:
        """Step over `count` strings; about 0.15 us each."""
        self._strings_left -= count
        if self._strings_left < 0:
            raise self.error(
                key,
                Text(
                    "has {count} strings; a file may have {max_strings} in all",
                    count=count,
                    max_strings=MAX_STRINGS,
                ),
            )
        unpack, step = LENGTH.unpack_from, LENGTH.size
        buffer, end, position = self.file.buffer, self.file.size, self.position
        for number in range(count):
            if position + step > end:
                raise self.error(
                    f"{key}[{number}]",
                    Text("starts at byte {position}, past the end", position=position),
                )
            position += step + unpack(buffer, position)[0]
        self.skip(position - self.position, key)


def _read_version(cursor: _Cursor) -> int:
    path = cursor.file.path
    start = cursor.skip(len(MAGIC), "magic")
    magic = cursor.file.buffer[start : start + len(MAGIC)]
    if magic in _OLD_MAGICS:
        raise UnsupportedModelError(
            path, "magic", "is a GGML file from before GGUF; convert it with a newer llama.cpp"
        )
    if magic != MAGIC:
        raise ModelFileError(
            path,
            "magic",
            Text(
                "is {magic}, a GGUF file begins with {magic2}",
                magic=repr(magic),
                magic2=repr(MAGIC),
            ),
        )
    version = cursor.u32("version")
    if version and version & 0xFFFF == 0:
        raise UnsupportedModelError(path, "version", "the file is big-endian")
    if version not in VERSIONS:
        raise UnsupportedModelError(
            path, "version", Text("is {version}, Thock reads GGUF 2 and 3", version=version)
        )
    return version


def _read_infos(cursor: _Cursor, n_tensors: int) -> dict[str, _Info]:
    path = cursor.file.path
    infos: dict[str, _Info] = {}
    for number in range(n_tensors):
        name = cursor.name(Text("name of tensor {name}", name=number))
        field = Text("tensor {name}", name=name)
        if name in infos:
            raise ModelFileError(path, field, "stands twice in the file")
        n_dims = cursor.u32(field)
        if not 1 <= n_dims <= MAX_DIMENSIONS:
            reason = Text(
                "has {n_dims} dimensions, allowed are 1 to {max_dimensions}",
                n_dims=n_dims,
                max_dimensions=MAX_DIMENSIONS,
            )
            raise ModelFileError(path, field, reason)
        # GGUF writes the row length first; our shapes have it last, as numpy does.
        shape = tuple(cursor.u64(field) for _ in range(n_dims))[::-1]
        if not all(shape):
            raise ModelFileError(path, field, Text("has the empty shape {shape}", shape=shape))
        infos[name] = _Info(shape, cursor.u32(field), cursor.u64(field))
    return infos


def _alignment(metadata: Metadata) -> int:
    key = "general.alignment"
    alignment = metadata.integer(key, 8, MAX_ALIGNMENT, DEFAULT_ALIGNMENT)
    if alignment & (alignment - 1):
        raise metadata.error(key, Text("is {alignment}, not a power of two", alignment=alignment))
    return alignment


def _place_tensors(
    file: MappedFile, infos: dict[str, _Info], header_end: int, alignment: int
) -> dict[str, StoredTensor]:
    """The weights start at the first aligned byte after the header; offsets count from there."""
    data_start = -(-header_end // alignment) * alignment
    tensors: dict[str, StoredTensor] = {}
    for name, info in infos.items():
        field = Text("tensor {name}", name=name)
        kind = _tensor_type(file, field, info.type)
        size = stored_size(kind, info.shape)
        if size is None:
            reason = Text(
                "has rows of {shape} weights, no whole number of {kind_name} blocks",
                shape=info.shape[-1],
                kind_name=kind.name,
            )
            raise ModelFileError(file.path, field, reason)
        if info.offset % alignment:
            reason = Text(
                "starts at offset {offset}, no multiple of {alignment}",
                offset=info.offset,
                alignment=alignment,
            )
            raise ModelFileError(file.path, field, reason)
        tensors[name] = StoredTensor(file, name, kind, info.shape, data_start + info.offset, size)
    check_placement(tensors.values(), padding=alignment)  # llama.cpp refuses gaps, too
    return tensors


def _tensor_type(file: MappedFile, field: str, number: int) -> TensorType:
    try:
        return TensorType(number)
    except ValueError:
        known = ", ".join(kind.name for kind in TensorType)
        reason = Text(
            "has type {foreign_type}; Thock reads {known}",
            foreign_type=_foreign_type(number),
            known=known,
        )
        raise UnsupportedModelError(file.path, field, reason) from None


def _foreign_type(number: int) -> str:
    """The name of a tensor type that Thock does not read."""
    from gguf import GGMLQuantizationType

    try:
        return str(GGMLQuantizationType(number).name)
    except ValueError:
        return f"number {number}"
