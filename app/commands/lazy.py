# SPDX-License-Identifier: Apache-2.0
"""Groups of commands that are imported on use, so that each starts as fast as it can."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from gettext import gettext
from typing import Any

import click

from app.commands.speech import in_words, speak


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one only when it is called.

    `modules` gives for each name the module, whose `command` it is, and one line of help.
    """

    def __init__(
        self, *args: Any, modules: Mapping[str, tuple[str, str]], **attributes: Any
    ) -> None:
        super().__init__(*args, **attributes)
        self._modules = modules

    @property
    def summaries(self) -> dict[str, str]:
        """One line of help for each command, in English."""
        return {name: text for name, (_, text) in self._modules.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self._modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._modules:
            return None
        module = importlib.import_module(self._modules[cmd_name][0])
        command: click.Command = module.command
        speak(command)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        speak(self)  # before anything can be wrong with the arguments
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, in_words(text)) for name, text in sorted(self.summaries.items())]
        with formatter.section(gettext("Commands")):
            formatter.write_dl(rows)
