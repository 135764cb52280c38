# SPDX-License-Identifier: Apache-2.0
"""Changing, resetting and undoing: valid and stored as a whole, or not at all."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.i18n import Catalog, Language, told, translation
from app.settings import ModeName, ProfileSettings, Settings
from app.settings_window.edits import Edits
from app.settings_window.fake import FakeSettings

TOKENS = ("chat", "max_tokens")
LAYOUT = ("layout",)


def test_a_change_is_stored_and_undone() -> None:
    port = FakeSettings()
    edits = Edits(port)
    told: list[int] = []
    edits.listen(lambda: told.append(edits.settings.chat.max_tokens))
    assert edits.change(TOKENS, 7) is None
    assert port.settings.chat.max_tokens == 7
    assert edits.undo() is None
    assert port.settings == Settings()
    assert told == [7, 96]
    assert edits.last is None
    assert edits.undo() is None


def test_a_value_that_is_not_allowed_changes_nothing_and_says_why() -> None:
    port = FakeSettings()
    edits = Edits(port)
    problem = edits.change(TOKENS, 0)
    assert problem is not None
    assert told(str, problem.text) == "At least 1 is needed."
    problem = edits.change(TOKENS, 10_000)
    assert problem is not None
    assert told(str, problem.text) == "At most 1024 is possible."
    problem = edits.change(LAYOUT, "klingon")
    assert problem is not None
    assert "klingon" in told(str, problem.text)
    problem = edits.change(("lights", "night_from"), "half past ten")
    assert problem is not None
    assert told(str, problem.text) == "This is not of the form that is needed here."
    problem = edits.change(("keyboard",), "")
    assert problem is not None
    assert told(str, problem.text) == "This may not be empty."
    assert port.settings == Settings()
    assert edits.last is None


def test_a_refused_change_is_not_taken_for_done() -> None:
    port = FakeSettings()
    edits = Edits(port)
    port.refuse = "the disk is full."
    problem = edits.change(TOKENS, 7)
    assert problem is not None
    assert told(str, problem.text) == "the disk is full."
    assert edits.settings == Settings()
    port.refuse = ""
    assert edits.change(TOKENS, 7) is None
    port.refuse = "the disk is full."
    assert edits.undo() is not None
    assert edits.last is not None


def test_undo_takes_back_one_field_and_leaves_what_others_changed() -> None:
    port = FakeSettings()
    edits = Edits(port)
    edits.change(TOKENS, 7)
    port.watch_settings(edits.others_changed)
    port.changed_elsewhere(edits.settings.model_copy(update={"mode": ModeName.CHAT}))
    edits.undo()
    assert port.settings == Settings(mode=ModeName.CHAT)


def test_echoes_of_older_changes_do_not_put_a_control_back() -> None:
    edits = Edits(FakeSettings())
    told = []
    for value in (7, 8, 9):
        edits.change(TOKENS, value)
        told.append(edits.settings)
    for echo in (told[0], told[2]):  # the one between was dropped: of several, the newest is sent
        edits.others_changed(echo)
        assert edits.settings.chat.max_tokens == 9
    edits.others_changed(told[0])  # now somebody else's
    assert edits.settings.chat.max_tokens == 7


def test_a_change_by_others_between_echoes_holds() -> None:
    edits = Edits(FakeSettings())
    edits.change(TOKENS, 7)
    other = Settings(mode=ModeName.REACT)
    edits.others_changed(other)
    assert edits.settings == other


def test_a_reset_can_be_undone() -> None:
    edits = Edits(FakeSettings())
    edits.change(TOKENS, 7)
    field = edits.field(TOKENS)
    assert not edits.is_default(field)
    edits.reset(field)
    assert edits.is_default(field)
    edits.undo()
    assert edits.settings.chat.max_tokens == 7


def test_a_record_can_be_added_changed_and_undone() -> None:
    port = FakeSettings()
    edits = Edits(port)
    assert edits.change(("profiles",), {"work": ProfileSettings()}) is None
    mode = ("profiles", "work", "mode")
    assert edits.change(mode, ModeName.CHAT) is None
    assert port.settings.profiles["work"].mode is ModeName.CHAT
    assert edits.field(mode).path == ("profiles",)
    edits.undo()
    assert port.settings.profiles["work"].mode is None
    edits.undo()
    assert port.settings == Settings()


def test_a_whole_tree_is_one_step() -> None:
    port = FakeSettings()
    edits = Edits(port)
    edits.replace(Settings.model_validate({"layout": "de", "chat": {"max_tokens": 3}}))
    assert edits.last is not None
    assert edits.last.path == ()
    edits.undo()
    assert port.settings == Settings()


@given(st.lists(st.tuples(st.sampled_from(["max_tokens", "history_turns"]), st.integers(0, 20))))
def test_undoing_everything_leads_back(steps: list[tuple[str, int]]) -> None:
    port = FakeSettings()
    edits = Edits(port)
    for name, value in steps:
        edits.change(("chat", name), value)
    while edits.last is not None:
        assert edits.undo() is None
    assert port.settings == Settings()


def test_problems_are_told_in_chinese() -> None:
    problem = Edits(FakeSettings()).change(TOKENS, 0)
    assert problem is not None
    text = told(translation(Language.ZH_CN, Catalog.SETTINGS), problem.text)
    assert text == "至少需要 1。"
