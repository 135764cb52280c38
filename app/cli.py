# SPDX-License-Identifier: Apache-2.0
"""The command `thock`. Commands are imported on use, so that each starts as fast as it can."""

from __future__ import annotations

import importlib
from importlib.metadata import version

import click

_COMMANDS = {
    "demo": ("app.commands.demo", "Try it: a virtual keyboard with a real model, in the terminal."),
    "devices": ("app.commands.devices", "List keyboards, and why each does or does not match."),
    "doctor": ("app.commands.doctor", "Check this machine and say how to mend what is missing."),
    "model": ("app.commands.model", "Add, list, check and remove models."),
    "monitor": ("app.commands.monitor", "Print the frames between Thock and the keyboard."),
    "run": ("app.commands.run", "Run the companion without a window."),
}


class _LazyGroup(click.Group):
    """A group that knows its commands by name and imports one only when it is called."""

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


def _print_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        click.echo(f"thock {version('thock')}")
        ctx.exit()


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_print_version,
    help="Print the version and exit.",
)  # fmt: skip
def main() -> None:
    """Thock: a local AI companion that lives in a programmable keyboard."""
