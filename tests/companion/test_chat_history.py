# SPDX-License-Identifier: Apache-2.0
"""What is kept of a chat, where, and for how long."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.companion.chat_history import ChatHistory
from app.companion.messages import Configure, Forget
from app.companion.own_files import OwnFiles
from app.settings import ChatSettings, ModeName, Settings
from engine.messages import Chat, ReplyFinished, ReplyGrew
from tests.helpers.companion import Desk

KEPT = ChatSettings(keep_history=True)


def history(file: Path | None = None, settings: ChatSettings = KEPT) -> ChatHistory:
    made = ChatHistory(file)
    made.configure(settings)
    return made


def test_without_the_persons_wish_nothing_is_written(tmp_path: Path) -> None:
    file = tmp_path / "chat.json"
    chat = history(file, ChatSettings())
    chat.add("q", "a")
    chat.wipe()
    assert list(chat) == []
    assert not file.exists()


def test_a_kept_chat_outlives_a_wipe_and_a_restart_and_ends_with_forget(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "chat.json"
    chat = history(file)
    chat.add("q", "a")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    chat.wipe()
    assert list(chat) == [("q", "a")]
    chat.wipe()
    chat.add("r", "b")  # it does not forget what was kept
    assert list(history(file)) == [("q", "a"), ("r", "b")]
    chat.forget()
    assert list(chat) == []
    assert not file.exists()


def test_to_turn_it_off_deletes_the_file(tmp_path: Path) -> None:
    file = tmp_path / "chat.json"
    chat = history(file)
    chat.add("q", "a")
    chat.configure(ChatSettings())
    assert not file.exists()
    assert list(chat) == [("q", "a")]  # in memory, as before


@given(
    pairs=st.lists(st.tuples(st.text(max_size=40), st.text(max_size=40)), max_size=12),
    turns=st.integers(0, 5),
    chars=st.integers(0, 100),
)
def test_the_newest_stay_within_the_limits(
    pairs: list[tuple[str, str]], turns: int, chars: int
) -> None:
    chat = history(None, ChatSettings(history_turns=turns, history_chars=chars))
    for question, answer in pairs:
        chat.add(question, answer)
    kept = list(chat)
    assert kept == pairs[len(pairs) - len(kept) :]
    assert len(kept) <= turns
    assert sum(len(q) + len(a) for q, a in kept) <= chars


@pytest.mark.parametrize("data", [b"", b"\xff", b"[", b"[" * 100_000])
@pytest.mark.expected_log("the kept chat was not read")
def test_a_damaged_file_is_an_empty_chat(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "chat.json").write_bytes(data)
    assert list(history(tmp_path / "chat.json")) == []


@pytest.mark.parametrize("data", [b"{}", b"3", b'[["q"]]', b"[[1, 2]]", b'["x", "y"]'])
def test_what_is_no_chat_is_left_out(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "chat.json").write_bytes(data)
    assert list(history(tmp_path / "chat.json")) == []


def test_a_kept_chat_is_there_for_the_next_question_after_a_restart(tmp_path: Path) -> None:
    own = OwnFiles(history=tmp_path / "chat.json")
    settings = Settings(mode=ModeName.CHAT, chat=KEPT)
    first = Desk(settings, own=own)
    first.type("one\n")
    first.post(ReplyGrew(request=first.request, text="Two."))
    first.post(
        ReplyFinished(
            request=first.request, reason="stop", tokens=3, first_token_ms=1, milliseconds=2
        )
    )
    second = Desk(settings, own=own)
    second.type("three\n")
    chat = second.engine.commands[-1]
    assert isinstance(chat, Chat)
    assert [turn.content for turn in chat.turns][1:] == ["one", "Two.", "three"]
    second.post(Forget())
    assert not (tmp_path / "chat.json").exists()
    first.post(Configure(settings.model_copy(update={"chat": ChatSettings()})))
