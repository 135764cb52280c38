# SPDX-License-Identifier: Apache-2.0
"""`thock run`: the companion without a window."""

from __future__ import annotations

import signal
import sys
import threading
import time

import click

from app.commands.keyboards import OpenTransport, real_keyboard
from app.commands.options import DEFAULT_MODEL, model_path
from app.companion.core import Mailbox
from app.companion.run import run_companion
from app.companion.state import CompanionState
from app.log import set_up_logging
from app.settings import ModeName, Settings
from engine.client import EngineClient, EngineState
from firmware_bridge.keys.layout import load_layout
from firmware_bridge.keys.typist import keys_for
from firmware_bridge.link import Link
from firmware_bridge.protocol.messages import Status
from firmware_bridge.transport.virtual import VirtualKeyboard, VirtualTransport

_QUIET_S = 0.5  # an answer that stood this long is the whole answer
_KEY_S = 0.005  # between two actions; faster than any person, slower than a full ring
_BUSY = (Status.THINKING, Status.STREAMING)


@click.command()
@click.option("--model", default=DEFAULT_MODEL, show_default=True, help="Name or path of a model.")
@click.option(
    "--mode", type=click.Choice([m.value for m in ModeName]), default="suggest", show_default=True
)
@click.option(
    "--stdin", "from_stdin", is_flag=True,
    help="Type what comes on standard input, print what the OLED shows, end after the last answer.",
)  # fmt: skip
@click.option(
    "--keyboard", type=click.Choice(["auto", "virtual"]), default="auto", show_default=True,
    help="auto: the first keyboard with the Thock module, found again after each replug.",
)  # fmt: skip
@click.option(
    "--log-level", default="WARNING", show_default=True, help="DEBUG, INFO, WARNING, ERROR."
)
def command(model: str, mode: str, from_stdin: bool, keyboard: str, log_level: str) -> None:
    """Run the companion without a window.

    It runs until Ctrl-C or SIGTERM. States go to standard error. --stdin works on a virtual
    keyboard; only then is what was typed or answered printed.
    """
    try:
        set_up_logging(log_level.upper())
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    settings = Settings(mode=ModeName(mode), model=model_path(model))
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _n, _f: stop.set())
    reporter = _Reporter(show_oled=from_stdin)
    if keyboard == "auto" and not from_stdin:
        with real_keyboard() as open_transport:
            _run(open_transport, settings, stop, reporter)
    else:
        board = VirtualKeyboard()
        if from_stdin:
            threading.Thread(
                target=_type_stdin, args=(board, settings.layout, reporter, stop), daemon=True
            ).start()
        _run(lambda: VirtualTransport(board), settings, stop, reporter)
    if reporter.failed:
        sys.exit(1)


def _run(
    open_transport: OpenTransport, settings: Settings, stop: threading.Event, reporter: _Reporter
) -> None:
    mailbox = Mailbox()
    engine = EngineClient(mailbox.post, mailbox.engine_changed)
    link = Link(open_transport, mailbox.post)
    run_companion(mailbox, link, engine, settings, stop, [reporter])


class _Reporter:
    """Prints each change of state once. Called on the companion's thread."""

    def __init__(self, *, show_oled: bool) -> None:
        self._show_oled = show_oled
        self._line = ""
        self._rows: tuple[str, ...] = ()
        self._state: CompanionState | None = None
        self._changed = threading.Condition()

    def __call__(self, state: CompanionState) -> None:
        line = f"{state.mode} {state.status.name.lower()}, engine {state.engine.value}"
        line += f" ({state.engine_detail})" if state.engine_detail else ""
        line += "" if state.keyboard is not None else ", no keyboard yet"
        if line != self._line:
            self._line = line
            click.echo(line, err=True)
        rows = tuple(row.rstrip() for row in state.frame.rows)
        if self._show_oled and rows != self._rows:
            self._rows = rows
            click.echo("\n".join(("----", *rows)).rstrip())
        with self._changed:
            self._state = state
            self._changed.notify_all()

    @property
    def failed(self) -> bool:
        """The engine gave up."""
        return self._state is not None and self._state.engine is EngineState.FAILED

    def wait_ready(self) -> bool:
        """Until the model is loaded and the keyboard is there; False if the engine gave up."""
        with self._changed:
            self._changed.wait_for(lambda: self.failed or self._is(EngineState.READY))
        return not self.failed

    def wait_quiet(self) -> None:
        """Until nothing is under way and has not been for a moment."""
        with self._changed:
            while True:
                self._changed.wait_for(lambda: self.failed or not self._is_busy())
                if self.failed or not self._changed.wait_for(self._is_busy, _QUIET_S):
                    return

    def _is(self, engine: EngineState) -> bool:
        state = self._state
        return state is not None and state.engine is engine and state.keyboard is not None

    def _is_busy(self) -> bool:
        return self._state is not None and self._state.status in _BUSY


def _type_stdin(
    keyboard: VirtualKeyboard, layout_name: str, reporter: _Reporter, stop: threading.Event
) -> None:
    layout = load_layout(layout_name)
    try:
        if reporter.wait_ready():
            for line in sys.stdin:
                for usage, pressed in (a for k in keys_for(line, layout) for a in k.actions()):
                    (keyboard.press if pressed else keyboard.release)(usage)
                    time.sleep(_KEY_S)
                reporter.wait_quiet()
    except ValueError as error:
        click.echo(f"cannot type that: {error}", err=True)
    finally:
        stop.set()
