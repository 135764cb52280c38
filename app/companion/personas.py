# SPDX-License-Identifier: Apache-2.0
"""Personas: who answers in chat mode. A TOML file each, shipped in assets/personas or the person's own.

A file of the person's own with the name of a shipped one takes its place. Layout:

    colour = [0, 79, 57]    # of the lights while it answers, 0..255
    effect = "breathe"      # solid, breathe, pulse

    [en]                    # a table per language; what a language lacks comes from en
    name = "Helper"
    prompt = "You are a helpful assistant."
    style = "Answer in one short sentence."
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.companion.lights import overlay_of
from app.config.reasons import reason_of
from app.i18n import Language
from engine.texts import Text, system_reason
from firmware_bridge.lights.overlay import LightOverlay

DEFAULT_PERSONA = "helper"
MAX_FILE_BYTES = 16_384
MAX_OWN_FILES = 64


class PersonaError(Exception):
    """A file of the person's own is no persona; the message says which, why and what to do."""


class _Words(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    name: str | None = Field(default=None, min_length=1, max_length=20)
    prompt: str | None = Field(default=None, max_length=1000)
    style: str | None = Field(default=None, max_length=200)


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    colour: tuple[Annotated[int, Field(ge=0, le=255)], ...] = Field(min_length=3, max_length=3)
    effect: str = Field(default="solid", pattern="^(solid|breathe|pulse)$")
    en: _Words
    zh_CN: _Words = _Words()


@dataclass(frozen=True, slots=True)
class Persona:
    """Who answers: `system` is the first turn of each chat, `lights` what the board shows meanwhile."""

    key: str
    name: str
    system: str = field(repr=False)
    lights: LightOverlay


def shipped_personas(language: Language) -> Mapping[str, Persona]:
    """Those that are part of the program, by file name."""
    folder = resources.files("assets") / "personas"
    return {key: _persona(key, file.read_bytes(), language) for key, file in _files(folder).items()}


def load_personas(
    language: Language, folder: Path
) -> tuple[Mapping[str, Persona], tuple[PersonaError, ...]]:
    """The shipped personas with those in `folder` (need not exist) over them, and what is wrong there."""
    personas = dict(shipped_personas(language))
    errors: list[PersonaError] = []
    try:
        own = _files(folder) if folder.is_dir() else {}
    except OSError as error:
        return personas, (
            PersonaError(
                Text("{folder} cannot be read: {error}", folder=folder, error=system_reason(error))
            ),
        )
    if len(own) > MAX_OWN_FILES:
        errors.append(
            PersonaError(
                Text(
                    "{folder} has more than {max_own_files} files; the rest waits",
                    folder=folder,
                    max_own_files=MAX_OWN_FILES,
                )
            )
        )
    for key, file in list(own.items())[:MAX_OWN_FILES]:
        try:
            personas[key] = _persona(key, _read(file), language)
        except PersonaError as error:
            errors.append(error)
        except OSError as error:
            errors.append(
                PersonaError(
                    Text("{file} cannot be read: {error}", file=file, error=system_reason(error))
                )
            )
    return personas, tuple(errors)


def _files(folder: Traversable) -> dict[str, Traversable]:
    found = (file for file in folder.iterdir() if file.name.endswith(".toml"))
    return {f.name.removesuffix(".toml"): f for f in sorted(found, key=lambda f: f.name)}


def _read(file: Traversable) -> bytes:
    with file.open("rb") as stream:
        return stream.read(MAX_FILE_BYTES + 1)


def _persona(key: str, data: bytes, language: Language) -> Persona:
    place = f"persona {key}.toml"
    if len(data) > MAX_FILE_BYTES:
        raise PersonaError(
            Text(
                "{place} is longer than {max_file_bytes} bytes; shorten it",
                place=place,
                max_file_bytes=MAX_FILE_BYTES,
            )
        )
    try:
        file = _File.model_validate(tomllib.loads(data.decode("utf-8")))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise PersonaError(
            Text(
                "{place} is no TOML file ({error}); mend it or remove it", place=place, error=error
            )
        ) from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise PersonaError(
            Text(
                "{place}: {where}: {reason} Mend it or remove it",
                place=place,
                where=where,
                reason=reason_of(first),
            )
        ) from None
    words = {
        **file.en.model_dump(exclude_none=True),
        **(file.zh_CN.model_dump(exclude_none=True) if language is Language.ZH_CN else {}),
    }
    prompt, style = words.get("prompt", ""), words.get("style", "")
    space = " " if prompt.isascii() else ""
    return Persona(
        key,
        words.get("name", key),
        f"{prompt}{space}{style}".strip(),
        overlay_of(file.colour, file.effect),
    )
