# SPDX-License-Identifier: Apache-2.0
"""The language of the command line: that of the settings. Imports nothing slow.

`thock status` answers before pydantic is loaded, so of the settings file only this one value is read.
"""

from __future__ import annotations

import gettext
import os
from functools import cache
from pathlib import Path

import click

from app.config.paths import settings_file
from app.i18n import Catalog, Language, Translate, catalogs, system_language, told, translation
from engine.texts import Text


class CommandError(click.ClickException):
    """What went wrong, and what to do; shown in the person's language."""

    def format_message(self) -> str:
        return in_words(self.message)


def say(template: str, /, *, err: bool = False, **values: object) -> None:
    """Print one text, in the person's language."""
    click.echo(in_words(Text(template, **values)), err=err)


def in_words(text: str) -> str:
    """`text` in the person's language."""
    return told(speech(), text)


@cache
def speech() -> Translate:
    """The person's language; English where the settings or the catalog cannot be read."""
    try:
        return translation(chosen_language(settings_file()), Catalog.COMMANDS)
    except OSError:
        return str


def chosen_language(file: Path) -> Language:
    """What stands in a settings file; the system's where nothing does, or nothing that is a language."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return system_language()
    if "language" not in text:
        return system_language()
    import tomllib  # not for nothing: a command answers at once

    try:
        return Language(tomllib.loads(text).get("language", system_language()))
    except (ValueError, RecursionError):
        return system_language()


def speak(command: click.Command) -> None:
    """Put the help of `command` and of its options into the person's language, and click's own words."""
    tr = speech()
    if tr is str:
        return
    _have_click_speak()
    command.help = told(tr, in_paragraphs(command.help or ""))
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.help:
            parameter.help = tr(parameter.help)
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            speak(inner)


def in_paragraphs(text: str) -> str:
    """`text` as it stands in the catalog: one line for each paragraph of a docstring."""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n")).strip()


def _have_click_speak() -> None:
    """click asks gettext's own domain for its words, in the language of the environment."""
    gettext.bindtextdomain(Catalog.COMMANDS, str(catalogs()))
    gettext.textdomain(Catalog.COMMANDS)
    os.environ["LANGUAGE"] = chosen_language(settings_file())
