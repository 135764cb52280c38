# SPDX-License-Identifier: Apache-2.0
"""`thock run`: the companion, with the tray or without any window."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from app.choices import settings_store
from app.commands.keyboards import any_keyboard, virtual_keyboard
from app.commands.line_answers import LineAnswers
from app.commands.options import DEFAULT_MODEL, model_path
from app.commands.speech import CommandError, in_words, say
from app.companion.core import Mailbox
from app.companion.lights_port import Listener
from app.companion.run import run_companion
from app.companion.state import CompanionState
from app.config.paths import log_folder, runtime_folder
from app.ipc.protocol import IpcError
from app.lifecycle.engine_switch import chosen_model
from app.lifecycle.followers import LogLevelFollower
from app.lifecycle.instance import RunningAlreadyError, show_running
from app.lifecycle.keyboard_switch import KeyboardSwitch, OpenKeyboard
from app.lifecycle.program import ProgramOptions, run_program, stop_on_signals
from app.log import forbid_core_dumps, set_up_file_logging, set_up_logging
from app.settings import LightsSettings, ModeName
from engine.client import FAKE_ENGINE, MODEL_ENGINE, EngineClient
from engine.messages import Device
from engine.texts import Text, as_text, system_reason
from firmware_bridge.keys.layout import load_layout
from firmware_bridge.protocol.capabilities import Feature
from firmware_bridge.transport.base import Transport
from firmware_bridge.transport.virtual import VirtualKeyboard

_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
_VIRTUAL_NAME = Text("Thock virtual keyboard")


@click.command()
@click.option("--model", help="Name or path of a model, in place of the one in the settings.")
@click.option(
    "--mode", type=click.Choice([m.value for m in ModeName]),
    help="What to do with the keys: suggest words, answer questions, or show moods.",
)  # fmt: skip
@click.option(
    "--stdin", "from_stdin", is_flag=True,
    help="Type each line of standard input on a virtual keyboard, print its answer, then end.",
)  # fmt: skip
@click.option(
    "--keyboard",
    help="auto: the first keyboard with the Thock module. Else `virtual`, or the place, serial number "
    "or path of a device from `thock devices`.",
)
@click.option("--tray", is_flag=True, help="Show an icon in the panel, as `thock` alone does.")
@click.option(
    "--engine", type=click.Choice([*(d.value for d in Device), "fake"]),
    help="What computes, in place of the one in the settings. fake: scripted replies, no model needed.",
)  # fmt: skip
@click.option(
    "--log-level", type=click.Choice(_LEVELS, case_sensitive=False),
    help="Detail of the log, in place of the one in the settings. No level holds anything that you type.",
)  # fmt: skip
def command(
    model: str | None,
    mode: str | None,
    from_stdin: bool,
    keyboard: str | None,
    tray: bool,
    engine: str | None,
    log_level: str | None,
) -> None:
    """Run the companion, until Ctrl-C or SIGTERM.

    States go to standard error. What is typed or answered is printed with --stdin only. The options hold
    over the settings, for this run.
    """
    set_up_logging((log_level or "WARNING").upper())
    forbid_core_dumps()
    overrides: dict[str, Any] = {}
    if mode is not None:
        overrides["mode"] = mode
    if model is not None:
        overrides["model"] = str(model_path(model))
    if engine is not None and engine != "fake":
        overrides["engine"] = engine
    if from_stdin:
        sys.exit(_answer_lines(overrides, _engine_argv(engine)))
    if keyboard is not None:
        overrides["keyboard"] = keyboard
    store = settings_store()
    stored = store.load().settings
    keyboards = KeyboardSwitch(_open_keyboard, keyboard or stored.keyboard, stored.lights)
    listeners = (keyboards.follow,) if log_level else (keyboards.follow, LogLevelFollower())
    say = _to_stderr
    _log_to_file(say)
    stop = threading.Event()
    stop_on_signals(stop)
    try:
        options = ProgramOptions(
            runtime=runtime_folder(),
            make_keyboard=keyboards.heard_by,
            keyboard_name=lambda: keyboards.name,
            keyboard_away=lambda: keyboards.away,
            keyboard_back=keyboards.come_back,
            watch_away=keyboards.watch_away,
            store=store,
            overrides=overrides,
            engine_argv=_engine_argv(engine),
            find_model=(lambda _: Path("fake")) if engine == "fake" else chosen_model,
            with_tray=tray,
            say=say,
            subscribers=() if tray else (_Reporter(),),
            listeners=listeners,
        )
        run_program(options, stop)
    except RunningAlreadyError as error:
        _show_the_other(error)
    except (IpcError, OSError) as error:
        raise CommandError(str(error)) from error


def _engine_argv(engine: str | None) -> tuple[str, ...]:
    """How the engine child is started. A frozen program has no torch: it needs another Python that has."""
    if engine == "fake":
        return FAKE_ENGINE
    return (os.environ.get("THOCK_ENGINE_PYTHON") or MODEL_ENGINE[0], *MODEL_ENGINE[1:])


def _answer_lines(overrides: dict[str, Any], engine_argv: tuple[str, ...]) -> int:
    """A companion for the lines of standard input alone: no visitors, and beside one that runs."""
    stored = settings_store().load().settings
    settings = stored.model_copy(
        update={
            "mode": ModeName(overrides.get("mode", ModeName.SUGGEST)),
            "engine": Device(overrides.get("engine", stored.engine)),
            "model": Path(overrides.get("model") or model_path(DEFAULT_MODEL)),
        }
    )
    stop = threading.Event()
    stop_on_signals(stop)
    mailbox = Mailbox()
    board = VirtualKeyboard()
    answers = LineAnswers(board, load_layout(settings.layout), _say, stop)
    threading.Thread(target=answers.run, args=(sys.stdin,), daemon=True).start()
    engine = EngineClient(mailbox.post, mailbox.engine_changed, argv=engine_argv)
    link = virtual_keyboard(board)(mailbox.post)
    run_companion(mailbox, link, engine, settings, stop, [_Reporter(), answers])
    return 1 if answers.failed else 0


@contextmanager
def _open_keyboard(
    chosen: str, lights: LightsSettings, listener: Listener
) -> Iterator[OpenKeyboard]:
    """As the setting `keyboard` says."""
    if chosen == "virtual":
        link = virtual_keyboard(VirtualKeyboard())(listener)
        yield OpenKeyboard(link, lambda: _VIRTUAL_NAME, lambda _lights: None)
        return
    newest: list[Transport] = []

    def note(transport: Transport) -> Transport:
        newest[:] = [transport]
        return transport

    with any_keyboard(lights, "" if chosen == "auto" else chosen, note) as make:
        keyboard = make(listener)
        yield OpenKeyboard(
            keyboard, lambda: newest[0].identity.product if newest else "", keyboard.configure,
            lambda: keyboard.away, keyboard.come_back, keyboard.watch_away,
        )  # fmt: skip


def _log_to_file(say: Callable[[str], None]) -> None:
    try:
        set_up_file_logging(log_folder())
    except OSError as error:
        say(Text("there is no log file: {error}", error=system_reason(error)))


def _show_the_other(error: RunningAlreadyError) -> None:
    try:
        show_running(runtime_folder())
    except IpcError as reason:
        raise CommandError(
            Text("{error} It does not answer: {reason}", error=as_text(str(error)), reason=reason)
        ) from reason
    say("Thock runs already; it was asked to show its window.")


def _to_stderr(text: str) -> None:
    click.echo(in_words(text), err=True)


def _say(answer: str) -> None:
    click.echo(answer)
    sys.stdout.flush()


class _Reporter:
    """Prints each change of state once, to standard error, without content."""

    def __init__(self) -> None:
        self._line = ""

    def __call__(self, state: CompanionState) -> None:
        line = Text(
            "{mode} {status}, engine {engine}",
            mode=Text(state.mode.value),
            status=Text(state.status.name.lower()),
            engine=Text(state.engine.value),
        )
        if state.engine_detail:
            line = Text("{line} ({detail})", line=line, detail=as_text(state.engine_detail))
        if state.keyboard is None:
            line = Text("{line}, no keyboard yet", line=line)
        elif state.keyboard.features is Feature.LIGHTS:
            line = Text(
                "{line}, no keyboard with the Thock module: the lights of another one", line=line
            )
        if line != self._line:
            self._line = line
            _to_stderr(line)
