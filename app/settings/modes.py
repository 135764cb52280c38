# SPDX-License-Identifier: Apache-2.0
"""Settings of the three modes, and of answers computed ahead."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from app.settings.base import Group, Name, known_layout


class SuggestSettings(Group):
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
    words: int = Field(
        default=3, ge=1, le=3,
        title="Words of a suggestion",
        description="Once you rest, words may become phrases of so many words.",
        json_schema_extra={"unit": "words"},
    )  # fmt: skip
    context_tokens: Literal[128, 256, 512, 1024] = Field(
        default=128,
        title="Context of suggestions",
        description="How many tokens of your typing the model sees for a suggestion: about 4 characters of "
        "English each. More may fit better; the first suggestion after a jump in the text takes longer.",
        json_schema_extra={"unit": "tokens"},
    )  # fmt: skip
    accept: bool = Field(
        default=False,
        title="Accept key types",
        description="The accept key of the keyboard types the first suggestion, exactly as it is shown. "
        "The keyboard's firmware must allow it too.",
    )
    accept_layout: Annotated[str, AfterValidator(known_layout)] = Field(
        default="us", max_length=32,
        title="Layout in the firmware",
        description="How the firmware types: us, unless its keymap includes another layout. Characters that "
        "would come out as others are not typed.",
    )  # fmt: skip
    learn_words: bool = Field(
        default=False,
        title="Learn my words",
        description="Offer words that you typed before. They are kept in memory until you choose Forget or "
        "quit; nothing that looks like a password is learnt.",
    )
    keep_words: bool = Field(
        default=False,
        title="Keep my words",
        description="Write the learnt words to a file of yours, so that they are there after a restart.",
    )


class ChatSettings(Group):
    """How questions are asked and answers are read."""

    persona: Name = Field(
        default="helper",
        title="Persona",
        description="Who answers: a file of the program or of your own, without .toml.",
    )
    capture: bool = Field(
        default=True,
        title="Capture key",
        description="A capture key in the keyboard's firmware begins a question from any mode: what is typed "
        "then goes to Thock and not to the computer.",
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
    keep_history: bool = Field(
        default=False,
        title="Keep the chat",
        description="Write the remembered questions and answers to a file of yours, so that they are there "
        "after a restart.",
    )
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


class ReadySettings(Group):
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


class ReactSettings(Group):
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
