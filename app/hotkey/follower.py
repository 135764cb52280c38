# SPDX-License-Identifier: Apache-2.0
"""Who tells of shortcuts on this system, kept in step with the settings."""

from __future__ import annotations

import logging
import os
import queue
import sys
import threading
from collections.abc import Callable, Mapping

from app.hotkey.bindings import HotkeyAction, bindings
from app.hotkey.source import HotkeySource, HotkeysUnavailableError, Press
from app.lifecycle.host import CompanionHost, HostState
from app.settings import HotkeySettings
from engine.failures import name_of_error
from engine.texts import Text

_log = logging.getLogger(__name__)


def system_source(
    platform: str = sys.platform, environment: Mapping[str, str] = os.environ
) -> HotkeySource:
    """The source of this system.

    Raises:
        HotkeysUnavailableError: there is none.
    """
    if platform.startswith("linux") and environment.get("WAYLAND_DISPLAY"):
        from app.hotkey.portal import PortalHotkeys

        return PortalHotkeys()
    try:
        from app.hotkey.pynput_source import PynputHotkeys
    except Exception as error:  # pynput lets through whatever its backends raise
        raise HotkeysUnavailableError(
            Text(
                "shortcuts need pynput (the extra `desktop`) and a desktop: {error}",
                error=name_of_error(error),
            )
        ) from error
    return PynputHotkeys()


class HotkeyActions:
    """What the shortcuts do: the same commands as everywhere."""

    def __init__(self, host: CompanionHost) -> None:
        self._host = host

    def __call__(self, action: HotkeyAction) -> None:
        match action:
            case HotkeyAction.ASK:
                self._host.show_page("ask")
            case HotkeyAction.PAUSE:
                self._host.toggle_pause()
            case HotkeyAction.CANCEL:
                self._host.cancel()
            case HotkeyAction.NEXT_MODE:
                self._host.next_mode()


class HotkeyFollower:
    """Starts and stops the source as the settings say, on a thread of its own. A listener of the host."""

    def __init__(
        self, press: Press, make_source: Callable[[], HotkeySource] = system_source
    ) -> None:
        self._press = press
        self._make_source = make_source
        self._wishes: queue.SimpleQueue[HotkeySettings | None] = queue.SimpleQueue()
        self._newest = HotkeySettings()
        self._thread: threading.Thread | None = None

    def __call__(self, state: HostState) -> None:
        wanted = state.settings.hotkeys
        if wanted == self._newest:
            return
        self._newest = wanted
        self._wishes.put(wanted)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="hotkeys", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Let all shortcuts go."""
        if self._thread is not None:
            self._wishes.put(None)
            self._thread.join(5)

    def _work(self) -> None:
        source: HotkeySource | None = None
        while True:
            wish = self._wishes.get()
            if source is not None:
                source.stop()
                source = None
            if wish is None:
                return
            if wish.enabled:
                source = self._started(wish)

    def _started(self, settings: HotkeySettings) -> HotkeySource | None:
        wanted, problems = bindings(settings)
        for name, reason in problems.items():
            _log.warning("shortcut %s: %s", name, reason)
        try:
            source = self._make_source()
            source.start(wanted, self._press)
        except HotkeysUnavailableError as error:
            _log.warning("no shortcuts: %s", error)
        except Exception as error:  # noqa: BLE001  the thread's top: toolkits raise what they like
            _log.warning("no shortcuts: %s", name_of_error(error))
        else:
            return source
        return None
