# SPDX-License-Identifier: Apache-2.0
"""The companion's rules, without a thread: messages and the passing of time in, outputs out.

Every output is a function of the state. After each message the view is made anew, and what differs
from what the keyboard was told last is sent. So nothing that is out of date stays on the display.
"""

from __future__ import annotations

from collections.abc import Callable

from app.companion import messages as to_companion
from app.companion.asked import ReplyEnd, Ticket
from app.companion.context import TextUnknown
from app.companion.engine_watch import EngineWatch
from app.companion.key_edits import KeyEdits, KeyEvent
from app.companion.lights import load_palette
from app.companion.macros import MacroKey
from app.companion.messages import EngineChanged, Message
from app.companion.modes.base import Desk
from app.companion.modes.switch import Modes
from app.companion.own_files import OwnFiles
from app.companion.ports import EnginePort, KeyboardPort
from app.companion.rest import Rest
from app.companion.sight import Scene, Sight
from app.companion.state import CompanionState
from app.companion.words import failure_text, mode_name
from app.settings import ModeName, Settings
from engine.messages import Device, Event, Failed, Forgotten, Hello, ModelLoaded
from firmware_bridge.events import (
    BridgeEvent,
    CaptureEnded,
    CaptureStarted,
    EventsDropped,
    KeyPressed,
    KeyReleased,
    LinkLost,
    LinkReady,
    MacroTriggered,
    SuggestionAccepted,
)
from firmware_bridge.keys.layout import load_layout
from firmware_bridge.keys.text_events import KeyText
from firmware_bridge.protocol.capabilities import Capabilities

_ASK_KEYS = frozenset({int(MacroKey.ASK)})


