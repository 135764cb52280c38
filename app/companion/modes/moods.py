# SPDX-License-Identifier: Apache-2.0
"""The moods of react mode (assets/moods.toml)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType

from app.companion.lights import overlay_of
from firmware_bridge.lights.overlay import LightOverlay

FACE_COLUMNS = 20
FACE_ROWS = 4


@dataclass(frozen=True, slots=True)
class Mood:
    """A label of the model's choice, a face of at most 20 x 4 characters, and its light."""

    label: str
    face: tuple[str, ...]
    lights: LightOverlay


def load_moods() -> Mapping[str, Mood]:
    """The moods that are part of the program, by label.

    Raises:
        ValueError: a face does not fit or is not printable ASCII.
    """
    text = resources.files("assets").joinpath("moods.toml").read_text(encoding="utf-8")
    return parse_moods(text)


def parse_moods(text: str) -> Mapping[str, Mood]:
    """The moods in the TOML document `text`. Raises as `load_moods`."""
    moods = {}
    for label, entry in tomllib.loads(text).items():
        face = tuple(entry["face"].rstrip("\n").split("\n"))
        if len(face) > FACE_ROWS or any(len(row) > FACE_COLUMNS for row in face):
            raise ValueError(f"the face of {label!r} is larger than {FACE_COLUMNS} x {FACE_ROWS}")
        if not all(0x20 <= ord(c) <= 0x7E for row in face for c in row):
            raise ValueError(f"the face of {label!r} is not printable ASCII")
        moods[label] = Mood(label, face, overlay_of(entry))
    return MappingProxyType(moods)
