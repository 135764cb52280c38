# SPDX-License-Identifier: Apache-2.0
"""All that is seen: a mode's view or what takes its place, a notice over it, and what a key would bring."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from app.companion.engine_watch import EngineWatch
from app.companion.key_lights import KeyLights
from app.companion.lights import Cue, LightRules
from app.companion.modes.base import Desk, Mode, View
from app.companion.notice import Notice
from app.companion.output import Output
from app.companion.overlays import engine_text, engine_view, paused_view
from app.companion.picture import Size
from app.companion.ports import KeyboardPort
from app.companion.screen import Screen
from app.companion.status_bar import Privacy, Situation
from app.settings import ModeName, Settings
from firmware_bridge.display.spelling import is_plain
from firmware_bridge.events import BridgeEvent, KeyPressed
from firmware_bridge.keys.layout import load_layout
from firmware_bridge.link_reflex import Reflex
from firmware_bridge.protocol.capabilities import Capabilities, Feature


@dataclass(frozen=True, slots=True)
class Scene:
    """What there is to be seen."""

    mode: Mode
    engine: EngineWatch
    is_paused: bool


class Sight:
    """What one keyboard shows. `resized` is called when the desk's size has changed."""

    def __init__(self, keyboard: KeyboardPort, desk: Desk, resized: Callable[[], None]) -> None:
        self._desk = desk
        self._resized = resized
        self._screen = Screen(desk.settings.display.text_size)
        self._rules = LightRules(desk.settings.lights)
        self._notice = Notice()
        self._board: Capabilities | None = None
        letter = desk.palette[Cue.LETTER].fill
        assert letter is not None
        self._keys = KeyLights(load_layout(desk.settings.layout), letter)
        self._keys_due: float | None = None
        self.out = Output(keyboard, self._screen, self._rules)

    @property
    def deadline(self) -> float | None:
        """When something changes by itself."""
        times = (self._notice.deadline, self.out.deadline, self._keys_due)
        return min((time for time in times if time is not None), default=None)

    def configure(self, settings: Settings) -> None:
        """Work by these settings from now on."""
        self._screen.configure(settings.display.text_size)
        self._rules.configure(settings.lights)
        self._keys.configure(load_layout(settings.layout))

    def connect(self, board: Capabilities | None) -> None:
        """Another board is there, or none."""
        self._board = board
        if board is not None:
            self._screen.connect(board)
            self._keys.connect(board)

    def pressed(self, event: KeyPressed) -> None:
        """A key went down where `event` says."""
        self._keys.pressed(event)

    def forget(self) -> None:
        """Forget what was drawn and lit."""
        self._screen.forget()
        self._keys.forget()

    def notify(self, text: str, now: float) -> None:
        """Show `text` for a moment."""
        self._notice.say(text, now)

    def wake(self, now: float) -> None:
        """Take away what has been shown long enough."""
        self._notice.wake(now)

    def show(self, scene: Scene, now: float) -> None:
        """Send what changed since the last time."""
        view = self._view(scene)
        suggested = self._suggested(scene)
        self._keys_due = self._keys.deadline(suggested, now)
        view = replace(view, lights=self._keys.over(view.lights, suggested, now))
        self.out.send(view, self._situation(scene), self._desk.size, now)

    def foresee(
        self,
        scene: Scene,
        keys: tuple[frozenset[int], frozenset[int]],
        after: BridgeEvent | None,
        now: float,
    ) -> None:
        """Have the keyboard show by itself what the ask key would bring without the engine.

        `keys` are the codes that are Enter now, and the numbers of the ask key; `after` is the newest
        event of the keyboard, None to foresee nothing.
        """
        is_answering = self._desk.engine_ready and not scene.is_paused
        preview = scene.mode.preview if is_answering else None
        if preview is None or after is None:
            self.out.foresee(None)
            return
        size = self._size(preview.needs_pixels)
        view = self._notice.over(preview.view(size), size)
        frame = self._screen.frame(view, self._situation(scene), size, now)
        enter_keys = keys[0] if preview.on_enter else frozenset()
        self.out.foresee(Reflex(frame, enter_keys, keys[1], after))

    def _view(self, scene: Scene) -> View:
        desk, tr, mode, engine = self._desk, self._desk.tr, scene.mode, scene.engine
        if scene.is_paused:
            self._fit(not is_plain(tr("paused") + tr("No keys are read.")))
            view = paused_view(desk.size, tr)
        elif text := engine_text(engine.state, engine.detail, tr):
            typed = mode.typed
            self._fit(not is_plain(text + typed))
            view = engine_view(engine.state, text, typed, desk.size, desk.palette)
        else:
            self._fit(mode.needs_pixels)
            view = mode.view()
        return self._notice.over(view, desk.size)

    def _suggested(self, scene: Scene) -> str:
        """What the person may type next, if a suggestion is shown."""
        is_shown = scene.mode.name is ModeName.SUGGEST and not scene.is_paused
        return scene.mode.reply if is_shown and self._desk.engine_ready else ""

    def _fit(self, needs_pixels: bool) -> None:
        """Have the desk's size in the font that shows what is to be seen."""
        size = self._size(needs_pixels)
        if size != self._desk.size:
            self._desk.size = size
            self._resized()

    def _size(self, needs_pixels: bool) -> Size:
        return self._screen.size(needs_pixels or not is_plain(self._notice.text))

    def _situation(self, scene: Scene) -> Situation:
        if scene.is_paused:
            privacy = Privacy.PAUSED
        elif self._board is not None and Feature.KEYS not in self._board.features:
            privacy = Privacy.DEAF
        else:
            privacy = Privacy.READING
        return Situation(privacy, scene.mode.name, scene.engine.state)
