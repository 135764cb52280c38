# SPDX-License-Identifier: Apache-2.0
"""The companion as a program: one instance, its visitors, its tray, from start to end."""

from __future__ import annotations

import logging
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from app.companion.away import Away
from app.companion.core import Companion, Mailbox, Subscriber
from app.companion.cycles import pass_over_what_lives
from app.companion.own_files import OwnFiles
from app.companion.run import StartableKeyboard
from app.config.paths import history_file, moods_file, personas_folder, words_file
from app.config.store import Changes, SettingsStore
from app.first_run import FirstRun
from app.focus.watch import FocusWatch
from app.hotkey.follower import HotkeyActions, HotkeyFollower
from app.i18n import Catalog, Language, Translate, told, translation
from app.ipc.server import IpcServer
from app.ipc.service import IpcService
from app.lifecycle.engine_switch import EngineSwitch, FindModel, chosen_model
from app.lifecycle.followers import AutostartFollower, Notifier
from app.lifecycle.host import CompanionHost, HostState, Listener
from app.lifecycle.instance import OneInstance
from app.lifecycle.pauses import PauseReason
from app.lifecycle.window import SettingsWindow, can_open_window
from app.places import FIRST_STEPS
from app.platform.autostart import system_autostart
from app.platform.lock import LockState, Watch, lock_watches
from app.platform.sleep import SleepWatch
from app.tray.actions import TrayActions
from app.tray.tray import NullTray, Tray, make_tray
from engine.client import EngineClient
from engine.texts import Text
from firmware_bridge.events import BridgeEvent

_log = logging.getLogger(__name__)

MakeKeyboard = Callable[[Callable[[BridgeEvent], None]], StartableKeyboard]


@dataclass(frozen=True, slots=True)
class ProgramOptions:
    """`overrides` hold over the settings file. `runtime` is the folder for socket, key and lock.

    `keyboard_away`, `keyboard_back` and `watch_away`: `away`, `come_back` and `watch_away` of the keyboard.
    """

    runtime: Path
    make_keyboard: MakeKeyboard
    keyboard_name: Callable[[], str]
    store: SettingsStore
    overrides: Changes
    engine_argv: Sequence[str]
    with_tray: bool
    say: Callable[[str], None]
    find_model: FindModel = chosen_model
    subscribers: Sequence[Subscriber] = ()
    listeners: Sequence[Listener] = ()
    first_run: FirstRun = field(default_factory=FirstRun)
    keyboard_away: Callable[[], Away | None] = lambda: None
    keyboard_back: Callable[[], None] = lambda: None
    watch_away: Callable[[Callable[[], None]], None] = lambda _: None


class Translator:
    """Texts in the language of the settings; a catalog is read once."""

    def __init__(self) -> None:
        self._texts: dict[Language, Translate] = {}

    def __call__(self, state: HostState) -> Translate:
        return self.of(state.settings.language)

    def of(self, language: Language) -> Translate:
        """Texts in `language`; English where its catalog is missing."""
        if language not in self._texts:
            self._texts[language] = self._read(language)
        return self._texts[language]

    @staticmethod
    def _read(language: Language) -> Translate:
        try:
            return translation(language, Catalog.DESKTOP)
        except OSError as error:
            _log.warning("the menu stays English: %s", error)
            return str


def stop_on_signals(stop: threading.Event) -> None:
    """Ctrl-C, `kill`, and the end of the session set `stop`, for the rest of the process.

    A handler in Python runs on the main thread only, which may sit in a toolkit's loop while the system gave
    the signal to another thread. The number that C code writes into a socket comes at once.
    """
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK"):
        number = getattr(signal, name, None)
        if number is not None:
            signal.signal(number, lambda _number, _frame: None)
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)

    def wait(reader: socket.socket, _writer: socket.socket) -> None:
        while reader.recv(64):  # without end: a further signal is written into the socket too
            stop.set()

    threading.Thread(target=wait, args=(reader, writer), name="signals", daemon=True).start()


