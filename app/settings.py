# SPDX-License-Identifier: Apache-2.0
"""Everything that a person can set, with the defaults. Nothing is read from or written to a file yet."""

from __future__ import annotations

import enum
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field


class ModeName(enum.StrEnum):
    """The three ways to answer."""

    SUGGEST = "suggest"
    CHAT = "chat"
    REACT = "react"


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class SuggestSettings(_Settings):
    """`interval_s` is the shortest time between two requests: keys that come closer share one."""

    count: int = Field(default=3, ge=1, le=3)
    interval_s: float = Field(default=0.04, ge=0, le=2)


class ChatSettings(_Settings):
    """Of the chat so far, at most `history_turns` questions with their answers and `history_chars` in all
    are kept. `reading_speed` is in characters a second.
    """

    question_chars: int = Field(default=2000, ge=16, le=4000)
    history_turns: int = Field(default=3, ge=0, le=16)
    history_chars: int = Field(default=2000, ge=0, le=16_000)
    max_tokens: int = Field(default=96, ge=1, le=1024)
    reading_speed: float = Field(default=15, ge=4, le=60)


class ReactSettings(_Settings):
    """A mood is asked for after `pause_s` without a key, and changes once in `interval_s` at most."""

    pause_s: float = Field(default=1.0, ge=0.2, le=30)
    interval_s: float = Field(default=1.0, ge=1, le=60)


class Settings(_Settings):
    """`context_chars` bounds what is kept of the typing: 512 are about 128 tokens of English.

    A key held for `key_repeat_s` or longer may have been repeated by the system, unknown how often.
    """

    mode: ModeName = ModeName.SUGGEST
    layout: str = "us"
    language: str = "en"
    model: Path | None = None
    max_context: int = Field(default=2048, ge=256, le=1 << 17)
    context_chars: int = Field(default=512, ge=64, le=8192)
    key_repeat_s: float = Field(default=0.4, ge=0.15, le=5)
    idle_wipe_s: float = Field(default=300, ge=10, le=86_400)
    suggest: SuggestSettings = SuggestSettings()
    chat: ChatSettings = ChatSettings()
    react: ReactSettings = ReactSettings()
