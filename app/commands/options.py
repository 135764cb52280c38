# SPDX-License-Identifier: Apache-2.0
"""What `thock demo` and `thock run` share."""

from __future__ import annotations

import os
from pathlib import Path

from app.commands.speech import CommandError, say
from app.models.errors import ModelStoreError
from app.models.store import ModelStore
from engine.texts import Text, system_reason
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
        raise CommandError(
            Text("{path}: {error}.", path=path, error=system_reason(error))
        ) from error
    say("recording: {path} will hold every key that you press.", path=path, err=True)


def model_path(name: str) -> Path:
    """The file or folder of a model, by name or path.

    Raises:
        click.ClickException: there is none; the message says how to get one.
    """
    try:
        return ModelStore().find(name).target
    except ModelStoreError as error:
        raise CommandError(str(error)) from error
