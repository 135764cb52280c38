# SPDX-License-Identifier: Apache-2.0
"""`thock pause`: read no keys."""

from __future__ import annotations

import click

from app.commands.companion import tell

_LONGEST_MIN = 24 * 60


@click.command()
@click.option(
    "--minutes", type=click.FloatRange(0, _LONGEST_MIN, min_open=True),
    help="Resume by itself after this time. Without it, `thock resume` does.",
)  # fmt: skip
def command(minutes: float | None) -> None:
    """Wipe everything and read no keys until resumed."""
    tell("pause", minutes=minutes)
