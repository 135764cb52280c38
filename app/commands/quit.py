# SPDX-License-Identifier: Apache-2.0
"""`thock quit`: end the companion."""

from __future__ import annotations

import click

from app.commands.companion import tell


@click.command()
def command() -> None:
    """End the running companion and the engine."""
    tell("quit")
