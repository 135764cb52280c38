# SPDX-License-Identifier: Apache-2.0
"""`thock forget`: wipe what was typed and answered."""

from __future__ import annotations

import click

from app.commands.companion import tell


@click.command()
def command() -> None:
    """Wipe everything that was typed and answered, in the engine too."""
    tell("forget")
