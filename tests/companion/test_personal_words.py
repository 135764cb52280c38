# SPDX-License-Identifier: Apache-2.0
"""Own words: only where wanted, only words, bounded, mixed by how often they were typed, gone when told."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.companion.personal_words import PersonalWords, is_plain_word
from app.settings import SuggestSettings

LEARN = SuggestSettings(learn_words=True)
KEEP = SuggestSettings(learn_words=True, keep_words=True)


def learner(settings: SuggestSettings = LEARN, file: Path | None = None) -> PersonalWords:
    words = PersonalWords(file)
    words.configure(settings)
    return words


def type_into(words: PersonalWords, text: str) -> None:
    for end in range(1, len(text) + 1):
        words.typed(text[:end])


def offered(words: PersonalWords, stem: str) -> list[str]:
    return [text for text, _ in words.mixed([], stem, 8)]


def test_a_word_typed_twice_among_others_is_offered() -> None:
    words = learner()
    type_into(words, "the Kestrel flew. ")
    assert offered(words, "Kes") == []
    type_into(words, "a Kestrel came, ")
    assert offered(words, "Kes") == ["trel"]
    assert offered(words, "kes") == ["trel"]
    assert offered(words, "K") == [], "one letter begins too many words"


def test_nothing_is_learnt_unless_it_is_turned_on() -> None:
    words = learner(SuggestSettings())
    type_into(words, "the Kestrel and the Kestrel and ")
    assert offered(words, "Kes") == []


@pytest.mark.parametrize(
    "secret",
    ["hunter2", "Tr0ub4dor&3", "correcthorsebatterystaple", "pAssword", "xkcd", "qwrtz", "a_b_c",
     "AKIAIOSFODNN", "ab", "passwort!", "МоЙ"],
)  # fmt: skip
def test_what_may_be_a_password_is_never_learnt(secret: str) -> None:
    words = learner()
    for _ in range(5):
        type_into(words, f"my secret is {secret} and ")
    assert not any(text.startswith(secret[2:]) for text in offered(words, secret[:2]))


@pytest.mark.parametrize("text", ["swordfish ", "swordfish\n", "\nswordfish ", "user\tswordfish "])
def test_a_word_alone_in_its_line_may_be_a_password(text: str) -> None:
    words = learner()
    for _ in range(5):
        type_into(words, text)
    assert offered(words, "swo") == []


@pytest.mark.parametrize(
    "word", ["kestrel", "Kestrel", "NASA", "don't", "naïveté", "Größe", "привет", "Ærø"]
)
def test_words_are_words_in_every_script_with_spaces(word: str) -> None:
    assert is_plain_word(word)


def test_own_words_count_more_the_more_often_they_were_typed() -> None:
    words = learner()
    model = [("ing", 0.6), ("trel", 0.1)]
    type_into(words, "a Kestrel, a Kestrel, ")
    few = dict(words.mixed(model, "Kes", 3))
    type_into(words, "a Kestrel, " * 20)
    many = dict(words.mixed(model, "Kes", 3))
    assert few["trel"] == pytest.approx(0.25 + 0.75 * 0.1)
    assert few["ing"] == pytest.approx(0.75 * 0.6)
    assert many["trel"] > 0.75
    assert list(many) == ["trel", "ing"]


def test_of_too_many_words_the_longest_unused_goes() -> None:
    words = learner()
    type_into(words, "an ibex, an ibex, ")
    letters = "bcdfghjklm"
    for first in letters:
        for second in letters:
            for third in letters:
                type_into(words, f"x {first}a{second}e{third}o, ")
    assert offered(words, "ib") == []
    assert repr(words) == "PersonalWords(1000 words)"


def test_they_are_kept_only_if_that_is_turned_on_too(tmp_path: Path) -> None:
    file = tmp_path / "data" / "words.txt"
    words = learner(LEARN, file)
    type_into(words, "a Kestrel, a Kestrel, a robin, ")
    words.rest()
    assert not file.exists()
    words.configure(KEEP)
    words.rest()
    assert file.read_text() == "Kestrel\t2\n", "a word typed once is not written"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert offered(learner(KEEP, file), "Kes") == ["trel"]


def test_forget_deletes_the_file_too(tmp_path: Path) -> None:
    file = tmp_path / "words.txt"
    words = learner(KEEP, file)
    type_into(words, "a Kestrel, a Kestrel, ")
    words.rest()
    words.forget()
    words.rest()
    assert not file.exists()
    assert offered(words, "Kes") == []


@pytest.mark.parametrize("settings", [LEARN, SuggestSettings(keep_words=True), SuggestSettings()])
def test_turning_it_off_deletes_the_file(tmp_path: Path, settings: SuggestSettings) -> None:
    file = tmp_path / "words.txt"
    words = learner(KEEP, file)
    type_into(words, "a Kestrel, a Kestrel, ")
    words.rest()
    words.configure(settings)
    assert not file.exists()
    assert (offered(words, "Kes") == ["trel"]) == settings.learn_words


def test_a_damaged_file_gives_what_is_sound(tmp_path: Path) -> None:
    file = tmp_path / "words.txt"
    file.write_bytes(
        b"Kestrel\t3\nhunter2\t9\n\xff\xfe\t2\nno number\nrobin\t-1\nwren\t99999999999\n\t\n"
    )
    words = learner(KEEP, file)
    assert offered(words, "Kes") == ["trel"]
    assert offered(words, "wr") == ["en"]
    assert offered(words, "ro") == []
    assert repr(words) == "PersonalWords(2 words)"


@pytest.mark.expected_log("the learnt words were not read")
@pytest.mark.expected_log("the learnt words were not written")
def test_a_folder_that_cannot_be_written_is_told_without_content(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file where the folder should be")
    words = learner(KEEP, tmp_path / "data" / "words.txt")
    type_into(words, "a Kestrel, a Kestrel, ")
    words.rest()


@given(st.text(max_size=200))
def test_whatever_is_typed_only_plain_words_are_held(text: str) -> None:
    words = learner()
    type_into(words, text)
    assert all(is_plain_word(word) for word in words._counts)
