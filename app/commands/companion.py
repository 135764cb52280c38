# SPDX-License-Identifier: Apache-2.0
"""What the commands that talk to the running companion share. Imports nothing slow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from app.commands.speech import CommandError
from app.ipc.client import IpcClient
from app.ipc.protocol import IpcError


@contextmanager
def running_companion() -> Iterator[IpcClient]:
    """A connection to it.

    Raises:
        click.ClickException: there is none, or it refused; the message says what to do.
    """
    try:
        with IpcClient() as client:
            yield client
    except (IpcError, OSError) as error:
        raise CommandError(str(error)) from error


def tell(type_: str, **fields: Any) -> dict[str, Any]:
    """One request, and its answer.

    Raises:
        click.ClickException: as `running_companion`.
    """
    with running_companion() as client:
        return client.request(type_, **fields)
