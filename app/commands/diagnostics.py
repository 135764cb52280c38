# SPDX-License-Identifier: Apache-2.0
"""`thock diagnostics`: a report for whoever helps, shown before it is written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from app.choices import settings_store
from app.commands.doctor import all_findings, found_candidates
from app.commands.speech import CommandError, in_words, say
from app.config.paths import log_folder
from app.diagnostics.report import Report, collect, default_name, preview, write
from app.ipc.client import IpcClient
from app.ipc.protocol import IpcError
from engine.texts import Text, system_reason


@click.command()
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="Where to write the zip."
)
@click.option("--yes", is_flag=True, help="Write it without showing and asking.")
def command(output: Path | None, yes: bool) -> None:
    """Show all that a report would hold, then ask and write it as a zip.

    It holds no key, no text that you typed or read, no serial number, and is sent nowhere.
    """
    report = collected()
    path = output or Path(default_name())
    if not yes:
        click.echo_via_pager(preview(report))
        click.confirm(in_words(Text("Write this to {path}?", path=path)), abort=True)
    try:
        write(report, path)
    except OSError as error:
        raise CommandError(
            Text("{path}: {error}", path=path, error=system_reason(error))
        ) from error
    say("written: {path}", path=path)


def collected() -> Report:
    """The report of this computer, now."""
    return collect(
        findings=all_findings(),
        candidates=found_candidates(),
        loaded=settings_store().load(),
        state=_state(),
        log_folder=log_folder(),
        home=Path.home(),
    )


def _state() -> Mapping[str, Any] | None:
    try:
        with IpcClient() as client:
            state: Mapping[str, Any] = client.request("status")["state"]
            return state
    except (IpcError, OSError):
        return None
