# SPDX-License-Identifier: Apache-2.0
"""What a person or another part of the program may ask of the companion, besides pressing keys."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.companion.asked import is_blank
from app.settings import ModeName, Settings
from engine.client import EngineState
from engine.messages import Event
from firmware_bridge.events import BridgeEvent

MAX_ASK_CHARS = 4000


@dataclass(frozen=True, slots=True)
class SetMode:
    """Change to another mode; a reply under way is cancelled."""

    mode: ModeName


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask `text` as if it had been typed in chat mode, which comes as a guest where it is not on.

    `number` is the asker's, for CompanionState.asked.

    Raises:
        ValueError: blank, or longer than MAX_ASK_CHARS.
    """

    text: str = field(repr=False)
    number: int = 0

    def __post_init__(self) -> None:
        if is_blank(self.text) or len(self.text) > MAX_ASK_CHARS:
            raise ValueError(f"a question has 1 to {MAX_ASK_CHARS} characters")


@dataclass(frozen=True, slots=True)
class Pause:
    """Wipe everything and read no keys until Resume."""


@dataclass(frozen=True, slots=True)
class Resume:
    """Read keys again."""


@dataclass(frozen=True, slots=True)
class CancelReply:
    """Stop the reply or request under way."""


@dataclass(frozen=True, slots=True)
class Forget:
    """Wipe the context, the question, the chat's history and what the engine holds of them."""


@dataclass(frozen=True, slots=True)
class Configure:
    """Work by other settings from now on. Changes of model and keyboard are not the companion's business."""

    settings: Settings


@dataclass(frozen=True, slots=True)
class FocusChanged:
    """Another program came to the front: what is typed next goes into another text."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Wipe everything, give the keyboard back and end the thread."""


@dataclass(frozen=True, slots=True)
class EngineChanged:
    """The engine child is in another state; `detail` says why and holds no content."""

    state: EngineState
    detail: str = ""


CompanionCommand = (
    SetMode | Ask | Pause | Resume | CancelReply | Forget | FocusChanged | Configure | Stop
)
Message = CompanionCommand | EngineChanged | BridgeEvent | Event
