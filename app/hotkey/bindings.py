# SPDX-License-Identifier: Apache-2.0
"""Which combination does what, and what is wrong with a choice of combinations.

A combination is written as pynput does: `<ctrl>+<alt>+a`. Modifiers come first, one key comes last.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass

from app.settings import HotkeySettings
from engine.texts import Text

MODIFIERS = ("ctrl", "alt", "shift", "cmd")
_NAMED = re.compile(r"<([a-z0-9_]+)>")


class HotkeyAction(enum.StrEnum):
    """What a shortcut does; the values are names of settings."""

    ASK = "ask"
    PAUSE = "pause"
    CANCEL = "cancel"
    NEXT_MODE = "next_mode"


@dataclass(frozen=True, slots=True)
class Combination:
    """`key` is one character or the name of a key (`f5`, `space`)."""

    modifiers: frozenset[str]
    key: str

    def __str__(self) -> str:
        parts = [f"<{name}>" for name in MODIFIERS if name in self.modifiers]
        return "+".join([*parts, self.key if len(self.key) == 1 else f"<{self.key}>"])


class CombinationError(ValueError):
    """This is no combination; the message says why."""


def parse(text: str) -> Combination:
    """The combination that `text` names.

    Raises:
        CombinationError: it is none.
    """
    *modifiers, key = _split(text)
    names = []
    for part in modifiers:
        found = _NAMED.fullmatch(part)
        if found is None or found[1] not in MODIFIERS:
            raise CombinationError(
                Text(
                    "{part} is no modifier; there are <ctrl>, <alt>, <shift>, <cmd>",
                    part=repr(part),
                )
            )
        names.append(found[1])
    named = _NAMED.fullmatch(key)
    if named is None and len(key) != 1:
        raise CombinationError(
            Text("{key} is no key: one character, or a name such as <f5>", key=repr(key))
        )
    name = key.lower() if named is None else named[1]
    if name in MODIFIERS:
        raise CombinationError("a key is missing behind the modifiers")
    if not names and not re.fullmatch(r"f\d+", name):
        raise CombinationError(
            "without <ctrl>, <alt> or <cmd> it would take a key from your typing"
        )
    if set(names) == {"shift"}:
        raise CombinationError("with <shift> alone it would take a letter from your typing")
    return Combination(frozenset(names), name)


def _split(text: str) -> list[str]:
    keys, plus = (text[:-2], ["+"]) if text == "+" or text.endswith("++") else (text, [])
    parts = keys.split("+") if keys else []
    if not parts + plus or not all(parts):
        raise CombinationError("a combination looks like <ctrl>+<alt>+a")
    return parts + plus


def bindings(settings: HotkeySettings) -> tuple[Mapping[HotkeyAction, Combination], dict[str, str]]:
    """The combinations in force, and for each setting that cannot be used the reason.

    Of two settings with one combination the first keeps it.
    """
    used: dict[HotkeyAction, Combination] = {}
    problems: dict[str, str] = {}
    for action in HotkeyAction:
        text = getattr(settings, action.value)
        if not text:
            continue
        try:
            combination = parse(text)
        except CombinationError as error:
            problems[action.value] = str(error)
            continue
        owner = next((other for other, mine in used.items() if mine == combination), None)
        if owner is not None:
            problems[action.value] = Text(
                "{combination} is that of {owner} already",
                combination=combination,
                owner=repr(owner.value),
            )
        else:
            used[action] = combination
    return used, problems
