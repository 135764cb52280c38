# SPDX-License-Identifier: Apache-2.0
"""The accept key, on the host's side: what is offered is what is shown, and nothing else ever is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.companion.accept import AcceptKey, Typeable
from app.companion.messages import Forget, Pause, SetMode
from app.settings import ModeName, Settings, SuggestSettings
from engine.messages import Suggest
from firmware_bridge.display.frame import BitmapFrame, TextFrame
from firmware_bridge.events import SuggestionAccepted
from firmware_bridge.keys.layout import layout_names
from firmware_bridge.keys.usage import Usage
from firmware_bridge.protocol.capabilities import Feature
from firmware_bridge.protocol.messages import Offer
from tests.helpers.companion import EVERYTHING, Desk

ON = SuggestSettings(accept=True, words=1)
ACCEPT = 4


def desk(layout: str = "us", **changes: object) -> Desk:
    return Desk(Settings(layout=layout, suggest=ON.model_copy(update=changes)))


def offered(desk: Desk) -> str:
    """What the accept key would type now."""
    offer, frame = desk.keyboard.offer, desk.keyboard.frame
    if offer is None:
        return ""
    assert isinstance(frame, TextFrame)
    return frame.rows[offer.row][offer.column : offer.column + offer.count]


def accept(desk: Desk, text: str) -> None:
    """The keyboard tells that it typed `text`."""
    desk.press_macro(ACCEPT)
    desk.post(SuggestionAccepted(text, len(text), 0, desk.clock.now))


def test_the_rest_of_the_word_is_offered_where_it_stands() -> None:
    board = desk()
    board.type("hel")
    board.suggest(("lo", 0.6), ("p", 0.2))
    assert board.picture.splitlines()[1] == "|>hello     ===    60%|"
    assert board.keyboard.offer == Offer(row=1, column=4, count=2)
    assert offered(board) == "lo"


def test_a_new_word_is_offered_with_its_space() -> None:
    board = desk()
    board.type("good")
    board.suggest((" morning", 0.5), ("ness", 0.25))
    assert offered(board) == " morning"
    assert board.picture.splitlines()[1:3] == [
        "|> morning  ==     50%|",
        "| goodness  =      25%|",
    ]


def test_nothing_is_offered_unless_it_is_turned_on() -> None:
    board = desk(accept=False)
    board.type("hel")
    board.suggest(("lo", 0.6))
    assert board.keyboard.offer is None
    board.press_macro(ACCEPT)
    assert "accept key is off" in board.picture


@pytest.mark.parametrize("accepting", [True, False])
def test_the_keyboard_is_told_whether_typing_is_allowed(accepting: bool) -> None:
    board = Desk(Settings(suggest=SuggestSettings(accept=accepting)), is_ready=False)
    assert board.keyboard.log[0] == f"allow capture True typing {accepting}"


def test_what_was_accepted_is_part_of_the_text() -> None:
    board = desk()
    board.type("hel")
    board.suggest(("lo", 0.6))
    accept(board, "lo")
    assert board.picture.splitlines()[0] == "|hello_               |"
    asked = [c for c in board.engine.commands if isinstance(c, Suggest)]
    assert asked[-1].text == "hello"
    assert board.keyboard.offer is None
    assert "nothing to type" not in board.picture


def test_an_accept_whose_text_is_not_known_makes_the_text_unknown() -> None:
    board = desk()
    board.type("hel")
    board.suggest(("lo", 0.6))
    board.post(SuggestionAccepted("", 2, 0, board.clock.now))
    assert board.picture.splitlines()[0] == "|_                    |"


def test_an_accent_that_waits_would_change_what_is_typed() -> None:
    board = Desk(Settings(layout="de", suggest=ON))
    board.type("ab")
    board.suggest(("end", 0.6))
    board.press(Usage.EQUAL)  # a dead acute
    accept(board, "end")
    assert board.picture.splitlines()[0] == "|_                    |"


def test_a_key_takes_the_offer_away_until_the_next_answer() -> None:
    board = desk()
    board.type("hel")
    board.suggest(("lo", 0.6))
    board.type("p")
    assert board.keyboard.offer is None
    board.suggest(("ful", 0.5))
    assert offered(board) == "ful"


def test_what_narrows_is_offered_as_far_as_it_is_left() -> None:
    board = desk()
    board.type("hel")
    board.suggest(("lo", 0.6))
    board.type("l")
    assert offered(board) == "o"


@pytest.mark.parametrize("word", ["é", "naïve", "a\tb", "don\u2019t"])
def test_what_the_firmware_cannot_type_is_refused_on_the_display(word: str) -> None:
    board = desk()
    board.type("x ")
    board.suggest((word, 0.6))
    assert board.keyboard.offer is None
    assert not any(">" in line for line in board.state.lines)
    assert is_refused(board)


def is_refused(board: Desk) -> bool:
    """Whether the accept key gets its reason on the display."""
    board.press_macro(ACCEPT)
    return "cannot be typed" in board.state.lines[-1]


def test_a_picture_in_pixels_cannot_be_typed() -> None:
    board = desk()
    board.type("x ")
    board.suggest(("世界", 0.6), ("world", 0.2))
    assert isinstance(board.keyboard.frame, BitmapFrame)
    assert board.keyboard.offer is None
    assert is_refused(board)
    board = desk()
    board.type("x ")
    board.suggest(("world", 0.6), ("世界", 0.2))
    assert isinstance(board.keyboard.frame, BitmapFrame)
    assert board.keyboard.offer is None
    assert is_refused(board)


def test_accents_are_shown_where_nothing_is_to_be_typed() -> None:
    board = Desk(Settings(layout="de"))
    board.type("Gr", layout="de")
    board.suggest(("oß", 0.6), ("und", 0.2))
    assert isinstance(board.keyboard.frame, BitmapFrame)
    assert board.state.lines[1].startswith("Groß")
    board.type("üße", layout="de")
    board.suggest((" und", 0.6))
    assert isinstance(board.keyboard.frame, BitmapFrame)
    assert board.state.lines[0] == "Grüße_"
    plain = Desk(Settings(layout="de"), features=EVERYTHING & ~Feature.BITMAP)
    plain.type("Grüße", layout="de")
    assert plain.picture.splitlines()[0] == "|Grusse_              |"


def test_with_the_accept_key_on_only_accents_that_it_would_type_make_a_picture() -> None:
    board = desk("de", accept_layout="de")
    board.type("für gut", layout="de")
    board.suggest(("en", 0.6), ("ürlich", 0.2))
    assert board.picture.splitlines()[0] == "|fur gut_             |"
    assert offered(board) == "en"
    board = desk("de", accept_layout="de")
    board.type("für gut", layout="de")
    board.suggest(("ürlich", 0.6), ("en", 0.2))
    assert isinstance(board.keyboard.frame, BitmapFrame)
    assert "gutürlich" in board.state.lines[1]
    assert board.keyboard.offer is None
    assert is_refused(board)


def test_a_letter_that_is_spelled_with_two_moves_what_is_offered() -> None:
    board = desk("de", accept_layout="de")
    board.type("Straß", layout="de")
    board.suggest(("en", 0.6))
    assert board.picture.splitlines()[1].startswith("|>Strassen")
    assert offered(board) == "en"


def test_a_word_with_a_sharp_s_is_offered_under_its_own_letters_only() -> None:
    board = desk("de", accept_layout="de")
    board.type("x ", layout="de")
    board.suggest(("Maß", 0.6))
    assert board.keyboard.offer is None
    assert is_refused(board)


def test_characters_that_would_come_out_as_others_are_refused() -> None:
    board = desk("de")
    board.type("a ")
    board.suggest(("crazy", 0.6))  # the firmware's z is the system's y
    assert board.keyboard.offer is None
    german = desk("de", accept_layout="de")
    german.type("a ")
    german.suggest(("crazy", 0.6))
    assert offered(german) == "crazy"


def test_a_word_that_is_longer_than_its_line_is_not_offered() -> None:
    board = desk()
    board.type("in")
    board.suggest(("comprehensibilities", 0.6))
    assert board.keyboard.offer is None
    assert is_refused(board)


def test_with_nothing_shown_the_key_says_so() -> None:
    board = desk()
    board.press_macro(ACCEPT)
    assert "nothing to type" in board.picture


@pytest.mark.parametrize("message", [Pause(), Forget(), SetMode(ModeName.CHAT)])
def test_no_offer_outlives_its_view(message: object) -> None:
    board = desk()
    board.type("hel")
    board.suggest(("lo", 0.6))
    board.post(message)  # type: ignore[arg-type]
    assert board.keyboard.offer is None


def test_a_notice_over_the_candidate_takes_the_offer_away() -> None:
    board = Desk(Settings(suggest=ON), rows=2)
    board.type("hel")
    board.suggest(("lo", 0.6))
    assert offered(board) == "lo"
    board.press_macro(0)
    board.press_macro(0)
    board.press_macro(0)  # back in suggest mode, with a notice in the last line
    board.suggest(("lo", 0.6))
    assert "mode" in board.picture
    assert board.keyboard.offer is None


# ------------------------------------------------------------------------------------ the parts


@pytest.mark.parametrize("layout", layout_names())
def test_with_its_own_layout_in_the_firmware_every_letter_can_be_typed(layout: str) -> None:
    key = AcceptKey(
        Settings(layout=layout, suggest=SuggestSettings(accept=True, accept_layout=layout))
    )
    assert key.may_type("The quick brown fox jumps over the lazy dog.")


@given(st.text(max_size=12), st.sampled_from(layout_names()))
def test_only_what_comes_out_as_it_is_may_be_typed(text: str, layout: str) -> None:
    key = AcceptKey(Settings(layout=layout, suggest=SuggestSettings(accept=True)))
    if key.may_type(text):
        assert text
        assert text.isascii()
        assert text.isprintable()
    assert key.may_type("1 2 3") == (layout not in ("fr",))


def test_an_offer_is_exactly_what_the_frame_shows() -> None:
    frame = TextFrame(("hello_", " morning  50%"))
    assert Typeable(1, 0, " morning").offer_in(frame) == Offer(1, 0, 8)
    assert Typeable(1, 1, " morning").offer_in(frame) is None
    assert Typeable(2, 0, "x").offer_in(frame) is None
    assert Typeable(0, 0, "x").offer_in(BitmapFrame(8, 8, bytes(8))) is None
    assert "morning" not in repr(Typeable(1, 0, " morning"))
