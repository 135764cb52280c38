# SPDX-License-Identifier: Apache-2.0
"""Everything that a person can set: names, help, limits, units and defaults, in one place.

Each field carries its English title and help; `page` in its extra says where the settings window shows it
(the fields of a group stand on the group's page), `unit` what its number counts. `app.config` reads and
writes these models as a file.
"""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from app.i18n import Language
from firmware_bridge.keys.layout import load_layout


class ModeName(enum.StrEnum):
    """The three ways to answer."""

    SUGGEST = "suggest"
    CHAT = "chat"
    REACT = "react"


class Page(enum.StrEnum):
    """The pages of the settings window that hold settings."""

    KEYBOARD = "keyboard"
    COMPANION = "companion"
    ENGINE = "engine"
    DISPLAY = "display"
    PRIVACY = "privacy"
    PROFILES = "profiles"
    HOTKEYS = "hotkeys"
    GENERAL = "general"


class Appearance(enum.StrEnum):
    """Colours of the settings window."""

    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


class TextSize(enum.StrEnum):
    """Of text in pixel fonts: 12 pixels high, 10, or whichever suits the display."""

    AUTO = "auto"
    LARGE = "large"
    SMALL = "small"


class TrayInk(enum.StrEnum):
    """Colour of the icon in the panel."""

    AUTO = "auto"
    LIGHT = "light"
    DARK = "dark"


class LogLevel(enum.StrEnum):
    """What the log holds; no level holds anything that was typed or answered."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


TIME_OF_DAY = r"^(?:(?:[01][0-9]|2[0-3]):[0-5][0-9])?$"


def _known_layout(name: str) -> str:
    load_layout(name)  # raises ValueError with the names that there are
    return name


Name = Annotated[str, StringConstraints(min_length=1, max_length=64)]


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class SuggestSettings(_Settings):
    """How the next words are found."""

    count: int = Field(
        default=3, ge=1, le=3,
        title="Number of suggestions",
        description="How many words are offered at a time.",
    )  # fmt: skip
    interval_s: float = Field(
        default=0.04, ge=0, le=2,
        title="Shortest time between two requests",
        description="Keys that come closer together share one request to the model.",
        json_schema_extra={"unit": "s"},
    )  # fmt: skip


class ChatSettings(_Settings):
    """How questions are asked and answers are read."""

    persona: Name = Field(
        default="helper",
        title="Persona",
        description="Who answers: a file of the program or of your own, without .toml.",
    )
    question_chars: int = Field(
        default=2000, ge=16, le=4000,
        title="Longest question",
        description="What is typed beyond this length is not part of the question.",
        json_schema_extra={"unit": "characters"},
    )  # fmt: skip
    history_turns: int = Field(
        default=3, ge=0, le=16,
        title="Remembered questions",
        description="How many earlier questions and answers the model sees with the next question.",
    )  # fmt: skip
    history_chars: int = Field(
        default=2000, ge=0, le=16_000,
        title="Length of the remembered chat",
        description="Older questions and answers are forgotten when the chat grows longer than this.",
        json_schema_extra={"unit": "characters"},
    )  # fmt: skip
    max_tokens: int = Field(
        default=96, ge=1, le=1024,
        title="Longest answer",
        description="The model stops after so many tokens; an English word has one or two.",
        json_schema_extra={"unit": "tokens"},
    )  # fmt: skip
    reading_speed: float = Field(
        default=15, ge=4, le=60,
        title="Reading speed",
        description="How fast the pages of an answer follow each other on the display.",
        json_schema_extra={"unit": "characters/s"},
    )  # fmt: skip


class ReadySettings(_Settings):
    """Answers that are computed before the question is asked."""

    enabled: bool = Field(
        default=True,
        title="Compute answers ahead",
        description="While you type, so that they are there when you ask. It takes power for answers that "
        "nobody wants.",
    )
    tokens: int = Field(
        default=8, ge=0, le=64,
        title="Length of what is ready",
        description="How many tokens after the first are computed once you rest.",
        json_schema_extra={"unit": "tokens"},
    )  # fmt: skip
    rest_s: float = Field(
        default=0.25, ge=0, le=5,
        title="Rest before the second token",
        description="The first token is computed after every key, the others after so long without one.",
        json_schema_extra={"unit": "s"},
    )  # fmt: skip


class ProfileSettings(_Settings):
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
    layout: Annotated[str, AfterValidator(_known_layout)] | None = Field(
        default=None, max_length=32,
        title="Keyboard layout",
        description="How the operating system reads the keys.",
    )  # fmt: skip
    lights: bool | None = Field(
        default=None,
        title="Lights",
        description="Whether the companion uses the lights.",
    )


class ReactSettings(_Settings):
    """When the mood on the display changes."""

    pause_s: float = Field(
        default=1.0, ge=0.2, le=30,
        title="Pause before a mood",
        description="The model is asked for a mood after so long without a key.",
        json_schema_extra={"unit": "s"},
    )  # fmt: skip
    interval_s: float = Field(
        default=1.0, ge=1, le=60,
        title="Shortest time between two moods",
        description="The mood changes once in this time at most.",
        json_schema_extra={"unit": "s"},
    )  # fmt: skip


class DisplaySettings(_Settings):
    """The keyboard's display."""

    text_size: TextSize = Field(
        default=TextSize.AUTO,
        title="Size of Chinese text",
        description="Large is easier to read, small holds more. English stands in the keyboard's own letters.",
    )
    off_s: float = Field(
        default=120, ge=10, le=3600,
        title="Dark after",
        description="The display and the lights go dark after so long without a key, whatever they show.",
        json_schema_extra={"unit": "s"},
    )  # fmt: skip


