# SPDX-License-Identifier: Apache-2.0
"""Key-value metadata of a GGUF file: found at once, decoded when asked for.

A vocabulary of 150,000 strings is only stepped over while the header is read. Every getter checks
type and range, and its errors name the key.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.errors import ModelFileError
from engine.formats.mapped_file import MappedFile
from engine.texts import Text

LENGTH = struct.Struct("<Q")


class ValueType(enum.IntEnum):
    """gguf_type of gguf.h."""

    UINT8 = 0
    INT8 = 1
    UINT16 = 2
    INT16 = 3
    UINT32 = 4
    INT32 = 5
    FLOAT32 = 6
    BOOL = 7
    STRING = 8
    ARRAY = 9
    UINT64 = 10
    INT64 = 11
    FLOAT64 = 12


SCALARS = {
    ValueType.UINT8: struct.Struct("<B"),
    ValueType.INT8: struct.Struct("<b"),
    ValueType.UINT16: struct.Struct("<H"),
    ValueType.INT16: struct.Struct("<h"),
    ValueType.UINT32: struct.Struct("<I"),
    ValueType.INT32: struct.Struct("<i"),
    ValueType.FLOAT32: struct.Struct("<f"),
    ValueType.BOOL: struct.Struct("<B"),
    ValueType.UINT64: struct.Struct("<Q"),
    ValueType.INT64: struct.Struct("<q"),
    ValueType.FLOAT64: struct.Struct("<d"),
}
_FLOATS = (ValueType.FLOAT32, ValueType.FLOAT64)
_INTEGERS = tuple(t for t in SCALARS if t not in _FLOATS and t is not ValueType.BOOL)


@dataclass(frozen=True, slots=True)
class RawValue:
    """Where a value stands: bytes `start` to `end`. `element` and `count` are those of an array."""

    type: ValueType
    start: int
    end: int
    element: ValueType | None = None
    count: int = 1


class Metadata:
    """The keys of one file. `end` of a RawValue was checked against the file when it was found."""

    def __init__(self, file: MappedFile, values: Mapping[str, RawValue]) -> None:
        self._file = file
        self._values = values

    @property
    def path(self) -> Path:
        return self._file.path

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def error(self, key: str, reason: str) -> ModelFileError:
        """An error about `key`, for callers that check more than the type."""
        return ModelFileError(self.path, key, reason)

    def count(self, key: str) -> int:
        """Length of an array, without decoding it; 0 if the key is missing."""
        return self._values[key].count if key in self._values else 0

    def integer(self, key: str, low: int, high: int, default: int | None = None) -> int:
        """An integer in `low`..`high`. An array of equal integers (one per layer) counts as one."""
        value = self._find(key)
        if value is None:
            if default is None:
                raise self.error(key, "is missing")
            return default
        if value.type is ValueType.ARRAY:
            numbers = self.numbers(key)
            if not len(numbers) or (numbers != numbers[0]).any():
                raise self.error(key, "differs between layers, which Thock does not support")
            number = numbers[0].item()
        else:
            number = self._scalar(key, value, _INTEGERS)
        if not isinstance(number, int) or not low <= number <= high:
            raise self.error(
                key,
                Text(
                    "is {number}, allowed are whole numbers from {low} to {high}",
                    number=number,
                    low=low,
                    high=high,
                ),
            )
        return number

    def real(self, key: str, low: float, high: float, default: float | None = None) -> float:
        """A number in `low`..`high`, both finite; NaN is in no range."""
        value = self._find(key)
        if value is None:
            if default is None:
                raise self.error(key, "is missing")
            return default
        number = float(self._scalar(key, value, (*_FLOATS, *_INTEGERS)))
        if not low <= number <= high:
            raise self.error(
                key,
                Text("is {number}, allowed is {low} to {high}", number=number, low=low, high=high),
            )
        return number

    def flag(self, key: str, default: bool) -> bool:
        value = self._find(key)
        if value is None:
            return default
        number = self._scalar(key, value, (ValueType.BOOL,))
        if number not in (0, 1):
            raise self.error(key, Text("is {number}, a truth value is 0 or 1", number=number))
        return bool(number)

    def text(self, key: str, max_bytes: int, default: str | None = None) -> str:
        value = self._find(key)
        if value is None:
            if default is None:
                raise self.error(key, "is missing")
            return default
        if value.type is not ValueType.STRING:
            raise self.error(
                key, Text("is of type {type_name}, not a string", type_name=value.type.name)
            )
        size = value.end - value.start - LENGTH.size
        if size > max_bytes:
            raise self.error(
                key,
                Text(
                    "is {size} bytes long, allowed are {max_bytes}", size=size, max_bytes=max_bytes
                ),
            )
        data = self._file.read(value.start + LENGTH.size, size, key)
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise self.error(
                key, Text("is not UTF-8 at byte {error_start}", error_start=error.start)
            ) from None

    def texts(self, key: str) -> list[str]:
        """An array of strings."""
        value = self._array(key)
        if value.element is not ValueType.STRING:
            raise self.error(
                key,
                Text(
                    "is an array of {element_name}, not of strings",
                    element_name=_element_name(value),
                ),
            )
        data = self._file.read(value.start, value.end - value.start, key)
        unpack, step = LENGTH.unpack_from, LENGTH.size
        out: list[str] = []
        position = 0
        try:
            for _ in range(value.count):
                start = position + step
                position = start + unpack(data, position)[0]
                out.append(data[start:position].decode())
        except UnicodeDecodeError as error:
            raise self.error(
                f"{key}[{len(out)}]",
                Text("is not UTF-8 at byte {error_start}", error_start=error.start),
            ) from None
        except struct.error:  # the lengths were sound when the header was read
            raise self.error(f"{key}[{len(out)}]", "the file changed while in use") from None
        return out

    def numbers(self, key: str) -> NDArray[np.generic]:
        """An array of numbers, as a new one-dimensional numpy array of the type in the file."""
        value = self._array(key)
        if value.element not in SCALARS or value.element is ValueType.BOOL:
            raise self.error(
                key,
                Text(
                    "is an array of {element_name}, not of numbers",
                    element_name=_element_name(value),
                ),
            )
        data = self._file.read(value.start, value.end - value.start, key)
        return np.frombuffer(data, SCALARS[value.element].format)

    def _find(self, key: str) -> RawValue | None:
        return self._values.get(key)

    def _array(self, key: str) -> RawValue:
        value = self._find(key)
        if value is None:
            raise self.error(key, "is missing")
        if value.type is not ValueType.ARRAY:
            raise self.error(
                key, Text("is of type {type_name}, not an array", type_name=value.type.name)
            )
        return value

    def _scalar(self, key: str, value: RawValue, allowed: tuple[ValueType, ...]) -> int | float:
        if value.type not in allowed:
            names = ", ".join(t.name for t in allowed)
            raise self.error(
                key,
                Text(
                    "is of type {type_name}, expected one of {names}",
                    type_name=value.type.name,
                    names=names,
                ),
            )
        data = self._file.read(value.start, value.end - value.start, key)
        number: int | float = SCALARS[value.type].unpack(data)[0]
        return number


def _element_name(value: RawValue) -> str:
    return value.element.name if value.element is not None else Text("nothing")
