# SPDX-License-Identifier: Apache-2.0
"""Settings of what the keyboard shows, of hotkeys, and of the desktop app."""

from __future__ import annotations

from pydantic import Field

from app.settings.base import (
    LOOPBACK,
    TIME_OF_DAY,
    Appearance,
    Group,
    LogLevel,
    TextSize,
    TrayInk,
)


class DisplaySettings(Group):
    """The keyboard's display."""

    text_size: TextSize = Field(
        default=TextSize.AUTO,
        title="Size of drawn text",
        description="Large is easier to read, small holds more. Chinese and letters with accents are drawn; "
        "English stands in the keyboard's own letters.",
    )
    off_s: float = Field(
        default=120, ge=10, le=3600,
        title="Dark after",
        description="The display and the lights go dark after so long without a key, whatever they show.",
        json_schema_extra={"unit": "s"},
    )  # fmt: skip


class LightsSettings(Group):
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
    stock: bool = Field(
        default=True,
        title="Keyboards without the Thock module",
        description="Use the lights of a keyboard with VIA or Vial when none with the Thock module is there. "
        "What you had set comes back at the end.",
    )
    openrgb: bool = Field(
        default=False,
        title="OpenRGB",
        description="Use lights of other makers too, through the program OpenRGB with its SDK server on.",
    )
    openrgb_host: str = Field(
        default="127.0.0.1", pattern=LOOPBACK,
        title="Address of OpenRGB",
        description="An address of this computer: Thock talks to no other.",
    )  # fmt: skip
    openrgb_port: int = Field(
        default=6742, ge=1, le=65_535,
        title="Port of OpenRGB",
        description="As its settings name it.",
    )  # fmt: skip


class HotkeySettings(Group):
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


class GeneralSettings(Group):
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
