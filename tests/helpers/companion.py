# SPDX-License-Identifier: Apache-2.0
"""A companion on a desk of fakes: a clock that only the test moves, a keyboard and an engine that write
down what they are told. Everything runs on the test's thread."""

from __future__ import annotations

from collections.abc import Callable

from app.companion.core import Companion, Mailbox
from app.companion.messages import EngineChanged, Message
from app.companion.own_files import OwnFiles
from app.companion.ports import EngineCommand
from app.companion.state import CompanionState
from app.settings import ReadySettings, Settings
from engine.client import EngineState
from engine.errors import EngineUnavailableError
from engine.messages import Candidate, Chat, Choose, Suggest, SuggestionsReady
from firmware_bridge.display.frame import DisplayFrame, TextFrame
from firmware_bridge.events import (
    CaptureEnded,
    CaptureStarted,
    KeyPressed,
    KeyReleased,
    LinkReady,
    MacroTriggered,
)
from firmware_bridge.keys.layout import load_layout
from firmware_bridge.keys.typist import keys_for
from firmware_bridge.lights.overlay import LightOverlay
from firmware_bridge.link_offer import Picture
from firmware_bridge.link_reflex import Reflex
from firmware_bridge.protocol.capabilities import Capabilities, Feature
from firmware_bridge.protocol.messages import Offer, Status

US = load_layout("us")
EVERYTHING = Feature(63)


class FakeClock:
    """Seconds that pass only when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class FakeKeyboard:
    """Writes down what it is told, each as one line of text or, for a frame, a picture."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.frame: DisplayFrame = TextFrame(())
        self.offer: Offer | None = None
        self.columns = 21
        self.reflex: Reflex | None = None
        self.light_times: list[float] = []
        self.clock: Callable[[], float] = lambda: 0.0

    def show(self, frame: DisplayFrame, offer: Offer | None = None) -> None:
        picture = Picture(frame, offer)
        self.frame, self.offer = frame, offer
        if isinstance(frame, TextFrame):
            self.log.append(drawn(frame, self.columns))
        else:
            self.log.append(f"picture {frame.width}x{frame.height}")
        if offer is not None:
            self.log.append(f"offer {picture.offered_text()!r}")

    def set_reflex(self, reflex: Reflex | None) -> None:
        self.reflex = reflex

    def allow(self, *, capture: bool, typing: bool) -> None:
        self.log.append(f"allow capture {capture} typing {typing}")

    def set_status(self, status: Status) -> None:
        self.log.append(f"status {status.name.lower()}")

    def set_lights(self, overlay: LightOverlay) -> None:
        self.light_times.append(self.clock())
        if overlay.fill is None:
            self.log.append("lights off")
        else:
            c = overlay.fill
            effect = overlay.effect.name.lower()
            self.log.append(f"lights {c.red},{c.green},{c.blue} {effect}")

    def release(self) -> None:
        self.frame = TextFrame(())
        self.log.append("release")


class FakeEngine:
    """Writes down the commands; `is_dead` makes it refuse them as a client without a child does."""

    def __init__(self, log: list[str]) -> None:
        self.log = log
        self.commands: list[EngineCommand] = []
        self.is_dead = False

    def send(self, command: EngineCommand) -> None:
        if self.is_dead:
            raise EngineUnavailableError("the engine does not run: start it first")
        self.commands.append(command)
        match command:
            case Suggest(text=text):
                said = f" {text!r}"
            case Chat(turns=turns):
                said = f" {turns[-1].content!r}"
            case Choose(turns=turns):
                said = f" {turns[-1].content!r}"
            case _:
                said = ""
        self.log.append(f"{command.type} {command.request}{said}")


def drawn(frame: TextFrame, columns: int = 21) -> str:
    """A frame as a picture: one line per row, between bars."""
    return "\n".join(f"|{row:<{columns}}|" for row in frame.rows)


def board(
    columns: int = 21,
    rows: int = 4,
    features: Feature = EVERYTHING,
    extent: tuple[int, int] | None = None,
) -> Capabilities:
    """A keyboard with everything, and a display of that many characters, or of `extent` in pixels."""
    width, height = extent or (columns * 6, rows * 8)
    if extent is not None:
        columns, rows = width // 6, height // 8
    return Capabilities(
        protocol_low=1,
        protocol_high=1,
        report_length=32,
        uid=bytes(6),
        width=width,
        height=height,
        rotation=0,
        columns=columns,
        rows=rows,
        led_count=68,
        features=features,
        ring_size=32,
        build=1,
    )


