# SPDX-License-Identifier: Apache-2.0
"""What modes and failures are called on the display."""

from __future__ import annotations

from app.i18n import Translate
from app.settings import ModeName


def mode_name(mode: ModeName, tr: Translate) -> str:
    """The mode in one word."""
    match mode:
        case ModeName.SUGGEST:
            return tr("suggest")
        case ModeName.CHAT:
            return tr("chat")
        case ModeName.REACT:
            return tr("react")


def failure_text(code: str, tr: Translate) -> str:
    """A failure of the engine in a few words; `code` is that of an engine error."""
    match code:
        case "context-overflow":
            return tr("too long for model")
        case "out-of-memory":
            return tr("out of memory")
        case "model-missing":
            return tr("model missing")
        case "model-file":
            return tr("model file damaged")
        case "model-unsupported":
            return tr("model not supported")
        case "chat-template":
            return tr("model cannot chat")
        case "message-too-large":
            return tr("too long for model")
        case "remote-settings":
            return tr("server settings wrong")
        case "remote-unreachable":
            return tr("server not reached")
        case "remote" | "remote-refused" | "remote-answer":
            return tr("server error")
        case "engine-unavailable":
            return tr("engine is busy")
        case _ if code.startswith(("cuda", "device")):
            return tr("graphics card failed")
        case _:
            return tr("engine error")
