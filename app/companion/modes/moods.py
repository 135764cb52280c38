# SPDX-License-Identifier: Apache-2.0
"""The moods of react mode (assets/moods.toml)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType

from app.companion.lights import overlay_of
from app.i18n import Language
from firmware_bridge.display.canvas import PixelArt, parse_art
from firmware_bridge.lights.overlay import LightOverlay

FACE_COLUMNS = 20
FACE_ROWS = 4
ART_WIDTH = 32
ART_HEIGHT = 24


@dataclass(frozen=True, slots=True)
class Mood:
    """A label of the model's choice, its name for the person, a face, and its light.

    The face is there twice: in at most 20 x 4 characters, and in at most 32 x 24 pixels.
    """

    label: str
    name: str
    face: tuple[str, ...]
    art: PixelArt
    lights: LightOverlay


def load_moods(language: Language = Language.EN) -> Mapping[str, Mood]:
    """The moods that are part of the program, by label.

    Raises:
        ValueError: a face does not fit, or has characters that it cannot be made of.
    """
    text = resources.files("assets").joinpath("moods.toml").read_text(encoding="utf-8")
    return parse_moods(text, language)


def parse_moods(text: str, language: Language = Language.EN) -> Mapping[str, Mood]:
    """The moods in the TOML document `text`. Raises as `load_moods`."""
    moods = {}
    for label, entry in tomllib.loads(text).items():
        face = tuple(entry["face"].rstrip("\n").split("\n"))
        if len(face) > FACE_ROWS or any(len(row) > FACE_COLUMNS for row in face):
            raise ValueError(f"the face of {label!r} is larger than {FACE_COLUMNS} x {FACE_ROWS}")
        if not all(0x20 <= ord(c) <= 0x7E for row in face for c in row):
            raise ValueError(f"the face of {label!r} is not printable ASCII")
        art = parse_art(entry["art"])
        if art.width > ART_WIDTH or art.height > ART_HEIGHT:
            raise ValueError(f"the art of {label!r} is larger than {ART_WIDTH} x {ART_HEIGHT}")
        name = entry.get("name", {}).get(language, label)
        moods[label] = Mood(label, name, face, art, overlay_of(entry))
    return MappingProxyType(moods)
