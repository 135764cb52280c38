# SPDX-License-Identifier: Apache-2.0
"""`thock bench`: what is measured on this machine. Each measurement is a command of its own."""

from __future__ import annotations

import click

from app.commands.lazy import LazyGroup

_COMMANDS = {
    "engine": (
        "app.commands.bench_engine",
        "How long the engine takes for a prompt and for a key more, and whether its numbers are right.",
    ),
    "gpu": (
        "app.commands.bench_gpu",
        "The acceptance runs of the GPU engine: numbers, determinism, leases, speed.",
    ),
    "trigger": (
        "app.commands.bench_trigger",
        "From the trigger to the first report of a reply, and how often it was ready.",
    ),
}


@click.group(cls=LazyGroup, modules=_COMMANDS)
def command() -> None:
    """Measure Thock on this machine."""
