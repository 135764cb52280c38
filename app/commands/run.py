# SPDX-License-Identifier: Apache-2.0
"""`thock run`: the companion without a window."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Sequence

import click

from app.commands.keyboards import MakeLink, real_keyboard, virtual_keyboard
from app.commands.line_answers import LineAnswers
from app.commands.options import DEFAULT_MODEL, model_path
from app.companion.core import Mailbox, Subscriber
from app.companion.run import run_companion
from app.companion.state import CompanionState
from app.log import forbid_core_dumps, set_up_logging
from app.settings import ModeName, Settings
from engine.client import EngineClient
from firmware_bridge.keys.layout import load_layout
from firmware_bridge.transport.virtual import VirtualKeyboard

_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


@click.command()
@click.option("--model", default=DEFAULT_MODEL, show_default=True, help="Name or path of a model.")
@click.option(
    "--mode", type=click.Choice([m.value for m in ModeName]), default="suggest", show_default=True,
    help="What to do with the keys: suggest words, answer questions, or show moods.",
)  # fmt: skip
@click.option(
    "--stdin", "from_stdin", is_flag=True,
    help="Type each line of standard input on a virtual keyboard, print its answer, then end.",
)  # fmt: skip
@click.option(
    "--keyboard", default="auto", show_default=True,
    help="auto: the first keyboard with the Thock module. Else `virtual`, or the place, serial number "
    "or path of a device from `thock devices`.",
)  # fmt: skip
@click.option(
    "--log-level", type=click.Choice(_LEVELS, case_sensitive=False), default="WARNING",
    show_default=True, help="What goes to standard error. No level holds anything that you type.",
)  # fmt: skip
def command(model: str, mode: str, from_stdin: bool, keyboard: str, log_level: str) -> None:
    """Run the companion without a window.

    It runs until Ctrl-C or SIGTERM. States go to standard error. What is typed or answered is
    printed with --stdin only.
    """
    set_up_logging(log_level.upper())
    forbid_core_dumps()
    settings = Settings(mode=ModeName(mode), model=model_path(model))
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _n, _f: stop.set())
    mailbox = Mailbox()
    reporter = _Reporter()
    if from_stdin:
        board = VirtualKeyboard()
        answers = LineAnswers(board, load_layout(settings.layout), _say, stop)
        threading.Thread(target=answers.run, args=(sys.stdin,), daemon=True).start()
        _run(virtual_keyboard(board), settings, stop, mailbox, [reporter, answers])
        if answers.failed:
            sys.exit(1)
    elif keyboard == "virtual":
        _run(virtual_keyboard(VirtualKeyboard()), settings, stop, mailbox, [reporter])
    else:
        with real_keyboard("" if keyboard == "auto" else keyboard) as make_link:
            _run(make_link, settings, stop, mailbox, [reporter])


def _run(
    make_link: MakeLink,
    settings: Settings,
    stop: threading.Event,
    mailbox: Mailbox,
    subscribers: Sequence[Subscriber],
) -> None:
    engine = EngineClient(mailbox.post, mailbox.engine_changed)
    run_companion(mailbox, make_link(mailbox.post), engine, settings, stop, subscribers)


def _say(answer: str) -> None:
    click.echo(answer)
    sys.stdout.flush()


class _Reporter:
    """Prints each change of state once, to standard error, without content."""

    def __init__(self) -> None:
        self._line = ""

    def __call__(self, state: CompanionState) -> None:
        line = f"{state.mode} {state.status.name.lower()}, engine {state.engine.value}"
        line += f" ({state.engine_detail})" if state.engine_detail else ""
        line += "" if state.keyboard is not None else ", no keyboard yet"
        if line != self._line:
            self._line = line
            click.echo(line, err=True)
