# SPDX-License-Identifier: Apache-2.0
"""JSON from an untrusted file: bounded size, bounded memory, typed getters."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from engine.errors import ModelFileError
from engine.formats.bounds import printable
from engine.formats.mapped_file import MappedFile
from engine.texts import Text

# Llama 3 has the largest tokenizer.json of the supported families: 17 MB, about 150 MiB parsed.
MAX_JSON_BYTES = 24 << 20
MAX_JSON_MEMORY = 192 << 20


class JsonObject:
    """One JSON object. Getters treat null as missing and name the field in every error."""

    def __init__(self, path: Path, values: dict[str, Any], field: str = "") -> None:
        """`field` is the place of the object in the file, empty for the file itself."""
        self.path = path
        self.values = values
        self._field = field

    def __contains__(self, key: str) -> bool:
        return self.values.get(key) is not None

    def field(self, key: str) -> str:
        key = printable(key)
        return f"{self._field}.{key}" if self._field else key

    def error(self, key: str, reason: str) -> ModelFileError:
        return ModelFileError(self.path, self.field(key), reason)

    def integer(self, key: str, low: int, high: int, default: int | None = None) -> int:
        value = self._get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            reason = Text(
                "is {shown}, allowed are whole numbers from {low} to {high}",
                shown=_shown(value),
                low=low,
                high=high,
            )
            raise self.error(key, reason)
        return value

    def real(self, key: str, low: float, high: float, default: float | None = None) -> float:
        """A number in `low`..`high`, both finite."""
        value = self._get(key, default)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not low <= value <= high:
            raise self.error(
                key,
                Text(
                    "is {shown}, allowed is {low} to {high}",
                    shown=_shown(value),
                    low=low,
                    high=high,
                ),
            )
        return float(value)

    def flag(self, key: str, default: bool) -> bool:
        value = self._get(key, default)
        if not isinstance(value, bool):
            raise self.error(key, Text("is {shown}, not true or false", shown=_shown(value)))
        return value

    def text(self, key: str, default: str | None = None) -> str:
        value = self._get(key, default)
        if not isinstance(value, str):
            raise self.error(key, Text("is {shown}, not a string", shown=_shown(value)))
        return value

    def items(self, key: str) -> list[Any]:
        """A list; empty if the key is missing."""
        value = self._get(key, [])
        if not isinstance(value, list):
            raise self.error(key, Text("is {shown}, not a list", shown=_shown(value)))
        return value

    def object(self, key: str) -> JsonObject:
        """A nested object; empty if the key is missing."""
        value = self._get(key, {})
        if not isinstance(value, dict):
            raise self.error(key, Text("is {shown}, not an object", shown=_shown(value)))
        return JsonObject(self.path, value, self.field(key))

    def _get(self, key: str, default: Any) -> Any:
        value = self.values.get(key)
        if value is None:
            if default is None:
                raise self.error(key, "is missing")
            return default
        return value


def read_json(path: Path, max_bytes: int = MAX_JSON_BYTES) -> JsonObject:
    """The object in a JSON file.

    Raises:
        ModelFileError: missing, too large, not UTF-8, no JSON, or no object.
    """
    return JsonObject(path, parse_json(path, "file", read_small_file(path, max_bytes)))


def read_small_file(path: Path, max_bytes: int) -> bytes:
    """All bytes of a file of at most `max_bytes`.

    Raises:
        ModelFileError: not a readable regular file, or too large.
    """
    file = MappedFile(path)
    try:
        if file.size > max_bytes:
            raise ModelFileError(
                path,
                "file",
                Text(
                    "is {file_size} bytes, allowed are {max_bytes}",
                    file_size=file.size,
                    max_bytes=max_bytes,
                ),
            )
        return file.read(0, file.size, "file")
    finally:
        file.close()


def parse_json(path: Path, field: str, data: bytes) -> dict[str, Any]:
    """The object in `data`; `field` names it in errors.

    Raises:
        ModelFileError: as for read_json; also if a key stands twice in an object.
    """
    try:
        text = data.decode()
        memory = _memory_to_parse(data, text)
        if memory > MAX_JSON_MEMORY:
            reason = Text(
                "would take about {memory} MiB, allowed are {max_json_memory}",
                memory=memory >> 20,
                max_json_memory=MAX_JSON_MEMORY >> 20,
            )
            raise ModelFileError(path, field, reason)
        parsed = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise ModelFileError(
            path, field, Text("is not UTF-8 at byte {error_start}", error_start=error.start)
        ) from None
    except json.JSONDecodeError as error:
        reason = Text(
            "is no JSON at line {lineno}, column {colno}", lineno=error.lineno, colno=error.colno
        )
        raise ModelFileError(path, field, reason) from None
    except RecursionError:
        raise ModelFileError(path, field, "is nested too deeply") from None
    except ValueError as error:  # of our hooks, or a number of more than 4300 digits
        raise ModelFileError(
            path, field, Text("is refused: {error}", error=printable(str(error)))
        ) from None
    if not isinstance(parsed, dict):
        raise ModelFileError(path, field, "is no JSON object")
    return parsed


def _memory_to_parse(data: bytes, text: str) -> int:
    """An upper bound in bytes: file, text, its copy in strings, and CPython's objects.

    Every value but the first follows a comma, a bracket or a brace and takes at most 72 bytes
    (a list or string with its slot); an entry of an object takes 130 more while it is built.
    """
    values = data.count(b",") + data.count(b"[") + data.count(b"{")
    return len(data) + 2 * sys.getsizeof(text) + 72 * values + 130 * data.count(b":")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        double = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"{printable(double)!r} stands twice")
    return values


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number")


def _shown(value: Any) -> str:
    """A value as messages show it; containers by their kind only."""
    if isinstance(value, dict | list):
        return Text("an object") if isinstance(value, dict) else Text("a list")
    if isinstance(value, int) and abs(value) >= 1 << 64:
        return Text("a number of more than 64 bits")
    return printable(repr(value))