class CompanionMachine:
    """All state of the companion. One thread calls it; nothing in it waits.

    Raises (by the constructor):
        ValueError: there is no keyboard layout of the name in `settings`.
    """

    def __init__(
        self,
        keyboard: KeyboardPort,
        engine: EnginePort,
        settings: Settings,
        clock: Callable[[], float],
        own: OwnFiles = OwnFiles(),  # noqa: B008  immutable
    ) -> None:
        self._now = clock
        self._keyboard = keyboard
        self._desk = Desk(engine, settings, load_palette(), clock, own)
        self._is_paused = False
        self._furnish()
        self._modes = Modes(self._desk, settings.mode)
        self._engine = EngineWatch(self._desk)
        self._sight = Sight(keyboard, self._desk, self._resized)
        self._rest = Rest(settings.display.off_s, settings.idle_wipe_s)
        self._newest_event: BridgeEvent | None = None
        self._dropped = 0
        self._ticket = Ticket(0)
        self._board: Capabilities | None = None
        self.is_stopped = False

    def _furnish(self) -> None:
        """All but the modes that is made from the settings, empty."""
        settings = self._desk.settings
        self._allow()
        self._keys = KeyEdits(
            KeyText(load_layout(settings.layout)), settings.key_repeat_s, self._now
        )

    def _allow(self) -> None:
        """Nothing but its own pause key works on the keyboard while no keys are read."""
        settings, is_reading = self._desk.settings, not self._is_paused
        self._keyboard.allow(
            capture=settings.chat.capture and is_reading,
            typing=settings.suggest.accept and is_reading,
        )

    # ---------------------------------------------------------------- what comes in

    def handle(self, message: Message) -> None:
        """Take one message. `wake` is to follow: it sends what changed."""
        self._rest.stay_awake(message, self._now())
        if isinstance(message, BridgeEvent):
            self._newest_event = message
            self._sight.out.event_came()
        match message:
            case KeyPressed() | KeyReleased():
                self._edit(message)
            case MacroTriggered(number=number):
                self._macro(number)
            case EventsDropped(count=count):
                self._dropped += count
                self._edit(message)
                self._notify_lost(count)
            case LinkReady(capabilities=capabilities):
                self._connect(capabilities)
            case LinkLost():
                self._board = None
                self._sight.connect(None)
                self._edit(message)
            case EngineChanged():
                self._engine_changed(message)
            case Failed():
                self._failed(message)
            case ModelLoaded():
                self._engine.loaded(message)
                self._notify_note(message)
            case SuggestionAccepted():
                self._accepted(message)
            case CaptureStarted() if not self._is_paused:
                self._modes.capture_began()
            case CaptureEnded():
                self._modes.capture_ended()
            case Hello() | Forgotten() | CaptureStarted():
                pass  # nothing depends on them
            case (
                to_companion.SetMode()
                | to_companion.Ask()
                | to_companion.Pause()
                | to_companion.Resume()
                | to_companion.CancelReply()
                | to_companion.Forget()
                | to_companion.Configure()
                | to_companion.FocusChanged()
                | to_companion.Stop()
            ):
                self._command(message)
            case _:
                if self._answered(message):
                    self._engine.error = ""

    @property
    def deadline(self) -> float | None:
        """When `wake` is to be called, if no message comes before."""
        if self.is_stopped:
            return None
        times = [
            self._modes.now.deadline,
            self._rest.deadline,
            self._sight.deadline,
        ]
        return min((time for time in times if time is not None), default=None)

    def wake(self) -> None:
        """Do what is due by now, and send what changed. After a Stop nothing is."""
        if self.is_stopped:
            return
        now = self._now()
        if self._rest.falls_asleep(now):
            self._wipe()
        if self._rest.falls_dark(now, is_busy=self._sight.out.is_busy):
            # The keyboard shows its own screen, or darkens it.
            self._sight.out.release()
        self._sight.wake(now)
        self._modes.now.wake()
        self._modes.settle(enter=not self._is_paused)
        if not self._rest.is_dark:
            self._sight.show(self._scene, now)
        self._foresee(now)

    def _foresee(self, now: float) -> None:
        """Have the engine compute the reply to what would be asked now, and the keyboard know it."""
        self._desk.ready.expect(None if self._is_paused else self._modes.now.question)
        after = None if self._rest.is_dark else self._newest_event
        enter_keys = self._keys.enter_keys if self._modes.is_typed_into else frozenset()
        keys = (enter_keys, _ASK_KEYS)
        self._sight.foresee(self._scene, keys, after, now)

    @property
    def _scene(self) -> Scene:
        return Scene(self._modes.now, self._engine, self._is_paused)

    def failed(self, error: str) -> None:
        """Something in here raised; `error` names it without content."""
        self._engine.error = error
        self._notify(self._desk.tr("internal error"))

    def state(self) -> CompanionState:
        """What there is to know of this moment."""
        out = self._sight.out
        return CompanionState(
            mode=self._modes.now.name,
            chosen=self._modes.chosen,
            status=out.status,
            is_paused=self._is_paused,
            engine=self._engine.state,
            engine_detail=self._engine.detail,
            model=self._engine.model,
            keyboard=self._board,
            dropped=self._dropped,
            error=self._engine.error,
            latency=self._desk.latency,
            frame=out.frame,
            lines=out.lines,
            lights=out.overlay,
            reply=self._modes.now.reply,
            ready=self._desk.ready.stats,
            asked=self._ticket.asked,
        )

    # ---------------------------------------------------------------- keys and keyboard

    def _edit(self, event: KeyEvent) -> None:
        if self._is_paused:
            self._keys.follow(event)
            return
        if isinstance(event, KeyPressed):
            self._sight.pressed(event)
        captured = isinstance(event, KeyPressed | KeyReleased) and event.captured
        for edit, at in self._keys.take(event):
            self._modes.edited(edit, at, captured=captured)

    def _accepted(self, event: SuggestionAccepted) -> None:
        """The keyboard typed what was offered: the text goes on with it."""
        if not self._is_paused:
            edit = self._keys.typed_by_keyboard(event.text)
            self._modes.edited(edit, event.host_s, captured=False)

    def _connect(self, capabilities: Capabilities) -> None:
        self._board = capabilities
        self._sight.connect(capabilities)

    def _macro(self, number: int) -> None:
        if self._is_paused and number != MacroKey.PAUSE:
            return
        match number:
            case MacroKey.NEXT_MODE:
                self._set_mode(self._modes.next_name)
            case MacroKey.ASK:
                self._modes.now.commit()
            case MacroKey.PAUSE if self._is_paused:
                self._resume()
            case MacroKey.PAUSE:
                self._pause()
            case MacroKey.CANCEL:
                self._modes.now.cancel()
            case MacroKey.ACCEPT:
                suggest, tr = self._modes.suggest, self._desk.tr
                is_suggesting = self._modes.now is suggest
                if text := suggest.refusal() if is_suggesting else tr("nothing to type"):
                    self._notify(text)
            case _:
                self._modes.now.macro(number)

    # ---------------------------------------------------------------- engine

    def _engine_changed(self, change: EngineChanged) -> None:
        if self._engine.changed(change):
            self._modes.now.engine_came()
        elif not self._desk.engine_ready:
            self._desk.ready.engine_left()
            for mode in self._modes:
                mode.engine_left()

    def _answered(self, event: Event) -> bool:
        """Whether it answers what somebody asked for."""
        is_ahead = self._desk.ready.answered(event)
        for mode in self._modes if not is_ahead else ():
            mode.answered(event)
        if self._engine.answered():
            self._modes.now.engine_came()
        return not is_ahead

    def _failed(self, event: Failed) -> None:
        if not self._answered(event):
            return  # the same question may be asked yet; then the person is told
        if code := self._engine.failed(event):
            self._notify(failure_text(code, self._desk.tr))

    # ---------------------------------------------------------------- commands

    def _command(self, command: to_companion.CompanionCommand) -> None:
        tr = self._desk.tr
        match command:
            case to_companion.SetMode(mode=mode):
                self._set_mode(mode)
            case to_companion.Ask(text=text, number=number):
                self._ask(text, number)
            case to_companion.Pause():
                self._pause()
            case to_companion.Resume():
                self._resume()
            case to_companion.CancelReply():
                self._modes.now.cancel()
            case to_companion.Forget():
                self._desk.personal.forget()
                self._wipe()
                self._desk.history.forget()
                self._notify(tr("forgotten"))
            case to_companion.FocusChanged() if not self._is_paused:
                self._keys.forget()
                self._modes.edited(TextUnknown(), self._now(), captured=False)
            case to_companion.FocusChanged():
                pass  # no text is kept
            case to_companion.Configure(settings=settings):
                self._configure(settings)
            case to_companion.Stop():
                self.is_stopped = True
                self._wipe()
                self._sight.out.release()

    def _configure(self, settings: Settings) -> None:
        """Other settings: what is made from them is made anew, so what was typed so far is forgotten."""
        old = self._desk.settings
        if settings == old:
            return
        name = self._modes.chosen if settings.mode is old.mode else settings.mode
        self._modes.now.leave()
        self._wipe()
        self._desk.configure(settings)
        self._sight.configure(settings)
        self._rest.configure(settings.display.off_s, settings.idle_wipe_s, self._now())
        self._furnish()
        self._modes.furnish(name)
        if not self._is_paused:
            self._modes.now.enter()

    def _ask(self, text: str, number: int) -> None:
        ticket = Ticket(number)
        if self._is_paused:
            ticket.close(ReplyEnd.PAUSED)
            self._notify(self._desk.tr("paused: not asked"))
        else:
            self._modes.invite_chat()
            self._modes.chat.ask(text, self._now(), ticket)
        self._ticket = ticket

    def _set_mode(self, name: ModeName) -> None:
        if not self._modes.choose(name, enter=not self._is_paused):
            return
        tr = self._desk.tr
        self._notify(tr("mode: {name}").format(name=mode_name(name, tr)))

    def _pause(self) -> None:
        if not self._is_paused:
            self._is_paused = True
            self._allow()
        self._ticket.close(ReplyEnd.PAUSED)
        self._wipe()

    def _resume(self) -> None:
        if self._is_paused:
            self._is_paused = False
            self._allow()
            self._modes.now.enter()

    def _wipe(self) -> None:
        """Forget every text, here and in the engine."""
        self._ticket.close(ReplyEnd.FORGOTTEN)
        self._ticket.wipe()
        self._keys.forget()
        self._newest_event = None
        self._desk.context.wipe()
        self._sight.forget()
        for mode in self._modes:
            mode.wipe()
        self._desk.ready.wipe()
        self._desk.personal.rest()
        self._engine.forget_content()

    # ---------------------------------------------------------------- what is seen

    def _notify_note(self, loaded: ModelLoaded) -> None:
        """In short; the state has it in full."""
        tr = self._desk.tr
        if loaded.backend == Device.REMOTE:
            self._notify(tr("text goes to server"))
        elif loaded.note:
            self._notify(tr("GPU not used"))

    def _notify_lost(self, count: int) -> None:
        tr = self._desk.tr
        text = tr("1 key lost") if count == 1 else tr("{count} keys lost").format(count=count)
        self._notify(text)

    def _notify(self, text: str) -> None:
        self._sight.notify(text, self._now())

    def _resized(self) -> None:
        for mode in self._modes:
            mode.resized()
