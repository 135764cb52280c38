# SPDX-License-Identifier: Apache-2.0
"""`thock resume`: read keys again."""

from __future__ import annotations

import click

from app.commands.companion import tell


@click.command()
def command() -> None:
    """Read keys again, after a pause or when another program no longer has the keyboard open."""
    tell("resume")
