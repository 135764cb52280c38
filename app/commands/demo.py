# SPDX-License-Identifier: Apache-2.0
"""`thock demo`: the virtual keyboard, interactive or played from a script."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from pathlib import Path

import click

from app.commands.options import DEFAULT_MODEL, announce_recording, model_path
from app.commands.speech import CommandError, chosen_language, say, speech
from app.config.paths import settings_file
from app.demo.blocks import style_for
from app.demo.player import ScriptPlayer
from app.demo.script import Line, ScriptError, parse_script
from app.demo.station import GEOMETRIES, DemoStation, StationOptions
from app.settings import ModeName, Settings
from engine.client import FAKE_ENGINE, MODEL_ENGINE
from engine.messages import Device
from engine.texts import Text, system_reason

_BORDER = 4


@click.command()
@click.option("--model", default=DEFAULT_MODEL, show_default=True, help="Name or path of a model.")
@click.option(
    "--engine", type=click.Choice(["auto", "cpu", "cuda", "fake"]), default="auto", show_default=True,
    help="auto: the GPU if it can run the model. fake: scripted replies, no model needed.",
)  # fmt: skip
@click.option(
    "--geometry", type=click.Choice(["auto", *GEOMETRIES]), default="auto", show_default=True,
    help="Size of the OLED in pixels; auto: what the terminal has room for.",
)  # fmt: skip
@click.option(
    "--mode", type=click.Choice([m.value for m in ModeName]), default="suggest", show_default=True,
    help="The mode to begin with.",
)  # fmt: skip
@click.option(
    "--script", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Type this script with human timing, print what was seen, exit 1 on a failure.",
)  # fmt: skip
@click.option(
    "--record", type=click.Path(dir_okay=False, path_type=Path),
    help="Write the traffic with the keyboard to this file. It holds every key that you press.",
)  # fmt: skip
def command(
    model: str, engine: str, geometry: str, mode: str, script: Path | None, record: Path | None
) -> None:
    """Try Thock without any hardware: a virtual keyboard that runs the firmware's own C code."""
    lines = None
    if script is not None:
        try:
            lines = parse_script(script.read_text(encoding="utf-8"))
        except (ScriptError, OSError, UnicodeDecodeError) as error:
            raise CommandError(
                Text("{place}: {text}", place=script, text=_reason(error))
            ) from error
    model_file = Path("fake") if engine == "fake" else model_path(model)
    fitting = "128x64" if lines is not None else _terminal_geometry()
    if record is not None:
        announce_recording(record)
    options = StationOptions(
        model=model_file,
        geometry=fitting if geometry == "auto" else geometry,
        engine_argv=FAKE_ENGINE if engine == "fake" else MODEL_ENGINE,
        record=record,
        settings=Settings(
            mode=ModeName(mode),
            engine=Device.AUTO if engine == "fake" else Device(engine),
            language=chosen_language(settings_file()),
        ),
    )
    if lines is not None:
        sys.exit(_play(options, lines))
    from app.demo.terminal import run_terminal

    logging.getLogger().setLevel(logging.CRITICAL)  # the picture owns the terminal
    run_terminal(options, follows_size=geometry == "auto")


def _reason(error: ScriptError | OSError | UnicodeDecodeError) -> str:
    match error:
        case OSError():
            return system_reason(error)
        case UnicodeDecodeError():
            return Text("is not UTF-8 at byte {error_start}", error_start=error.start)
    return str(error)


def _terminal_geometry() -> str:
    """The display that fits the terminal.

    Raises:
        click.ClickException: there is no terminal, or none that could show a display.
    """
    from app.demo.terminal import geometry_for

    if not sys.stdin.isatty() or not sys.stdout.isatty():
        raise CommandError("the demo wants a terminal; without one, use --script FILE.")
    if (sys.stdout.encoding or "").lower().replace("-", "") != "utf8":
        raise CommandError(
            "the OLED is drawn with block characters: set a UTF-8 locale, for example LANG=C.UTF-8."
        )
    try:
        return geometry_for(os.get_terminal_size())
    except ValueError as error:
        raise CommandError(str(error)) from error


def _play(options: StationOptions, lines: list[Line]) -> int:
    width = GEOMETRIES[options.geometry][0]
    style = style_for(shutil.get_terminal_size((width + _BORDER, 40)).columns, width)
    with DemoStation(options) as station:
        outcome = ScriptPlayer(station, style, click.echo).play(lines)
        click.echo("")
        click.echo("\n".join(station.latency.rows(speech())))
        heard, typed = len(station.heard), len(station.typed)
    for failure in outcome.failures:
        say("FAILED {failure}", failure=failure, err=True)
    say(
        "{steps} steps, {failed} failed, {heard} of {typed} keys arrived, in order",
        steps=outcome.steps,
        failed=len(outcome.failures),
        heard=heard,
        typed=typed,
    )
    return 1 if outcome.failures else 0
