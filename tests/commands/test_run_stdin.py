# SPDX-License-Identifier: Apache-2.0
"""`thock run --stdin`: one whole answer a line, and an end whatever happens."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path

import pytest

from app.commands.line_answers import LineAnswers
from app.companion.core import Mailbox
from app.companion.run import run_companion
from app.settings import ModeName, Settings
from engine.client import FAKE_ENGINE, EngineClient
from firmware_bridge.keys.layout import load_layout
from firmware_bridge.link import Link
from firmware_bridge.transport.virtual import VirtualKeyboard, VirtualTransport


def answers(lines: Iterable[str], mode: ModeName, say: list[str] | None = None) -> LineAnswers:
    """Runs the companion with the scripted engine until all lines were answered."""
    said = [] if say is None else say
    board = VirtualKeyboard()
    mailbox = Mailbox()
    stop = threading.Event()
    typist = LineAnswers(board, load_layout("us"), said.append, stop)
    engine = EngineClient(mailbox.post, mailbox.engine_changed, argv=FAKE_ENGINE)
    link = Link(lambda: VirtualTransport(board), mailbox.post)
    threading.Thread(target=typist.run, args=(lines,), daemon=True).start()
    settings = Settings(mode=mode, model=Path("fake"))
    run_companion(mailbox, link, engine, settings, stop, [typist])
    return typist


def test_each_line_gets_its_whole_answer() -> None:
    said: list[str] = []
    typist = answers(["What is this?\n", "\n", "And that?"], ModeName.CHAT, said)
    assert not typist.failed
    assert len(said) == 2
    assert all("This is a scripted reply" in answer for answer in said)


def test_suggestions_of_two_lines_are_independent() -> None:
    said: list[str] = []
    assert not answers(["The quick \n", "The quick \n"], ModeName.SUGGEST, said).failed
    assert len(said) == 2
    assert said[0] == said[1]


def test_a_line_that_cannot_be_typed_is_named_and_the_next_one_answered() -> None:
    said: list[str] = []
    typist = answers(["caf\u00e9\n", "What is this?\n"], ModeName.CHAT, said)
    assert typist.failed
    assert said[0].startswith("line 1: character 4")
    assert "caf" not in said[0]
    assert "scripted" in said[1]


@pytest.mark.timeout(60)
def test_nobody_reading_the_answers_ends_it() -> None:
    class Closed(list[str]):
        def append(self, _answer: str) -> None:
            raise BrokenPipeError

    assert answers(["What is this?\n", "And that?\n"], ModeName.CHAT, Closed()).failed
