# SPDX-License-Identifier: Apache-2.0
"""`thock profile`: other settings for a program or a keyboard, chosen by hand."""

from __future__ import annotations

import click

from app.commands.companion import running_companion
from app.commands.speech import in_words
from engine.texts import Text


@click.command()
@click.argument("name", required=False)
@click.option(
    "--automatic", is_flag=True, help="Go by the program in front and by the keyboard again."
)
def command(name: str | None, automatic: bool) -> None:
    """Show the profile in force, or work by the profile NAME until the companion ends.

    `thock settings` makes profiles.
    """
    if name is not None and automatic:
        raise click.UsageError(in_words(Text("a name or --automatic, not both")))
    with running_companion() as companion:
        if name is not None or automatic:
            companion.request("set-profile", name=name)
            return
        state = companion.request("status")["state"]
    how = Text("chosen") if state["is_profile_chosen"] else Text("automatic")
    profile = state["profile"] or Text("none")
    click.echo(in_words(Text("{profile} ({how})", profile=profile, how=how)))
