# SPDX-License-Identifier: Apache-2.0
"""How values of a choice are called, where their own name is not enough. English; shown through `tr`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from app.i18n import Language, Translate
from app.places import Place as Place
from app.settings import Appearance, LogLevel, ModeName, TextSize, TrayInk
from app.settings_window.fields import Choice
from engine.messages import Device, Residency

# A language is called by its own name in every language.
_NATIVE: Mapping[Language, str] = MappingProxyType(
    {Language.EN: "English", Language.ZH_CN: "简体中文"}
)
# By type, because members of two enums with the same value are equal.
LABELS: Mapping[type, Mapping[object, str]] = MappingProxyType(
    {
        ModeName: {
            ModeName.SUGGEST: "Suggest words",
            ModeName.CHAT: "Answer questions",
            ModeName.REACT: "Show moods",
        },
        Appearance: {Appearance.SYSTEM: "As the system"},
        TextSize: {TextSize.AUTO: "As it fits"},
        TrayInk: {TrayInk.AUTO: "As the panel"},
        Device: {
            Device.AUTO: "Automatic",
            Device.CPU: "Processor",
            Device.CUDA: "Graphics card",
            Device.REMOTE: "Server",
        },
        Residency: {
            Residency.LAUNCH: "Started for each answer",
            Residency.LEASE: "Kept while I type",
            Residency.RESIDENT: "Always there",
        },
        LogLevel: {
            LogLevel.DEBUG: "Everything",
            LogLevel.INFO: "States",
            LogLevel.WARNING: "Warnings and errors",
            LogLevel.ERROR: "Errors only",
        },
    }
)


def choice_label(tr: Translate, choice: Choice) -> str:
    """The choice in the person's language."""
    if isinstance(choice.value, Language):
        return _NATIVE[choice.value]
    if type(choice.value) is int:
        return str(choice.value)
    return tr(english_label(choice))


def english_label(choice: Choice) -> str:
    """The text of a choice that goes through `tr`."""
    labels = LABELS.get(type(choice.value), {})
    return labels.get(choice.value, choice.label)


def unit_text(tr: Translate, unit: str) -> str:
    """The unit behind a number, with its space; empty for none."""
    return f" {tr(unit)}" if unit else ""


def place_title(tr: Translate, place: Place) -> str:
    """What a page is called."""
    match place:
        case Place.STATUS:
            return tr("Status")
        case Place.KEYBOARD:
            return tr("Keyboard")
        case Place.COMPANION:
            return tr("Companion")
        case Place.ENGINE:
            return tr("Model & engine")
        case Place.DISPLAY:
            return tr("Display & lights")
        case Place.PRIVACY:
            return tr("Privacy")
        case Place.PROFILES:
            return tr("Profiles")
        case Place.HOTKEYS:
            return tr("Hotkeys")
        case Place.GENERAL:
            return tr("General")
        case Place.DIAGNOSTICS:
            return tr("Diagnostics")
        case Place.ABOUT:
            return tr("About")
