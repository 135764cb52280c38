# SPDX-License-Identifier: Apache-2.0
"""Chat mode, told as the whole list of what goes out."""

from __future__ import annotations

import pytest

from app.companion.messages import Ask, CancelReply, SetMode
from app.settings import ChatSettings, ModeName, Settings
from engine.client import EngineState
from engine.messages import Cancel, Chat, Failed, ReplyFinished, ReplyGrew
from firmware_bridge.keys.usage import Usage
from tests.helpers.companion import Desk

THINKING = "lights 0,57,89 breathe"
STREAMING = "lights 43,90,116 solid"
READY = "lights 0,79,57 solid"


def picture(*rows: str) -> str:
    return "\n".join(f"|{row:<21}|" for row in rows)


def chatting(chat: ChatSettings | None = None, **options: int) -> Desk:
    settings = Settings(mode=ModeName.CHAT, chat=chat or ChatSettings())
    return Desk(settings, **options)


def grew(desk: Desk, text: str, request: int | None = None) -> None:
    desk.post(ReplyGrew(request=desk.request if request is None else request, text=text))


def finished(desk: Desk, reason: str = "stop") -> None:
    desk.post(
        ReplyFinished(
            request=desk.request, reason=reason, tokens=3, first_token_ms=1, milliseconds=2
        )
    )


def chats(desk: Desk) -> list[list[tuple[str, str]]]:
    """The turns of every Chat that was sent, as (role, content)."""
    return [
        [(turn.role, turn.content) for turn in command.turns]
        for command in desk.engine.commands
        if isinstance(command, Chat)
    ]


def test_a_question_is_shown_as_it_is_typed_and_its_reply_as_it_streams() -> None:
    desk = chatting()
    assert desk.picture == picture("chat", "Type a question.", "Enter asks,", "Esc cancels.")
    desk.type("Hi")
    assert desk.take() == [picture("> H_", "", "", ""), picture("> Hi_", "", "", "")]
    desk.type("\n", gap_s=1)
    assert desk.take() == [
        "chat 1 'Hi'",
        "status thinking",
        picture("> Hi", "", "", "..."),
        THINKING,
    ]
    grew(desk, "Hello")
    assert desk.take() == ["status streaming", picture("Hello", "", "", ""), STREAMING]
    grew(desk, " there, how are you?")
    finished(desk)
    assert desk.take() == [
        picture("Hello there, how are", "you?", "", ""),
        "status listening",
    ]
    desk.advance(1)
    assert desk.take() == [READY]
    assert desk.state.reply == "Hello there, how are you?"


def test_the_next_key_after_a_reply_begins_the_next_question() -> None:
    desk = chatting()
    desk.type("Hi\n")
    grew(desk, "Hello")
    finished(desk)
    desk.type("a")
    assert desk.picture == picture("> a_", "", "", "")


def test_the_model_gets_system_history_and_question() -> None:
    desk = chatting()
    desk.type("one\n")
    grew(desk, "1")
    finished(desk)
    desk.type("two\n")
    system, *rest = chats(desk)[-1]
    assert system[0] == "system"
    assert rest == [("user", "one"), ("assistant", "1"), ("user", "two")]


def test_history_is_bounded_in_turns_and_characters() -> None:
    desk = chatting(ChatSettings(history_turns=2, history_chars=20))
    for question, reply in (("a", "1"), ("b", "2"), ("c", "3")):
        desk.type(question + "\n")
        grew(desk, reply)
        finished(desk)
    desk.type("d\n")
    assert [content for _, content in chats(desk)[-1][1:]] == ["b", "2", "c", "3", "d"]
    grew(desk, "x" * 18)
    finished(desk)
    desk.type("e\n")
    assert [content for _, content in chats(desk)[-1][1:]] == ["d", "x" * 18, "e"]
    grew(desk, "y" * 30)
    finished(desk)
    desk.type("f\n")
    assert [content for _, content in chats(desk)[-1][1:]] == ["f"]


