# SPDX-License-Identifier: Apache-2.0
"""`thock bench gpu`: the acceptance runs of the GPU engine, one file of results for each."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click

from app.commands.options import DEFAULT_MODEL, model_path
from engine.child import PACKAGE_ROOT

_SECTIONS = ("model", "shapes", "hashes", "prefixes", "sanitizer", "doorbell", "leases", "speed")
_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command()
@click.option("--model", default=DEFAULT_MODEL, show_default=True,
              help="Name or path of a model, or random: and smollm2, small, llama-1b or llama-7b.")  # fmt: skip
@click.option(
    "--out", type=_FOLDER, required=True, help="Folder for the results, SECTION.json each."
)
@click.option(
    "--only", multiple=True, type=click.Choice(_SECTIONS), help="Can be given more than once."
)
@click.option(
    "--prepare", is_flag=True, help="Only what needs no GPU: what others are compared with."
)
@click.option("--text", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Some pages of plain text, for section model.")  # fmt: skip
@click.option("--repeats", type=click.IntRange(1), default=100_000, show_default=True,
              help="Identical runs in each residency, for section hashes.")  # fmt: skip
@click.option(
    "--runs", type=click.IntRange(3), default=1000, show_default=True, help="Of each time."
)
@click.option("--kernel", type=click.Choice(["auto", "grid"]), default="auto", show_default=True,
              help="grid: also where the other one could run.")  # fmt: skip
@click.option(
    "--part", default="1/1", show_default=True, help="Of the shapes: 1/4 is the first quarter."
)
def command(
    model: str,
    out: Path,
    only: tuple[str, ...],
    prepare: bool,
    text: Path | None,
    repeats: int,
    runs: int,
    kernel: str,
    part: str,
) -> None:
    """Check and measure the GPU engine on this machine's GPU: numbers, determinism, leases, speed.

    Ends with 0 if every section passed, 1 if not, 2 if one could not run.
    """
    named = model if model.startswith("random:") else str(model_path(model).absolute())
    argv = [
        os.environ.get("THOCK_ENGINE_PYTHON") or sys.executable,
        "-m",
        "engine.bench.gpu",
        named,
    ]
    argv += ["--out", str(out.absolute()), "--cache", str(out.absolute() / "cache")]
    argv += ["--repeats", str(repeats), "--runs", str(runs), "--kernel", kernel]
    argv += ["--part", part]
    argv += [word for name in only for word in ("--only", name)]
    argv += ["--prepare"] * prepare
    argv += ["--text", str(text.absolute())] if text is not None else []
    sys.exit(subprocess.run(argv, cwd=PACKAGE_ROOT, check=False).returncode)