class LightsSettings(_Settings):
    """The keyboard's lights. They lie over your own colours, which come back by themselves."""

    enabled: bool = Field(
        default=True,
        title="Use the lights",
        description="Colours for what the model does, and for moods.",
    )
    brightness: int = Field(
        default=100, ge=5, le=100,
        title="Brightness",
        description="Of the companion's colours; your own are left as they are.",
        json_schema_extra={"unit": "%"},
    )  # fmt: skip
    night_from: str = Field(
        default="", pattern=TIME_OF_DAY,
        title="Dark from",
        description="No lights from this time of the day on, such as 22:30. Empty: lights at all hours.",
    )  # fmt: skip
    night_to: str = Field(
        default="", pattern=TIME_OF_DAY,
        title="Dark until",
        description="Lights again from this time of the day on, such as 07:00.",
    )  # fmt: skip


class HotkeySettings(_Settings):
    """Shortcuts of the operating system. The companion keys of the keyboard need none of them."""

    enabled: bool = Field(
        default=False,
        title="Use shortcuts of the operating system",
        description="Only for keyboards without companion keys. The system tells Thock of these "
        "combinations and of nothing else where it can do so.",
    )
    ask: str = Field(
        default="<ctrl>+<alt>+a", max_length=64,
        title="Ask",
        description="Opens the window to ask a question. Empty: no shortcut.",
    )  # fmt: skip
    pause: str = Field(
        default="<ctrl>+<alt>+p", max_length=64,
        title="Pause or resume",
        description="Stops and starts the reading of keys. Empty: no shortcut.",
    )  # fmt: skip
    cancel: str = Field(
        default="", max_length=64,
        title="Cancel",
        description="Stops the answer under way. Empty: no shortcut.",
    )  # fmt: skip
    next_mode: str = Field(
        default="", max_length=64,
        title="Next mode",
        description="Changes between suggestions, chat and moods. Empty: no shortcut.",
    )  # fmt: skip


class GeneralSettings(_Settings):
    """The desktop app itself."""

    appearance: Appearance = Field(
        default=Appearance.SYSTEM,
        title="Appearance",
        description="Colours of this window.",
    )
    autostart: bool = Field(
        default=False,
        title="Start with the computer",
        description="Start Thock when you log in.",
    )
    tray_icon: TrayInk = Field(
        default=TrayInk.AUTO,
        title="Tray icon",
        description="Light for a dark panel, dark for a light one.",
    )
    notifications: bool = Field(
        default=True,
        title="Notifications",
        description="Tell when the keyboard or the model is lost. No notification holds an answer.",
    )
    log_level: LogLevel = Field(
        default=LogLevel.WARNING,
        title="Detail of the log",
        description="What goes to the log file. No level holds anything that you type.",
    )


class Settings(_Settings):
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
        "Else the place, serial number or path of a device. Takes effect at the next start.",
        json_schema_extra={"page": Page.KEYBOARD},
    )  # fmt: skip
    layout: Annotated[str, AfterValidator(_known_layout)] = Field(
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
        default=Language.EN,
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
    context_chars: int = Field(
        default=512, ge=64, le=8192,
        title="Remembered typing",
        description="How much of your typing is kept in memory; 512 characters are about 128 tokens of "
        "English.",
        json_schema_extra={"page": Page.PRIVACY, "unit": "characters"},
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