class Desk:
    """One companion, with its fakes. `log` holds all outputs since the last `take`, in order.

    Only with `ahead` does it have replies computed before they are asked for.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        columns: int = 21,
        rows: int = 4,
        is_ready: bool = True,
        features: Feature = EVERYTHING,
        extent: tuple[int, int] | None = None,
        ahead: bool = False,
        own: OwnFiles = OwnFiles(),  # noqa: B008  immutable
    ) -> None:
        settings = settings or Settings()
        if not ahead:
            settings = settings.model_copy(update={"ready": ReadySettings(enabled=False)})
        self.settings = settings
        self.clock = FakeClock()
        self.keyboard = FakeKeyboard()
        self.keyboard.clock = self.clock
        self.keyboard.columns = columns
        self.engine = FakeEngine(self.keyboard.log)
        self.states: list[CompanionState] = []
        self.companion = Companion(Mailbox(), self.keyboard, self.engine, settings, self.clock, own)
        self.companion.subscribe(self.states.append)
        self.post(LinkReady(board(columns, rows, features, extent)))
        if is_ready:
            self.engine_is(EngineState.READY)
            self.take()

    @property
    def state(self) -> CompanionState:
        return self.companion.state

    @property
    def request(self) -> int:
        """The number of the last command."""
        return self.engine.commands[-1].request

    def post(self, message: Message) -> None:
        """The companion takes one message."""
        self.companion.step(message)

    def engine_is(self, state: EngineState, detail: str = "") -> None:
        self.engine.is_dead = state in (EngineState.STOPPED, EngineState.FAILED)
        self.post(EngineChanged(state, detail))

    def advance(self, seconds: float) -> None:
        """Let time pass, with every timer at its time."""
        end = self.clock.now + seconds
        for _ in range(10_000):
            wait = self.companion.wait_s()
            if wait is None or self.clock.now + wait > end:
                self.clock.now = end
                return
            self.clock.now += wait
            self.companion.step(None)
        raise AssertionError("a timer comes back without end")

    def take(self) -> list[str]:
        """The outputs since the last call."""
        log = list(self.keyboard.log)
        self.keyboard.log.clear()
        return log

    def down(self, usage: int, *, captured: bool = False) -> None:
        """A key goes down; its place follows from its usage."""
        ms = int(self.clock.now * 1000) & 0xFFFF
        self.post(KeyPressed(usage, usage >> 4, usage & 15, ms, self.clock.now, captured))

    def up(self, usage: int, *, captured: bool = False) -> None:
        """A key goes up."""
        ms = int(self.clock.now * 1000) & 0xFFFF
        self.post(KeyReleased(usage, usage >> 4, usage & 15, ms, self.clock.now, captured))

    def press(self, usage: int, hold_s: float = 0.0) -> None:
        """One key down and up."""
        self.down(usage)
        self.advance(hold_s)
        self.up(usage)

    def press_macro(self, number: int) -> None:
        """A companion key of the firmware."""
        ms = int(self.clock.now * 1000) & 0xFFFF
        self.post(MacroTriggered(number, ms, self.clock.now))

    def type(
        self, text: str, gap_s: float = 0.1, *, captured: bool = False, layout: str = "us"
    ) -> None:
        """Type as a person does: `gap_s` seconds pass after each key."""
        for stroke in keys_for(text, load_layout(layout)):
            for usage, is_down in stroke.actions():
                if is_down:
                    self.down(usage, captured=captured)
                else:
                    self.up(usage, captured=captured)
            self.advance(gap_s)

    def capture(self, text: str) -> None:
        """Type `text` while the capture key is held."""
        self.post(CaptureStarted(0, self.clock.now))
        self.type(text, captured=True)
        self.post(CaptureEnded(0, self.clock.now))

    def suggest(self, *words: tuple[str, float], request: int | None = None) -> None:
        """The engine answers with candidates."""
        self.post(suggestions(self.request if request is None else request, *words))

    @property
    def picture(self) -> str:
        """What stands on the display now, as text."""
        assert isinstance(self.keyboard.frame, TextFrame)
        return drawn(self.keyboard.frame, self.keyboard.columns)


def suggestions(
    request: int, *words: tuple[str, float], cancelled: bool = False
) -> SuggestionsReady:
    """An answer of the engine to a Suggest."""
    return SuggestionsReady(
        request=request,
        candidates=[Candidate(text=text, probability=share) for text, share in words],
        reused=7,
        computed=1,
        milliseconds=12.0,
        cancelled=cancelled,
    )