def test_escape_stops_the_reply_and_what_comes_after_is_ignored() -> None:
    desk = chatting()
    desk.type("Hi\n")
    grew(desk, "Hello")
    desk.press(Usage.ESCAPE)
    assert desk.engine.commands[-1] == Cancel(request=1)
    assert desk.picture.startswith("|chat ")
    grew(desk, " there", request=1)
    desk.post(
        ReplyFinished(request=1, reason="cancelled", tokens=1, first_token_ms=1, milliseconds=2)
    )
    assert desk.picture.startswith("|chat ")
    desk.type("again\n")
    assert [content for _, content in chats(desk)[-1][1:]] == ["again"]


def test_escape_clears_a_question_that_was_not_asked() -> None:
    desk = chatting()
    desk.type("Hi")
    desk.press(Usage.ESCAPE)
    assert desk.picture.startswith("|chat ")
    assert desk.engine.commands == []


def test_a_new_question_replaces_the_reply_under_way() -> None:
    desk = chatting()
    desk.type("one\n")
    grew(desk, "first")
    desk.type("two\n")
    assert [type(c) for c in desk.engine.commands] == [Chat, Cancel, Chat]
    grew(desk, " stale", request=1)
    assert "stale" not in desk.picture
    grew(desk, "second")
    assert desk.picture.startswith("|second ")


def test_a_question_begun_during_a_reply_is_seen_in_the_last_line() -> None:
    desk = chatting()
    desk.type("one\n")
    desk.type("t")
    assert desk.picture == picture("> one", "", "", "> t_")
    grew(desk, "The first reply that is longer than a line")
    desk.type("wo")
    assert desk.picture == picture("The first reply that", "is longer than a", "line", "> two_")
    finished(desk)
    assert desk.picture.endswith(picture("> two_"))
    desk.type("\n")
    assert [content for _, content in chats(desk)[-1][-1:]] == ["two"]


def test_pages_turn_after_the_time_it_takes_to_read_them() -> None:
    desk = chatting(ChatSettings(reading_speed=20))
    desk.type("Hi\n")
    words = " ".join(f"word{i:02}" for i in range(20))
    grew(desk, words)
    first = picture(
        "word00 word01 word02", "word03 word04 word05", "word06 word07 word08",
        "word09 word10 word11v",
    )  # fmt: skip
    assert desk.picture == first
    desk.advance(3.9)  # 80 characters at 20 a second are 4 s
    assert desk.picture == first
    desk.advance(0.2)
    assert desk.picture == picture(
        "word12 word13 word14", "word15 word16 word17", "word18 word19", ""
    )
    finished(desk)
    desk.advance(60)
    assert desk.picture.startswith("|word12 ")


def test_enter_without_a_question_turns_the_page() -> None:
    desk = chatting()
    desk.type("Hi\n")
    grew(desk, " ".join(f"word{i:02}" for i in range(20)))
    finished(desk)
    desk.type("\n", gap_s=0)
    assert desk.picture.startswith("|word12 ")
    desk.press_macro(1)
    assert desk.picture.startswith("|word00 ")
    assert len(chats(desk)) == 1


def test_a_page_that_grows_waits_for_its_reader() -> None:
    """The second page comes into being while the first was shown long enough already."""
    desk = chatting()
    desk.type("Hi\n")
    grew(desk, "short")
    desk.advance(30)
    grew(desk, " " + " ".join(f"word{i:02}" for i in range(15)))
    assert desk.picture.startswith("|short word00 ")
    desk.advance(1)
    assert desk.picture.startswith("|short word00 ")
    desk.advance(10)
    assert desk.picture.startswith("|word")


def test_an_empty_reply_is_said_to_be_one() -> None:
    desk = chatting()
    desk.type("Hi\n")
    finished(desk)
    assert desk.picture == picture("(no answer)", "", "", "")


def test_a_tall_display_keeps_the_question_above_the_reply() -> None:
    desk = chatting(rows=8)
    desk.type("What is this all about?\n")
    grew(desk, "A reply.")
    assert desk.picture == picture("> What is this all ~", "A reply.", *[""] * 6)


def test_backspace_edits_the_question_and_arrows_leave_it_alone() -> None:
    desk = chatting()
    desk.type("Hix\b")
    desk.press(Usage.LEFT)
    desk.press(Usage.TAB)
    assert desk.picture.startswith("|> Hi_ ")


