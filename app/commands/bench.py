# SPDX-License-Identifier: Apache-2.0
"""`thock bench`: what is measured on this machine. Each measurement is a command of its own."""

from __future__ import annotations

import importlib

import click

_COMMANDS = {
    "trigger": (
        "app.commands.bench_trigger",
        "From the trigger to the first report of a reply, and how often it was ready.",
    ),
}


class _LazyGroup(click.Group):
    """Imports a measurement only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(_COMMANDS[cmd_name][0])
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in sorted(_COMMANDS.items())])


@click.group(cls=_LazyGroup)
def command() -> None:
    """Measure Thock on this machine."""
