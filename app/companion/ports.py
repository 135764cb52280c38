# SPDX-License-Identifier: Apache-2.0
"""What the companion needs of a keyboard and of an engine.

Both report back through the companion's mailbox. No method may wait for the device or for the model:
they are called on the companion's own thread.
"""

from __future__ import annotations

from typing import Protocol

from engine.messages import Cancel, Chat, Choose, Complete, Forget, Prepare, Suggest
from firmware_bridge.display.frame import DisplayFrame
from firmware_bridge.lights.overlay import LightOverlay
from firmware_bridge.link_reflex import Reflex
from firmware_bridge.protocol.messages import Offer, Status

EngineCommand = Suggest | Chat | Complete | Prepare | Choose | Forget | Cancel


class KeyboardPort(Protocol):
    """The output side of one keyboard; the newest of each kind wins, and holds over new connections.

    A keyboard leaves out what it has no part for.
    """

    def show(self, frame: DisplayFrame, offer: Offer | None = None) -> None:
        """Show `frame`. Where typing is allowed, the accept key types the piece `offer` of it, once.

        `SuggestionAccepted` tells that it did. Another picture takes the offer away.

        Raises:
            ValueError: `offer` is no piece of one row of a text frame.
        """
        ...

    def set_reflex(self, reflex: Reflex | None) -> None:
        """Show its picture without another call, if one of its keys comes next; None: no more.

        A reflex that was set off counts as a `show` before this call. A keyboard may ignore it.
        """
        ...

    def allow(self, *, capture: bool, typing: bool) -> None:
        """What the person lets the keyboard's own keys do; neither at the beginning.

        `capture`: a key may send the keys after it to the companion only (`CaptureStarted`, `CaptureEnded`;
        such keys have `captured`). `typing`: see `show`. What is no longer allowed ends at once.
        """
        ...

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
