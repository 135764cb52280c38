# SPDX-License-Identifier: Apache-2.0
"""The command `thock`. Commands are imported on use, so that each starts as fast as it can."""

from __future__ import annotations

import sys

import click

from app.commands.lazy import LazyGroup

# A thread that waits for another one's turn to end: the one that answers the keyboard must not wait the 5 ms
# that Python gives each. Nothing here computes for long, so there are few more turns.
_TURN_S = 2e-4

_COMMANDS = {
    "ask": (
        "app.commands.ask",
        "Ask the model; the answer is printed, and stands on the keyboard.",
    ),
    "bench": ("app.commands.bench", "Measure how fast it answers on this machine."),
    "cancel": ("app.commands.cancel", "Stop the answer under way."),
    "demo": ("app.commands.demo", "Try it: a virtual keyboard with a real model, in the terminal."),
    "devices": ("app.commands.devices", "List keyboards, and why each does or does not match."),
    "diagnostics": ("app.commands.diagnostics", "Show what a report would hold, and write it."),
    "doctor": ("app.commands.doctor", "Check this machine and say how to mend what is missing."),
    "forget": ("app.commands.forget", "Wipe everything that was typed and answered."),
    "mode": ("app.commands.mode", "Show or change what is done with the keys."),
    "model": ("app.commands.model", "Add, list, check, load and remove models."),
    "monitor": ("app.commands.monitor", "Print the frames between Thock and the keyboard."),
    "pause": ("app.commands.pause", "Read no keys, for some minutes or until resume."),
    "profile": ("app.commands.profile", "Show or choose the profile in force."),
    "quit": ("app.commands.quit", "End the running companion."),
    "resume": ("app.commands.resume", "Read keys again."),
    "run": (
        "app.commands.run",
        "Run the companion; without a command, with its icon in the panel.",
    ),
    "settings": ("app.commands.settings", "Open the settings, or show and change them here."),
    "status": ("app.commands.status", "Show what the running companion does."),
}


def _print_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from importlib.metadata import version  # takes as long as all the rest

        click.echo(f"thock {version('thock')}")
        ctx.exit()


@click.group(
    cls=LazyGroup,
    modules=_COMMANDS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_print_version,
    help="Print the version and exit.",
)  # fmt: skip
@click.pass_context
def main(ctx: click.Context) -> None:
    """Thock: a local AI companion that lives in a programmable keyboard.

    Without a command it starts the companion with its icon in the panel; if it runs already, its window
    comes to the front.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(_TURN_S)
    ctx.call_on_close(lambda: sys.setswitchinterval(before))
    if ctx.invoked_subcommand is None:
        from app.commands.run import command as run

        ctx.invoke(run, tray=True)
