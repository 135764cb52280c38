# SPDX-License-Identifier: Apache-2.0
"""`thock mode`: what is done with the keys."""

from __future__ import annotations

import click

from app.commands.companion import running_companion

# The values of app.settings.ModeName, whose import takes longer than the whole command.
_MODES = ("suggest", "chat", "react")


@click.command()
@click.argument("mode", required=False, type=click.Choice(_MODES))
def command(mode: str | None) -> None:
    """Show the mode of the running companion, or change it until it ends.

    `thock settings set mode chat` changes it for good.
    """
    with running_companion() as companion:
        if mode is None:
            click.echo(companion.request("status")["state"]["mode"])
        else:
            companion.request("set-mode", mode=mode)
