# SPDX-License-Identifier: Apache-2.0
"""What `thock demo` and `thock run` share."""

from __future__ import annotations

import os
from pathlib import Path

import click

from app.models.errors import ModelStoreError
from app.models.store import ModelStore
from firmware_bridge.transport.replay import open_recording

DEFAULT_MODEL = "smollm2"


def announce_recording(path: Path) -> None:
    """Make sure that traffic can be recorded to `path`, and say what the file will hold.

    Raises:
        click.ClickException: it cannot be written, or is no regular file.
    """
    try:
        os.close(open_recording(path))
    except OSError as error:
        raise click.ClickException(f"{path}: {error.strerror or error}.") from error
    click.echo(f"recording: {path} will hold every key that you press.", err=True)


def model_path(name: str) -> Path:
    """The file or folder of a model, by name or path.

    Raises:
        click.ClickException: there is none; the message says how to get one.
    """
    try:
        return ModelStore().find(name).target
    except ModelStoreError as error:
        raise click.ClickException(str(error)) from error
