# SPDX-License-Identifier: Apache-2.0
"""As much of a damaged settings file as can be used: lines that are TOML, settings that are valid."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from pydantic import ValidationError

from app.config.problems import Problem
from app.config.reasons import reason_of
from app.settings import Settings
from engine.texts import Text

MAX_BYTES = 1 << 20
_MAX_BAD_LINES = 100
_LINE = re.compile(r"at line (\d+)")

Table = dict[str, Any]


def parse_lines(data: bytes) -> tuple[str, Table, list[Problem]]:
    """The text that is TOML, what it says, and a problem for each line that had to be left out.

    Line numbers are those of `data`. A file with more than 100 bad lines is no settings file: then
    nothing of it is used.
    """
    if len(data) > MAX_BYTES:
        return (
            "",
            {},
            [
                Problem(
                    "",
                    Text(
                        "The file is over {max_bytes} bytes; nothing of it was read.",
                        max_bytes=MAX_BYTES,
                    ),
                )
            ],
        )
    lines = [_decoded(line) for line in data.split(b"\n")]
    problems = [
        Problem(Text("line {number}", number=number), "This is not UTF-8; it was left out.")
        for number, line in enumerate(lines, 1)
        if line is None
    ]
    kept = [line or "" for line in lines]
    while len(problems) <= _MAX_BAD_LINES:
        text = "\n".join(kept)
        try:
            return text, tomllib.loads(text), problems
        except (ValueError, RecursionError) as error:
            number = _bad_line(error, kept)
        if number is None:
            break
        kept[number - 1] = ""
        problems.append(
            Problem(Text("line {number}", number=number), "This is not TOML; it was left out.")
        )
    return "", {}, [Problem("", "This is no TOML file; nothing of it was read.")]


def _decoded(line: bytes) -> str | None:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _bad_line(error: Exception, lines: Sequence[str]) -> int | None:
    """The number of the line to leave out, one that is not empty already."""
    found = _LINE.search(str(error))
    if found is not None:
        number = min(int(found[1]), len(lines))
    elif isinstance(error, tomllib.TOMLDecodeError):
        number = len(lines)  # "at end of document"
    else:
        # Numbers too long for int(), dates that are none: tomllib passes on what Python said.
        number = next((n for n, line in enumerate(lines, 1) if _alone_fails(line)), 0)
    # A string or a list that is never closed is noticed below its beginning.
    while number and not lines[number - 1].strip():
        number -= 1
    return number or None


def _alone_fails(line: str) -> bool:
    try:
        tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return False
    except (ValueError, RecursionError):
        return True
    return False


def valid_part(data: Mapping[str, Any]) -> tuple[Settings, Table, list[Problem]]:
    """The settings in `data`, `data` without what is wrong, and a problem for each thing left out."""
    left: Table = deepcopy(dict(data))
    problems: list[Problem] = []
    while True:
        try:
            return Settings.model_validate(left), left, problems
        except ValidationError as error:
            found = reasons(error)
        removed = [(place, text) for place, text in found if _remove(left, place)]
        problems += [
            Problem(".".join(place), Text("{reason} The default is used.", reason=text))
            for place, text in removed
        ]
        if not removed:  # a rule over several settings: none of them alone is to blame
            left.clear()


def reasons(error: ValidationError) -> list[tuple[tuple[str, ...], Text]]:
    """Where and why; never the value itself."""
    return [
        (tuple(map(str, detail["loc"])), reason_of(detail))
        for detail in error.errors(include_url=False, include_input=False)
    ]


def _remove(data: Table, place: Sequence[str]) -> bool:
    """Take out the deepest part of `place` that is there; False if another problem took it out before."""
    table: Any = data
    for depth, key in enumerate(place):
        if not isinstance(table, dict) or key not in table:
            return False
        inner = table[key]
        if depth + 1 == len(place) or not isinstance(inner, dict) or place[depth + 1] not in inner:
            del table[key]
            return True
        table = inner
    return False
