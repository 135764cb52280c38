# SPDX-License-Identifier: Apache-2.0
"""The tray by pystray: AppIndicator or GTK where their Python bindings are, X11 without, Windows, macOS.

pystray's main loop has the main thread. One other thread takes the states and has the icon changed, and never
ends for an error: what could not be shown is shown again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pystray  # type: ignore[import-untyped]

from app.lifecycle.host import HostState
from app.platform.panel import panel_is_dark
from app.settings import Settings, TrayInk
from app.tray.icons import DARK, LIGHT, icon
from app.tray.limits import MESSAGE_UNITS, TITLE_UNITS, TOOLTIP_UNITS, cut
from app.tray.menu import LINE, Action, ChooseProfile, Row, Shape, menu, shape, tooltip
from app.tray.tray import NO_HOST, NO_MENU, Perform, Translator
from app.tray.x11_icon import X11Icon, has_server, is_x11
from engine.failures import name_of_error

# Panels scale it; X11 asks for the size that it needs.
_ICON_PIXELS = 64
# After an error.
_SHOW_AGAIN_S = 1.0

_log = logging.getLogger(__name__)


class PystrayTray:
    """The icon. It is there once `run` has begun, with the first state."""

    def __init__(self, perform: Perform, translator: Translator) -> None:
        # It logs a traceback for every panel that is not there; what matters is told by `advice`.
        logging.getLogger("pystray").setLevel(logging.CRITICAL)
        self._perform = perform
        self._translator = translator
        self._changed = threading.Condition()
        self._state: HostState | None = None
        self._is_new = False
        self._notes: list[tuple[str, str]] = []
        self._rows: tuple[Row, ...] = ()
        self._shown: tuple[object, ...] = ()
        self._is_x11 = is_x11()
        first = icon(Shape.LOADING, _ICON_PIXELS, LIGHT)
        kind = X11Icon if self._is_x11 else pystray.Icon
        self._icon = kind("thock", first, "Thock", pystray.Menu(self._items))
        self._draw(Shape.LOADING, is_light=True)

    @property
    def has_menu(self) -> bool:
        """The backend can show one."""
        return bool(self._icon.HAS_MENU)

    @property
    def advice(self) -> str:
        if self._is_x11 and not self._icon.has_host():
            return NO_HOST
        return "" if self.has_menu else NO_MENU

    def run(self, stop: threading.Event) -> None:
        ready = threading.Event()
        # A daemon: where the toolkit dies, a call of it may never come back.
        for work, name in ((self._watch, "tray-end"), (self._live, "tray")):
            threading.Thread(target=work, args=(stop, ready), name=name, daemon=True).start()
        try:
            self._icon.run(lambda _icon: ready.set())
        except Exception as error:  # noqa: BLE001  the toolkit's top; the companion works on without it
            _log.error("the tray ended after %s", name_of_error(error))
        if self._is_x11 and not stop.is_set() and not has_server():
            _log.info("the X server is gone, so the session is over")
            stop.set()
        stop.wait()

    def update(self, state: HostState) -> None:
        with self._changed:
            self._state = state
            self._is_new = True
            self._changed.notify_all()

    def notify(self, title: str, message: str) -> None:
        if self._icon.HAS_NOTIFICATION:
            with self._changed:
                self._notes.append((cut(message, MESSAGE_UNITS), cut(title, TITLE_UNITS)))
                self._is_new = True
                self._changed.notify_all()

    # ---------------------------------------------------------------- the thread that changes the icon

    def _watch(self, stop: threading.Event, _ready: threading.Event) -> None:
        stop.wait()
        with self._changed:
            self._changed.notify_all()

    def _live(self, stop: threading.Event, ready: threading.Event) -> None:
        ready.wait()
        while not stop.is_set():
            with self._changed:
                patience_s = None if self._shown or self._state is None else _SHOW_AGAIN_S
                self._changed.wait_for(lambda: self._is_new or stop.is_set(), patience_s)
                state, self._is_new = self._state, False
                notes, self._notes = self._notes, []
            for message, title in notes:
                self._on_icon_thread(partial(self._icon.notify, message, title))
            if state is not None and not stop.is_set():
                self._on_icon_thread(partial(self._try_to_show, state))
        self._on_icon_thread(self._icon.stop)

    def _on_icon_thread(self, work: Callable[[], None]) -> None:
        if self._is_x11:
            self._icon.post(work)
        else:
            work()

    def _try_to_show(self, state: HostState) -> None:
        try:
            self._show(state)
        except Exception as error:  # noqa: BLE001  the toolkit's top: it is tried again
            self._shown = ()
            _log.warning("the tray could not be changed: %s", name_of_error(error))

    def _show(self, state: HostState) -> None:
        tr = self._translator(state)
        look = (shape(state), is_light_ink(state.settings))
        title = cut(tooltip(state, tr), TOOLTIP_UNITS)
        rows = menu(state, tr)
        shown = (look, title, rows)
        if shown == self._shown:
            return
        old = self._shown
        self._rows = rows
        if not old or old[0] != look:
            self._icon.icon = self._draw(*look)
        self._icon.visible = True
        if not old or old[1] != title:
            self._icon.title = self._as_title(title)
        if not old or old[2] != rows:
            self._icon.update_menu()
        self._shown = shown

    def _as_title(self, title: str) -> str:
        # On X11 it is the window's WM_NAME, which is Latin-1.
        return title.encode("latin-1", "replace").decode("latin-1") if self._is_x11 else title

    def _draw(self, shape_: Shape, is_light: bool) -> Any:
        ink, other = (LIGHT, DARK) if is_light else (DARK, LIGHT)
        if self._is_x11:
            self._icon.draw = lambda side: icon(shape_, side, ink, other)
        return icon(shape_, _ICON_PIXELS, ink)

    # ---------------------------------------------------------------- the menu

    def _items(self) -> tuple[pystray.MenuItem, ...]:
        return tuple(self._item(row) for row in self._rows)

    def _item(self, row: Row) -> Any:
        if row == LINE:
            return pystray.Menu.SEPARATOR
        if row.rows:
            return pystray.MenuItem(row.text, pystray.Menu(*map(self._item, row.rows)))
        if row.action is None:
            return pystray.MenuItem(row.text, None, enabled=False)
        checked = row.checked
        return pystray.MenuItem(
            row.text,
            self._actor(row.action),
            checked=None if checked is None else lambda _item: checked,
            radio=checked is not None,
            default=row.is_default,
        )

    def _actor(self, action: Action | ChooseProfile) -> Any:
        def act(_icon: object, _item: object) -> None:
            try:
                self._perform(action)
            except Exception as error:  # noqa: BLE001  the toolkit would end its loop
                kind = action.value if isinstance(action, Action) else "choose-profile"
                _log.error("%s failed: %s", kind, name_of_error(error))

        return act


def is_light_ink(settings: Settings) -> bool:
    """Whether the icon is to be light."""
    match settings.general.tray_icon:
        case TrayInk.LIGHT:
            return True
        case TrayInk.DARK:
            return False
        case TrayInk.AUTO:
            return panel_is_dark()
