# SPDX-License-Identifier: Apache-2.0
"""What every mode is, and the desk that the modes share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from app.companion.accept import Typeable
from app.companion.chat_history import ChatHistory
from app.companion.context import Edit, TypingContext
from app.companion.lights import Cue
from app.companion.own_files import OwnFiles
from app.companion.personal_words import PersonalWords
from app.companion.picture import Size
from app.companion.ports import EngineCommand, EnginePort
from app.companion.presets import load_presets
from app.companion.ready import Question, ReadyReplies
from app.i18n import Catalog, translation
from app.settings import ModeName, Settings
from engine.errors import EngineUnavailableError
from engine.messages import Cancel, Event
from firmware_bridge.display.canvas import PixelArt
from firmware_bridge.lights.overlay import LightOverlay
from firmware_bridge.protocol.messages import Status


@dataclass(frozen=True, slots=True)
class Latency:
    """From the key or trigger behind `request` to its first answer, in milliseconds.

    `is_ready`: the engine had computed it before.
    """

    mode: ModeName
    request: int
    milliseconds: float
    is_ready: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """What a mode wants to be seen now, made for the desk's size.

    `title` is for displays with a status bar. `art` stands beside or above the lines, on displays with
    pixels. `has_more` says that another page follows. `typeable` is what the accept key may type.
    """

    lines: tuple[str, ...] = field(repr=False)
    status: Status
    lights: LightOverlay
    title: str = field(default="", repr=False)
    art: PixelArt | None = None
    has_more: bool = False
    typeable: Typeable | None = None


@dataclass(frozen=True, slots=True)
class Preview:
    """What the ask key would bring on the display at once, without the engine.

    `view` makes it for a size. `on_enter`: so would Enter.
    """

    needs_pixels: bool
    view: Callable[[Size], View] = field(repr=False)
    on_enter: bool = False


class Desk:
    """What the modes share: context, display size, engine, clock. Owned by the companion's thread."""

    def __init__(
        self,
        engine: EnginePort,
        settings: Settings,
        palette: Mapping[Cue, LightOverlay],
        clock: Callable[[], float],
        own: OwnFiles,
    ) -> None:
        self.palette = palette
        self.personal = PersonalWords(own.words)
        self.history = ChatHistory(own.history)
        self._own = own
        self.now = clock
        self.ready = ReadyReplies(self.request, self.cancel)
        self._last_request = 0
        self._engine = engine
        self.engine_ready = False
        self.configure(settings)
        self.size = Size(columns=21, rows=4)
        self.latency: Latency | None = None

    def configure(self, settings: Settings) -> None:
        """Work by these settings from now on, with an empty context."""
        self.settings = settings
        self.tr = translation(settings.language, Catalog.COMPANION)
        self.context = TypingContext(settings.kept_chars)
        self.ready.configure(settings.ready)
        self.personal.configure(settings.suggest)
        self.history.configure(settings.chat)
        self.presets = load_presets(settings.language, self._own)

    def request(self, build: Callable[[int], EngineCommand]) -> int | None:
        """Send the command that `build` makes of a fresh request number; that number.

        None if the engine is not there: whoever asks tries again at `engine_came`.
        """
        number = self.number()
        return number if self._send(build(number)) else None

    def number(self) -> int:
        """A fresh request number."""
        self._last_request += 1
        return self._last_request

    def cancel(self, request: int | None) -> None:
        """Ask the engine to stop `request`, if there is one."""
        if request is not None:
            self._send(Cancel(request=request))

    def _send(self, command: EngineCommand) -> bool:
        if not self.engine_ready:
            return False
        try:
            self._engine.send(command)
        except EngineUnavailableError:
            # It died a moment ago; its state change is on the way and tells the modes.
            self.engine_ready = False
        return self.engine_ready

    def measured(
        self, mode: ModeName, request: int, since: float, *, is_ready: bool = False
    ) -> None:
        """Note how long the first answer to `request` took since its cause, a monotonic time."""
        self.latency = Latency(mode, request, (self.now() - since) * 1e3, is_ready)


class Mode(Protocol):
    """One way to answer. All methods run on the companion's thread and none of them waits."""

    name: ModeName

    @property
    def deadline(self) -> float | None:
        """When `wake` is to be called next, in the desk's time."""
        ...

    @property
    def typed(self) -> str:
        """What the person is typing, to be shown while there is no engine."""
        ...

    @property
    def reply(self) -> str:
        """The last answer as text, whole."""
        ...

    @property
    def question(self) -> Question | None:
        """What the ask key would ask the engine now; None where no reply can be ready."""
        ...

    @property
    def preview(self) -> Preview | None:
        """What a ready reply to `question` would look like; None: none is ready."""
        ...

    @property
    def needs_pixels(self) -> bool:
        """Whether the firmware's own font cannot show all of what the view is about."""
        ...

    def enter(self) -> None: ...

    def leave(self) -> None:
        """Another mode comes, or the engine's answers are no longer wanted: cancel what is under way."""
        ...

    def edited(self, edit: Edit, at: float) -> None:
        """A key changed the text at `at` (monotonic seconds)."""
        ...

    def commit(self) -> None:
        """The ask key."""
        ...

    def cancel(self) -> None:
        """The cancel key."""
        ...

    def macro(self, number: int) -> None:
        """A macro key that has no meaning of its own."""
        ...

    def answered(self, event: Event) -> None:
        """An event of the engine; those of requests that are not waited for are ignored."""
        ...

    def engine_came(self) -> None:
        """Requests go through from now on."""
        ...

    def engine_left(self) -> None:
        """No request under way will be answered."""
        ...

    def wake(self) -> None:
        """The deadline has passed."""
        ...

    def resized(self) -> None:
        """The display has another size."""
        ...

    def wipe(self) -> None:
        """Forget every text, and cancel what is under way."""
        ...

    def view(self) -> View: ...
