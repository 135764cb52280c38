# SPDX-License-Identifier: Apache-2.0
"""`thock bench engine`: how long the engine takes on this machine, and whether its numbers are right."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import click

from app.bench.engine_report import lines
from app.commands.options import DEFAULT_MODEL, model_path
from app.commands.speech import CommandError
from engine.child import PACKAGE_ROOT
from engine.texts import Text

_NOT_MEASURED = 2  # engine.bench's code for an error that it has told


@click.command()
@click.option(
    "--engine", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", show_default=True,
    help="auto: the GPU if it can run the model.",
)  # fmt: skip
@click.option("--model", default=DEFAULT_MODEL, show_default=True, help="Name or path of a model.")
@click.option(
    "--runs", type=click.IntRange(3, 1_000_000), default=50, show_default=True,
    help="Of each measurement; with --check, of the same prompt.",
)  # fmt: skip
@click.option("--check", is_flag=True, help="Check the numbers instead; exit 1 if they are wrong.")
@click.option("--peer/--no-peer", default=True, help="Measure PyTorch in the same run, or not.")
@click.option(
    "--json", "json_file", type=click.Path(dir_okay=False, path_type=Path),
    help="Write everything to this file too.",
)  # fmt: skip
def command(
    engine: str, model: str, runs: int, check: bool, peer: bool, json_file: Path | None
) -> None:
    """Measure a prompt of 128 tokens, 1 to 8 tokens more, and one more after a rest.

    It runs in a process of its own, as the engine does. The same weights in PyTorch stand beside it.
    """
    argv = [os.environ.get("THOCK_ENGINE_PYTHON") or sys.executable, "-m", "engine.bench"]
    argv += [str(model_path(model).absolute()), "--device", engine, "--runs", str(runs)]
    argv += ["--check"] * check + ["--no-peer"] * (not peer)
    done = subprocess.run(
        argv,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        cwd=PACKAGE_ROOT,
        env={**os.environ, "TQDM_DISABLE": "1"},  # bars of others would stand among our lines
        check=False,
    )
    try:
        found = json.loads(done.stdout)
    except ValueError:
        reason = Text("exit code {status}", status=done.returncode)
        if done.returncode == _NOT_MEASURED:
            reason = Text("see above")
        raise CommandError(Text("the engine was not measured: {reason}.", reason=reason)) from None
    click.echo("\n".join(lines(found)))
    if json_file is not None:
        json_file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    sys.exit(done.returncode)
