# SPDX-License-Identifier: Apache-2.0
"""`thock bench trigger`: how soon a reply is on the keyboard after the trigger."""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from app.bench.report import Run, document, table
from app.bench.trigger import BenchError, TriggerStation, bench_settings
from app.bench.typist import Pause, Typist, questions
from app.commands.options import DEFAULT_MODEL, model_path
from app.commands.speech import CommandError
from app.companion.ready import ReadyStats
from app.settings import ModeName
from engine.client import FAKE_ENGINE, MODEL_ENGINE
from firmware_bridge.keys.layout import load_layout


@click.command()
@click.option(
    "--engine", type=click.Choice(["fixed", "cpu"]), default="fixed", show_default=True,
    help="fixed: every step of the engine takes --step-ms. cpu: a real model, with its own times.",
)  # fmt: skip
@click.option(
    "--step-ms", type=click.FloatRange(0, 1000), default=27.0, show_default=True,
    help="One step of the fixed engine: 27 ms is what a 7B model would take on a laptop's GPU.",
)  # fmt: skip
@click.option("--model", default=DEFAULT_MODEL, show_default=True, help="Name or path of a model.")
@click.option(
    "--wpm", multiple=True, type=click.FloatRange(10, 300), default=(60.0, 90.0, 120.0),
    show_default=True, help="Words a minute; can be given several times.",
)  # fmt: skip
@click.option(
    "--triggers", type=click.IntRange(1, 100_000), default=40, show_default=True,
    help="Questions that are asked at each speed.",
)  # fmt: skip
@click.option(
    "--pause", type=click.Choice([p.value for p in Pause]), default=Pause.MIXED.value,
    show_default=True,
    help="Before the trigger. rhythm: it comes like the next key. think: after a hesitation.",
)  # fmt: skip
@click.option(
    "--mode", type=click.Choice([ModeName.CHAT.value, ModeName.SUGGEST.value]),
    default=ModeName.CHAT.value, show_default=True,
    help="chat: a question and Enter. suggest: a text and the ask key, which shows how it goes on.",
)  # fmt: skip
@click.option("--seed", type=int, default=1, show_default=True, help="Of the typists.")
@click.option(
    "--json", "json_file", type=click.Path(dir_okay=False, path_type=Path),
    help="Write everything to this file too.",
)  # fmt: skip
def command(
    engine: str,
    step_ms: float,
    model: str,
    wpm: tuple[float, ...],
    triggers: int,
    pause: str,
    mode: str,
    seed: int,
    json_file: Path | None,
) -> None:
    """Type questions on a virtual keyboard like a person, ask them, and time the replies.

    A trigger is a hit if the reply's first report is written before the engine has said anything about
    the question. Times run from the keyboard's report of the key to the end of the transport's write.
    """
    settings = bench_settings(ModeName(mode))
    runs: list[Run] = []
    try:
        with (
            _engine(engine, step_ms, model) as (file, argv),
            TriggerStation(file, argv, settings) as station,
        ):
            click.echo(
                f"engine: {station.model}" + (f", {step_ms:g} ms a step" * (engine == "fixed"))
            )
            for speed in wpm:
                runs.append(_run(station, speed, Pause(pause), seed, triggers))
    except BenchError as error:
        raise CommandError(str(error)) from error
    click.echo("\n".join(table(runs)))
    if json_file is not None:
        options = {
            "engine": engine, "step_ms": step_ms if engine == "fixed" else None, "model": model,
            "pause": pause, "mode": mode, "seed": seed,
        }  # fmt: skip
        text = json.dumps(document(runs, options), indent=1)
        json_file.write_text(text + "\n", encoding="utf-8")


def _run(station: TriggerStation, speed: float, pause: Pause, seed: int, triggers: int) -> Run:
    typist = Typist(speed, load_layout("us"), pause, seed)
    before = station.stats
    asked = itertools.islice(itertools.cycle(questions()), triggers)
    end = "" if station.mode is ModeName.CHAT else " "  # after a word, more than one may follow
    with click.progressbar(asked, triggers, f"{speed:g} words a minute") as texts:
        shots = tuple(station.shoot(typist.trace(text + end)) for text in texts)
    after = station.stats
    stats = ReadyStats(
        after.hits - before.hits,
        after.misses - before.misses,
        after.computed - before.computed,
        after.wasted - before.wasted,
    )
    return Run(speed, shots, stats)


@contextmanager
def _engine(name: str, step_ms: float, model: str) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """The file to load and the child to start."""
    if name == "cpu":
        yield model_path(model), MODEL_ENGINE
        return
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.json"
        reply = "It depends on a few things that we can look at one after the other."
        script.write_text(json.dumps({"token_ms": step_ms, "replies": [reply]}), encoding="utf-8")
        yield script, FAKE_ENGINE
