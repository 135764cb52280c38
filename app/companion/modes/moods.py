# SPDX-License-Identifier: Apache-2.0
"""The moods of react mode: assets/moods.toml, or a file of the person's own in its place."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from app.companion.lights import overlay_of
from app.config.reasons import reason_of
from app.i18n import Language
from engine.texts import Text, as_text, system_reason
from firmware_bridge.display.canvas import PixelArt, parse_art
from firmware_bridge.lights.overlay import LightOverlay

FACE_COLUMNS = 20
FACE_ROWS = 4
ART_WIDTH = 32
ART_HEIGHT = 24
MAX_FILE_BYTES = 65_536

_Short = Annotated[str, StringConstraints(min_length=1, max_length=20)]
_Line = Annotated[str, StringConstraints(min_length=1, max_length=80)]


class MoodsError(Exception):
    """The person's own file of moods is none; the message says why and what to do."""


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    name: dict[str, _Short] = {}
    face: str
    art: str
    colour: tuple[int, int, int]
    effect: str = "solid"
    examples: tuple[tuple[_Line, _Line], ...] = Field(default=(), max_length=8)


_FILE = TypeAdapter(dict[_Short, _Entry])
_FEWEST, _MOST = 2, 32  # as engine.messages.Choose


@dataclass(frozen=True, slots=True)
class Mood:
    """A label of the model's choice, its name for the person, a face, and its light.

    The face is there twice: in at most 20 x 4 characters, and in at most 32 x 24 pixels. `examples` are
    lines and manners of typing that the model is told to answer with this label.
    """

    label: str
    name: str
    face: tuple[str, ...]
    art: PixelArt
    lights: LightOverlay
    examples: tuple[tuple[str, str], ...] = field(default=(), repr=False)


def load_moods(language: Language = Language.EN) -> Mapping[str, Mood]:
    """The moods that are part of the program, by label.

    Raises:
        ValueError: a face does not fit, or has characters that it cannot be made of.
    """
    text = resources.files("assets").joinpath("moods.toml").read_text(encoding="utf-8")
    return parse_moods(text, language)


def load_own_moods(path: Path, language: Language) -> Mapping[str, Mood] | None:
    """The moods in the person's own file; None if there is no such file.

    Raises:
        MoodsError: it is damaged.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise MoodsError(
            Text(
                "{file} cannot be read: {error}",
                file=path.name,
                error=system_reason(error),
            )
        ) from None
    if len(data) > MAX_FILE_BYTES:
        raise MoodsError(
            Text(
                "{file} is longer than {max_file_bytes} bytes; mend it or remove it",
                file=path.name,
                max_file_bytes=MAX_FILE_BYTES,
            )
        )
    try:
        moods = parse_moods(data.decode("utf-8"), language)
        if _FEWEST <= len(moods) <= _MOST:
            return moods
        reason = Text("it has to hold {fewest} to {most} moods", fewest=_FEWEST, most=_MOST)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        reason = Text("{where}: {reason}", where=where, reason=reason_of(first))
    except (ValueError, RecursionError) as error:
        reason = as_text(str(error))
    raise MoodsError(Text("{file}: {reason}; mend it or remove it", file=path.name, reason=reason))


def parse_moods(text: str, language: Language = Language.EN) -> Mapping[str, Mood]:
    """The moods in the TOML document `text`. Raises as `load_moods`."""
    moods = {}
    for label, entry in _FILE.validate_python(tomllib.loads(text)).items():
        face = tuple(entry.face.rstrip("\n").split("\n"))
        if len(face) > FACE_ROWS or any(len(row) > FACE_COLUMNS for row in face):
            raise ValueError(f"the face of {label!r} is larger than {FACE_COLUMNS} x {FACE_ROWS}")
        if not all(0x20 <= ord(c) <= 0x7E for row in face for c in row):
            raise ValueError(f"the face of {label!r} is not printable ASCII")
        art = parse_art(entry.art)
        if art.width > ART_WIDTH or art.height > ART_HEIGHT:
            raise ValueError(f"the art of {label!r} is larger than {ART_WIDTH} x {ART_HEIGHT}")
        try:
            lights = overlay_of(entry.colour, entry.effect)
        except KeyError:
            raise ValueError(f"{label!r} has an unknown effect") from None
        name = entry.name.get(language, label)
        moods[label] = Mood(label, name, face, art, lights, entry.examples)
    return MappingProxyType(moods)
