# SPDX-License-Identifier: Apache-2.0
"""`thock cancel`: stop the answer under way."""

from __future__ import annotations

import click

from app.commands.companion import tell


@click.command()
def command() -> None:
    """Stop the answer under way."""
    tell("cancel")
