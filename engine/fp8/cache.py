# SPDX-License-Identifier: Apache-2.0
"""Packed weights on disk: quantise once, map at every later start.

    magic "THOCKFP8" | u32 version | u32 header bytes | header (JSON, UTF-8) | padding | arrays

All integers little-endian; each array starts at a multiple of 256 bytes. The header holds the digest of
the model file it came from, a free `facts` object, and per array: dtype, shape, offset, CRC-32.
A file is written beside its final name and renamed, so a reader never sees half of one.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import tempfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from engine.errors import ModelFileError
from engine.texts import Text

FORMAT_VERSION: Final = 1
_MAGIC: Final = b"THOCKFP8"
_PREFIX: Final = struct.Struct("<8sII")
_ALIGNMENT: Final = 256
_MAX_HEADER: Final = 1 << 22
_DTYPES: Final = {"uint8", "float16", "float32", "int32"}


@dataclass(frozen=True, slots=True)
class CachedArrays:
    """What `read` hands out; `arrays` are read-only views into the mapped file."""

    source: str
    facts: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def source_digest(path: Path) -> str:
    """SHA-256 of a model file, or of all files of a model folder in order of their names."""
    digest = hashlib.sha256()
    files = [path] if path.is_file() else sorted(p for p in path.iterdir() if p.is_file())
    for file in files:
        if path.is_dir():
            digest.update(file.name.encode())
        with file.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGNMENT) * _ALIGNMENT


def _bytes(array: NDArray[Any]) -> memoryview:
    """The memory of a contiguous array; a view, not a copy."""
    return array.reshape(-1).view(np.uint8).data


def _crc(array: NDArray[Any]) -> int:
    return zlib.crc32(_bytes(array))


def write(
    path: Path, source: str, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write `arrays` to `path` in one atomic step. `source` is the digest of the model file."""
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    entries, offset = [], 0
    for name, array in contiguous.items():
        if array.dtype.name not in _DTYPES:
            raise ValueError(f"array {name} has type {array.dtype.name}, which the cache lacks")
        entries.append(
            {
                "name": name,
                "dtype": array.dtype.name,
                "shape": list(array.shape),
                "offset": offset,
                "crc32": _crc(array),
            }
        )
        offset = _aligned(offset + array.nbytes)
    header = json.dumps({"source": source, "facts": dict(facts), "arrays": entries}).encode()
    base = _aligned(_PREFIX.size + len(header))
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(_PREFIX.pack(_MAGIC, FORMAT_VERSION, len(header)))
            stream.write(header)
            for entry, array in zip(entries, contiguous.values(), strict=True):
                stream.seek(base + int(str(entry["offset"])))
                stream.write(_bytes(array))
            stream.truncate(base + offset)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _header(path: Path, mapped: NDArray[np.uint8]) -> tuple[dict[str, Any], int]:
    if mapped.size < _PREFIX.size:
        raise ModelFileError(path, "prefix", "the file is shorter than its prefix")
    magic, version, length = _PREFIX.unpack(mapped[: _PREFIX.size].tobytes())
    if magic != _MAGIC:
        raise ModelFileError(path, "magic", "not a Thock FP8 cache")
    if version != FORMAT_VERSION:
        raise ModelFileError(
            path,
            "version",
            Text(
                "version {version}, need {format_version}",
                version=version,
                format_version=FORMAT_VERSION,
            ),
        )
    if length > _MAX_HEADER or _PREFIX.size + length > mapped.size:
        raise ModelFileError(
            path, "header", Text("{length} bytes do not fit the file", length=length)
        )
    raw = mapped[_PREFIX.size : _PREFIX.size + length].tobytes()
    try:
        header = json.loads(raw)
    except ValueError as error:
        raise ModelFileError(path, "header", "not valid JSON") from error
    return header, _aligned(_PREFIX.size + length)


def _array(path: Path, mapped: NDArray[np.uint8], base: int, entry: Any) -> NDArray[Any]:
    name = str(entry["name"])
    shape = [int(n) for n in entry["shape"]]
    offset = int(entry["offset"])
    if entry["dtype"] not in _DTYPES or offset < 0 or any(n < 0 for n in shape):
        raise ModelFileError(
            path, Text("array {name}", name=name), "type, shape or offset out of range"
        )
    dtype = np.dtype(entry["dtype"])
    size = dtype.itemsize
    for n in shape:  # Python integers: a hostile shape cannot overflow the comparison below
        size *= n
    if base + offset + size > mapped.size:
        raise ModelFileError(
            path, Text("array {name}", name=name), "reaches past the end of the file"
        )
    raw = mapped[base + offset : base + offset + size]
    if _crc(raw) != entry["crc32"]:
        raise ModelFileError(path, Text("array {name}", name=name), "checksum differs")
    array: NDArray[Any] = raw.view(dtype).reshape(shape)
    return array


def read(path: Path, source: str | None = None) -> CachedArrays:
    """Map `path`. With `source`, the digest in the file must equal it.

    Raises:
        ModelFileError: damaged, truncated, of another version, or made from another model file.
        FileNotFoundError: no such file.
    """
    if path.stat().st_size == 0:
        raise ModelFileError(path, "prefix", "the file is empty")
    mapped: NDArray[np.uint8] = np.memmap(path, dtype=np.uint8, mode="r")
    header, base = _header(path, mapped)
    try:
        if source is not None and header["source"] != source:
            raise ModelFileError(path, "source", "made from another model file")
        arrays = {str(e["name"]): _array(path, mapped, base, e) for e in header["arrays"]}
        return CachedArrays(str(header["source"]), dict(header["facts"]), arrays)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(path, "header", "a field is missing or of the wrong type") from error
