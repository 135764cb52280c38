# SPDX-License-Identifier: Apache-2.0
"""Which profile holds: other settings for a program or for a keyboard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from app.settings import ProfileSettings, Settings


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is in use now: the program in front ("" where that cannot be known) and the keyboard's names.

    `application` is a name like `firefox`, never the title of a window: titles hold content.
    """

    application: str = ""
    keyboard: tuple[str, ...] = ()


def fitting(profiles: Mapping[str, ProfileSettings], now: Surroundings) -> str | None:
    """The name of the profile that holds: one for this program before one for this keyboard only.

    Of several that fit alike, the first in the file. A profile with neither fits nothing.
    """
    best, best_rank = None, 0
    for name, profile in profiles.items():
        rank = _rank(profile, now)
        if rank > best_rank:
            best, best_rank = name, rank
    return best


def effective(settings: Settings, name: str | None) -> Settings:
    """`settings` with what the profile `name` says over them.

    Raises:
        KeyError: there is no such profile.
    """
    if name is None:
        return settings
    profile = settings.profiles[name]
    changes: dict[str, Any] = {}
    if profile.mode is not None:
        changes["mode"] = profile.mode
    if profile.layout is not None:
        changes["layout"] = profile.layout
    if profile.persona is not None:
        changes["chat"] = settings.chat.model_copy(update={"persona": profile.persona})
    if profile.lights is not None:
        changes["lights"] = settings.lights.model_copy(update={"enabled": profile.lights})
    return settings.model_copy(update=changes)


def _rank(profile: ProfileSettings, now: Surroundings) -> int:
    """0: does not fit; 1: this keyboard; 2: this program; 3: both."""
    rank = 0
    if profile.applications:
        if not _any_fits(profile.applications, (now.application,)):
            return 0
        rank += 2
    if profile.keyboards:
        if not _any_fits(profile.keyboards, now.keyboard):
            return 0
        rank += 1
    return rank


def _any_fits(patterns: tuple[str, ...], names: tuple[str, ...]) -> bool:
    return any(
        fnmatchcase(name.casefold(), pattern.casefold())
        for pattern in patterns
        for name in names
        if name
    )