def run_program(options: ProgramOptions, stop: threading.Event) -> None:
    """Run until `stop` is set, by a signal, the menu or a visitor. Call it on the main thread.

    Raises:
        RunningAlreadyError: another companion of this user runs.
        IpcError: the runtime folder cannot be used.
    """
    with ExitStack() as end:
        end.enter_context(OneInstance(options.runtime))
        mailbox = Mailbox()
        engine = EngineClient(mailbox.post, mailbox.engine_changed, argv=options.engine_argv)
        switch = EngineSwitch(engine, mailbox.engine_changed, options.find_model)
        window = SettingsWindow(lambda page: server.show_page(page))
        host = CompanionHost(
            mailbox.post, switch, options.store, options.overrides,
            keyboard_name=options.keyboard_name, show_page=window.show, quit_=stop.set,
            keyboard_away=options.keyboard_away, keyboard_back=options.keyboard_back,
        )  # fmt: skip
        for problem in host.problems:
            options.say(Text("{path}: {problem}", path=options.store.path, problem=problem.told))
            _log.warning("settings: %s", problem)
        service = IpcService(host, options.store.path)

        def hear(event: BridgeEvent) -> None:
            service.heard(event)
            mailbox.post(event)

        options.watch_away(host.keyboard_moved)
        keyboard = options.make_keyboard(hear)
        own = OwnFiles(words_file(), history_file(), personas_folder(), moods_file())
        companion = Companion(mailbox, keyboard, engine, host.settings, own=own)
        server = IpcServer(options.runtime, service)
        service.server = server
        translator = Translator()
        tray = _tray(options, host, translator)
        host.listen(service.changed)
        hotkeys = HotkeyFollower(HotkeyActions(host))
        followers: list[Listener] = [
            tray.update,
            hotkeys,
            Notifier(tray.notify, translator),
            AutostartFollower(system_autostart()),
            *options.listeners,
        ]
        for follower in followers:
            host.listen(follower)
        companion.subscribe(host.observe)
        for subscriber in (pass_over_what_lives(), *options.subscribers):
            companion.subscribe(subscriber)

        end.callback(switch.close)
        end.callback(keyboard.stop)
        end.callback(companion.stop)
        end.callback(host.close)
        end.callback(window.close)
        end.callback(hotkeys.close)
        end.callback(server.close)
        companion.start(on_end=stop.set)
        keyboard.start()
        server.start()
        switch.load(host.settings)
        for watch in _system_watches(host):
            watch.start()
            end.callback(watch.stop)
        if tray.advice:
            options.say(tray.advice)
        if host.problems:
            tr = translator.of(host.settings.language)
            tray.notify(tr("Some settings could not be read"), told(tr, host.problems[0].told))
        if not isinstance(tray, NullTray) and options.first_run.is_due and can_open_window():
            window.show(FIRST_STEPS)
        tray.run(stop)


def _tray(options: ProgramOptions, host: CompanionHost, translator: Translator) -> Tray:
    if not options.with_tray:
        return NullTray("")

    def tell(reason: str) -> None:
        tray.notify("Thock", told(translator.of(host.settings.language), reason))

    tray = make_tray(TrayActions(host, tell), translator)
    return tray


def _system_watches(host: CompanionHost) -> list[Watch]:
    """No keys are read while the screen is locked or the computer sleeps; profiles follow the programs."""
    pauses = host.pauses

    def locked() -> None:
        if host.settings.pause_when_locked:
            pauses.begin(PauseReason.LOCKED)

    state = LockState(locked, lambda: pauses.end(PauseReason.LOCKED))
    sleep = SleepWatch(
        lambda: pauses.begin(PauseReason.ASLEEP), lambda: pauses.end(PauseReason.ASLEEP)
    )
    return [*lock_watches(state), sleep, FocusWatch(host.application_changed)]
