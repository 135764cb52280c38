# SPDX-License-Identifier: Apache-2.0
"""What `thock demo` and `thock run` share."""

from __future__ import annotations

from pathlib import Path

import click

from app.models.errors import ModelStoreError
from app.models.store import ModelStore

DEFAULT_MODEL = "smollm2"


def model_path(name: str) -> Path:
    """The file or folder of a model, by name or path.

    Raises:
        click.ClickException: there is none; the message says how to get one.
    """
    try:
        return ModelStore().find(name).target
    except ModelStoreError as error:
        raise click.ClickException(str(error)) from error