def test_blank_questions_are_not_asked() -> None:
    desk = chatting()
    desk.type("  \n\n")
    assert desk.engine.commands == []


def test_a_question_asked_before_the_engine_came_is_sent_when_it_comes() -> None:
    desk = chatting(is_ready=False)
    desk.engine_is(EngineState.LOADING)
    desk.type("Hi\n")
    assert chats(desk) == []
    desk.engine_is(EngineState.READY)
    assert [content for _, content in chats(desk)[-1][1:]] == ["Hi"]
    assert desk.picture == picture("> Hi", "", "", "...")


def test_the_engine_dies_in_the_middle_of_a_reply() -> None:
    desk = chatting()
    desk.type("Hi\n")
    grew(desk, "Hel")
    desk.advance(1)
    desk.take()
    desk.post(Failed(request=1, code="engine-died", message="the engine ended"))
    desk.engine_is(EngineState.RESTARTING, "it was killed by SIGKILL\nlast words")
    assert desk.take()[-2:] == ["status error", picture("engine stopped,", "restarting", "", "")]
    desk.advance(1)
    assert desk.take() == ["lights 107,47,0 solid"]
    assert desk.state.engine_detail == "it was killed by SIGKILL"
    desk.type("next")
    assert desk.picture == picture("engine stopped,", "restarting", "", "next_")
    desk.engine_is(EngineState.LOADING)
    assert desk.picture == picture("loading model", "", "", "next_")
    desk.engine_is(EngineState.READY)
    assert desk.picture == picture("> next_", "", "", "")
    assert len(chats(desk)) == 1, "the question that may have killed it is not asked again"
    desk.type("\n")
    grew(desk, "Here.")
    assert desk.picture.startswith("|Here. ")


@pytest.mark.expected_log("could not answer: out-of-memory")
def test_a_failed_question_says_why() -> None:
    desk = chatting()
    desk.type("Hi\n")
    desk.post(Failed(request=1, code="out-of-memory", message="2 GB needed, 1 GB free"))
    assert desk.picture == picture("chat", "Type a question.", "Enter asks,", "out of memory")


def test_ask_from_outside_goes_to_chat_and_asks() -> None:
    desk = Desk()
    desk.type("typed in suggest")
    desk.post(Ask("What?"))
    assert desk.state.mode is ModeName.CHAT
    assert [content for _, content in chats(desk)[-1][1:]] == ["What?"]


def test_a_question_from_outside_is_bounded_and_not_blank() -> None:
    for text in ("", "  ", "x" * 4001):
        with pytest.raises(ValueError, match="1 to 4000 characters") as caught:
            Ask(text)
        assert "xxx" not in str(caught.value)
    assert "What" not in repr(Ask("What?"))


def test_changing_the_mode_in_the_middle_of_a_reply_cancels_it() -> None:
    desk = chatting()
    desk.type("Hi\n")
    grew(desk, "Hello")
    desk.post(SetMode(ModeName.SUGGEST))
    assert desk.engine.commands[-1] == Cancel(request=1)
    grew(desk, " there", request=1)
    desk.post(SetMode(ModeName.CHAT))
    desk.advance(5)
    assert desk.picture.startswith("|chat ")


def test_what_is_typed_in_chat_is_not_context_for_suggestions() -> None:
    desk = Desk()
    desk.type("before")
    desk.post(SetMode(ModeName.CHAT))
    desk.type("question")
    desk.post(SetMode(ModeName.SUGGEST))
    desk.advance(5)
    assert desk.picture == picture("_", "", "", "")


def test_cancel_from_outside_stops_the_reply() -> None:
    desk = chatting()
    desk.type("Hi\n")
    desk.post(CancelReply())
    assert desk.engine.commands[-1] == Cancel(request=1)
    assert desk.picture.startswith("|chat ")


def test_the_first_token_latency_runs_from_the_enter_key() -> None:
    desk = chatting()
    desk.type("Hi\n", gap_s=0.2)
    grew(desk, "Hello")
    assert desk.state.latency is not None
    assert desk.state.latency.mode is ModeName.CHAT
    assert desk.state.latency.milliseconds == pytest.approx(200)
