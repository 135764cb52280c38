# SPDX-License-Identifier: Apache-2.0
"""The lock screen of macOS: distributed notifications, which AppKit's loop of the tray brings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

MEANINGS = {"com.apple.screenIsLocked": True, "com.apple.screenIsUnlocked": False}


def notification_center() -> Any:
    """The center of this login session, through PyObjC, which pystray needs on macOS anyway."""
    from Foundation import NSDistributedNotificationCenter  # type: ignore[import-not-found]

    return NSDistributedNotificationCenter.defaultCenter()


class MacLockWatch:
    """`center` has `addObserverForName_object_queue_usingBlock_` and `removeObserver_`."""

    def __init__(
        self, say: Callable[[bool], None], center: Callable[[], Any] = notification_center
    ) -> None:
        self._say = say
        self._make_center = center
        self._center: Any = None
        self._observers: list[Any] = []

    def start(self) -> None:
        self._center = self._make_center()
        for name, is_locked in MEANINGS.items():

            def block(_notification: Any, is_locked: bool = is_locked) -> None:
                self._say(is_locked)

            self._observers.append(
                self._center.addObserverForName_object_queue_usingBlock_(name, None, None, block)
            )

    def stop(self) -> None:
        for observer in self._observers:
            self._center.removeObserver_(observer)
        self._observers.clear()
