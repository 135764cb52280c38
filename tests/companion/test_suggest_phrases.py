# SPDX-License-Identifier: Apache-2.0
"""Suggest mode beyond single words: phrases at rest, the cursor inside the text, macros, own words."""

from __future__ import annotations

import pytest

from app.companion.messages import Forget, SetMode
from app.settings import ModeName, Settings, SuggestSettings
from engine.messages import Cancel, Suggest
from firmware_bridge.keys.usage import Usage
from tests.helpers.companion import Desk


def picture(*rows: str) -> str:
    return "\n".join(f"|{row:<21}|" for row in rows)


# ------------------------------------------------------------------------------------- phrases


def asked(desk: Desk) -> list[tuple[str, int]]:
    """Texts and longest phrases that were asked for."""
    return [(c.text, c.words) for c in desk.engine.commands if isinstance(c, Suggest)]


def test_phrases_are_asked_for_when_the_person_rests() -> None:
    desk = Desk()
    desk.type("New", gap_s=0.1)
    desk.suggest((" York", 0.5), (" year", 0.2))
    assert asked(desk)[-1] == ("New", 1)
    desk.advance(0.11)
    assert asked(desk)[-1] == ("New", 3)
    assert "york" in desk.picture.lower()
    desk.suggest((" York City", 0.4), (" year", 0.2))
    assert "|York City" in desk.picture
    assert "|year" in desk.picture
    desk.advance(5)
    assert asked(desk)[-1] == ("New", 3), "once for one text"


def test_a_key_comes_before_the_phrases() -> None:
    desk = Desk()
    desk.type("New", gap_s=0.05)
    desk.suggest((" York", 0.5))
    desk.type(" ", gap_s=0.05)
    assert asked(desk)[-1] == ("New ", 1)
    desk.advance(1)
    assert asked(desk)[-1] == ("New ", 1), "nothing to go on from yet"


def test_phrases_for_a_text_that_is_no_more_are_not_shown() -> None:
    desk = Desk()
    desk.type("New")
    desk.suggest((" York", 0.5))
    desk.advance(1)
    phrases = desk.request
    desk.type(" ")
    desk.suggest((" York City", 0.4), request=phrases)
    assert "City" not in desk.picture


def test_with_single_words_set_nothing_more_is_asked() -> None:
    desk = Desk(Settings(suggest=SuggestSettings(words=1)))
    desk.type("New")
    desk.suggest((" York", 0.5))
    desk.advance(1)
    assert asked(desk)[-1] == ("New", 1)


def test_leaving_cancels_the_phrases_too() -> None:
    desk = Desk()
    desk.type("New")
    desk.suggest((" York", 0.5))
    desk.advance(1)
    phrases = desk.request
    desk.post(SetMode(ModeName.REACT))
    assert Cancel(request=phrases) in desk.engine.commands


def test_a_phrase_that_has_no_room_loses_its_last_words() -> None:
    desk = Desk()
    desk.type("in", gap_s=0.3)
    desk.suggest((" consequence of which", 0.5), (" consequence", 0.4))
    assert desk.picture.splitlines()[1] == "|consequence of       |"
    assert desk.picture.splitlines()[2] == "|consequence       40%|"


# ------------------------------------------------------------------------ editing, macros, words


def test_inside_a_word_nothing_is_suggested() -> None:
    desk = Desk()
    desk.type("hello")
    desk.suggest((" there", 0.5))
    desk.press(Usage.LEFT)
    assert desk.engine.commands[-1] == Cancel(request=5) or asked(desk)[-1] == ("hello", 1)
    assert desk.picture == picture("hell_o", "", "", "")
    desk.type("\b\b\b\b")
    desk.advance(1)
    assert asked(desk)[-1] == ("hello", 1)


def test_a_cursor_between_words_gets_suggestions_for_what_stands_before_it() -> None:
    desk = Desk()
    desk.type("go home")
    desk.down(Usage.LEFT_CONTROL)
    desk.press(Usage.LEFT)
    desk.up(Usage.LEFT_CONTROL)
    desk.type("back ")
    assert asked(desk)[-1][0] != "go back "  # the rest of a word follows
    desk.press(Usage.LEFT)
    desk.advance(0.1)
    assert asked(desk)[-1] == ("go back", 1)


@pytest.mark.parametrize(
    ("number", "text"), [(16, "_"), (148, "_"), (144, "hello_"), (5, "hello_")]
)
def test_a_macro_that_may_type_ends_the_text(number: int, text: str) -> None:
    desk = Desk()
    desk.type("hello")
    desk.press_macro(number)
    assert desk.picture == picture(text, "", "", "")


def test_own_words_are_offered_beside_those_of_the_model() -> None:
    desk = Desk(Settings(suggest=SuggestSettings(learn_words=True, interval_s=2)))
    desk.type("the Kestrel, the Kestrel, the Kes")
    desk.advance(2)
    desk.suggest(("ton", 0.4), ("wick", 0.2), ("sler", 0.1))
    assert [row.split()[0].strip("|") for row in desk.picture.splitlines()[1:]] == [
        "Keston",
        "Kestrel",
        "Keswick",
    ]
    desk.post(Forget())
    desk.type("the Kes")
    desk.advance(2)
    desk.suggest(("ton", 0.4))
    assert "Keston" in desk.picture
    assert "Kestrel" not in desk.picture
