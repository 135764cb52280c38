# SPDX-License-Identifier: Apache-2.0
"""Every text of the command line's help, as click has it, and the words of click itself that people see."""

from __future__ import annotations

from collections.abc import Iterator

import click

from app.cli import main
from app.commands.lazy import LazyGroup
from app.commands.speech import in_paragraphs

# Of click's own words those that our commands can lead to.
CLICK_WORDS = frozenset(
    {
        "(dynamic)", "Aborted!", "Choose from:\n\t{choices}", "Commands", "Error: {message}",
        "Error: invalid input", "Invalid value for {param_hint}: {message}", "Invalid value: {message}",
        "Missing argument", "Missing command.", "Missing option", "Missing parameter",
        "No such command {name!r}.", "No such option {name!r}.", "Option {name!r} does not take a value.",
        "Options", "Show this message and exit.", "Try '{command} {option}' for help.", "Usage:",
        "default: {default}", "directory", "file", "path", "{name} {filename!r} does not exist.",
        "{name} {filename!r} is a directory.", "{name} {filename!r} is not readable.",
        "{name} {filename!r} is not writable.", "{value!r} is not a valid {number_type}.",
        "{value} is not in the range {range}.",
    }
)  # fmt: skip
CLICK_PLURALS = frozenset(
    {
        ("Did you mean {possibility}?", "(Did you mean one of: {possibilities}?)"),
        ("Got unexpected extra argument ({args})", "Got unexpected extra arguments ({args})"),
        ("Option {name!r} requires an argument.", "Option {name!r} requires {nargs} arguments."),
        ("{value!r} is not {choice}.", "{value!r} is not one of {choices}."),
    }
)


def help_texts() -> set[str]:
    """Of all commands and options."""
    return {text for command in all_commands() for text in _texts(command) if text}


def all_commands() -> Iterator[click.Command]:
    """All of them, groups too."""
    yield from _below(main)


def _below(command: click.Command) -> Iterator[click.Command]:
    yield command
    if isinstance(command, click.Group):
        ctx = click.Context(command)
        for name in command.list_commands(ctx):
            inner = command.get_command(ctx, name)
            assert inner is not None
            yield from _below(inner)


def _texts(command: click.Command) -> Iterator[str]:
    yield in_paragraphs(command.help or "")
    if isinstance(command, LazyGroup):
        yield from command.summaries.values()
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            yield parameter.help or ""
