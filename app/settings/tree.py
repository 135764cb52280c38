# SPDX-License-Identifier: Apache-2.0
"""All settings, and what a profile changes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from app.i18n import Language, system_language
from app.settings.base import Group, ModeName, Name, Page, known_layout
from app.settings.devices import DisplaySettings, GeneralSettings, HotkeySettings, LightsSettings
from app.settings.engine import RemoteSettings
from app.settings.modes import ChatSettings, ReactSettings, ReadySettings, SuggestSettings
from engine.messages import Device, Residency

CHARS_PER_TOKEN = 4  # of English, about; other scripts have fewer


class ProfileSettings(Group):
    """What differs while a program is in front, or with a keyboard. None: as in the settings."""

    applications: tuple[Name, ...] = Field(
        default=(), max_length=64,
        title="Programs",
        description="Names such as firefox or code; * stands for anything. Thock never reads window titles.",
    )  # fmt: skip
    keyboards: tuple[Name, ...] = Field(
        default=(), max_length=16,
        title="Keyboards",
        description="Product names, serial numbers or VID:PID; * stands for anything.",
    )  # fmt: skip
    off: bool = Field(
        default=False,
        title="Off",
        description="Read no keys and show nothing.",
    )
    mode: ModeName | None = Field(
        default=None,
        title="Mode",
        description="What to do with the keys.",
    )
    persona: Name | None = Field(
        default=None,
        title="Persona",
        description="Who answers in chat mode.",
    )
    layout: Annotated[str, AfterValidator(known_layout)] | None = Field(
        default=None, max_length=32,
        title="Keyboard layout",
        description="How the operating system reads the keys.",
    )  # fmt: skip
    lights: bool | None = Field(
        default=None,
        title="Lights",
        description="Whether the companion uses the lights.",
    )


class Settings(Group):
    """The whole tree. `effective` gives what holds while a profile is chosen."""

    mode: ModeName = Field(
        default=ModeName.SUGGEST,
        title="Mode",
        description="What to do with the keys: suggest words, answer questions, or show moods.",
        json_schema_extra={"page": Page.COMPANION},
    )
    keyboard: str = Field(
        default="auto", min_length=1, max_length=256,
        title="Keyboard",
        description="auto: the first keyboard with the Thock module. virtual: one inside this program. "
        "Else the place, serial number or path of a device.",
        json_schema_extra={"page": Page.KEYBOARD},
    )  # fmt: skip
    layout: Annotated[str, AfterValidator(known_layout)] = Field(
        default="us", max_length=32,
        title="Keyboard layout",
        description="How the operating system reads the keys.",
        json_schema_extra={"page": Page.KEYBOARD},
    )  # fmt: skip
    key_repeat_s: float = Field(
        default=0.4, ge=0.15, le=5,
        title="Key repeat delay",
        description="A key held this long may have been repeated by the system, unknown how often.",
        json_schema_extra={"page": Page.KEYBOARD, "unit": "s"},
    )  # fmt: skip
    language: Language = Field(
        default=system_language(),
        title="Language",
        description="Of the keyboard's display, the menu and this window.",
        json_schema_extra={"page": Page.GENERAL},
    )
    model: Path | None = Field(
        default=None,
        title="Model",
        description="Name of an installed model, or a GGUF file or Hugging Face folder.",
        json_schema_extra={"page": Page.ENGINE},
    )
    max_context: int = Field(
        default=2048, ge=256, le=1 << 17,
        title="Context length",
        description="How much text the model may see at once; longer takes more memory.",
        json_schema_extra={"page": Page.ENGINE, "unit": "tokens"},
    )  # fmt: skip
    engine: Device = Field(
        default=Device.AUTO,
        title="Computed by",
        description="Auto takes the graphics card if it can run the model, else the processor.",
        json_schema_extra={"page": Page.ENGINE},
    )
    residency: Residency = Field(
        default=Residency.LAUNCH,
        title="Program on the graphics card",
        description="Kept while you type it answers sooner; started for each answer it leaves the card free "
        "in between. Always is for a card without a display.",
        json_schema_extra={"page": Page.ENGINE},
    )
    remote: RemoteSettings = Field(
        default=RemoteSettings(), title="Server", json_schema_extra={"page": Page.ENGINE}
    )
    context_chars: int = Field(
        default=4096, ge=64, le=8192,
        title="Remembered typing",
        description="So much of your typing is kept in memory at most: 4 characters for each token that "
        "suggestions see, and never more than this.",
        json_schema_extra={"page": Page.PRIVACY, "unit": "characters"},
    )  # fmt: skip
    macros: tuple[Name, ...] = Field(
        default=(), max_length=128,
        title="Names of macro keys",
        description="From the first macro of the keymap on. The model is told them when you press one.",
        json_schema_extra={"page": Page.KEYBOARD},
    )  # fmt: skip
    idle_wipe_s: float = Field(
        default=300, ge=10, le=86_400,
        title="Forget after",
        description="Everything typed and answered is wiped after so long without a key.",
        json_schema_extra={"page": Page.PRIVACY, "unit": "s"},
    )  # fmt: skip
    pause_when_locked: bool = Field(
        default=True,
        title="Pause while the screen is locked",
        description="No keys are read while the session is locked or the computer sleeps.",
        json_schema_extra={"page": Page.PRIVACY},
    )
    suggest: SuggestSettings = Field(
        default=SuggestSettings(), title="Suggestions", json_schema_extra={"page": Page.COMPANION}
    )
    chat: ChatSettings = Field(
        default=ChatSettings(), title="Chat", json_schema_extra={"page": Page.COMPANION}
    )
    react: ReactSettings = Field(
        default=ReactSettings(), title="Moods", json_schema_extra={"page": Page.COMPANION}
    )
    ready: ReadySettings = Field(
        default=ReadySettings(), title="Ready answers", json_schema_extra={"page": Page.ENGINE}
    )
    display: DisplaySettings = Field(
        default=DisplaySettings(), title="Display", json_schema_extra={"page": Page.DISPLAY}
    )
    lights: LightsSettings = Field(
        default=LightsSettings(), title="Lights", json_schema_extra={"page": Page.DISPLAY}
    )
    hotkeys: HotkeySettings = Field(
        default=HotkeySettings(), title="Hotkeys", json_schema_extra={"page": Page.HOTKEYS}
    )
    profiles: dict[Name, ProfileSettings] = Field(
        default={}, max_length=64,
        title="Profiles",
        description="Other settings for a program or a keyboard.",
        json_schema_extra={"page": Page.PROFILES},
    )  # fmt: skip
    general: GeneralSettings = Field(
        default=GeneralSettings(), title="General", json_schema_extra={"page": Page.GENERAL}
    )

    @property
    def kept_chars(self) -> int:
        """Characters of typing to be kept in memory: as many as suggestions need, if so many are allowed."""
        return min(self.context_chars, CHARS_PER_TOKEN * self.suggest.context_tokens)
