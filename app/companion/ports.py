# SPDX-License-Identifier: Apache-2.0
"""What the companion needs of a keyboard and of an engine.

Both report back through the companion's mailbox. No method may wait for the device or for the model:
they are called on the companion's own thread.
"""

from __future__ import annotations

from typing import Protocol

from engine.messages import Cancel, Chat, Choose, Forget, Suggest
from firmware_bridge.display.frame import DisplayFrame
from firmware_bridge.lights.overlay import LightOverlay
from firmware_bridge.protocol.messages import Status

EngineCommand = Suggest | Chat | Choose | Forget | Cancel


class KeyboardPort(Protocol):
    """The output side of one keyboard; the newest of each kind wins."""

    def show(self, frame: DisplayFrame) -> None: ...

    def set_status(self, status: Status) -> None: ...

    def set_lights(self, overlay: LightOverlay) -> None: ...

    def release(self) -> None:
        """Give display, lights and status back to the keyboard's own firmware."""
        ...


class EnginePort(Protocol):
    """The command side of the engine child."""

    def send(self, command: EngineCommand) -> None:
        """Hand a command over.

        Raises:
            EngineUnavailableError: the child is not running now.
        """
        ...
