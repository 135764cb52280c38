# SPDX-License-Identifier: Apache-2.0
"""The menu as text, for every state that matters; and that the icon tells states apart by shape."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageChops

from app.companion.messages import EngineChanged
from app.i18n import Catalog, Language, translation
from app.lifecycle.host import HostState
from app.settings import ModeName, ProfileSettings, Settings
from app.tray.icons import DARK, LIGHT, icon
from app.tray.limits import MESSAGE_UNITS, TITLE_UNITS, TOOLTIP_UNITS, cut, shortened, utf16_units
from app.tray.menu import LINE, Action, ChooseProfile, Row, Shape, menu, shape, tooltip
from engine.client import EngineState
from engine.errors import ModelFileError
from firmware_bridge.protocol.messages import Status
from tests.helpers.companion import Desk
from tests.helpers.english_left import english_left

SIZES = (16, 20, 22, 24, 32, 44, 48, 64, 128, 256)


def host_state(desk: Desk | None = None, **changes: object) -> HostState:
    """The state of a desk, with some of the companion's fields changed."""
    companion = (desk or Desk()).state
    return HostState(replace(companion, **changes), Settings(), "Test board")  # type: ignore[arg-type]


def drawn(rows: tuple[Row, ...], depth: int = 0) -> str:
    """A menu as text: `-` a line, `( )` what only tells, `*` the default, `o` chosen."""
    lines = []
    for row in rows:
        if row == LINE:
            lines.append("  " * depth + "-")
            continue
        text = row.text if row.action or row.rows else f"({row.text})"
        mark = "*" if row.is_default else {True: "o ", False: ". ", None: ""}[row.checked]
        lines.append("  " * depth + mark + text)
        if row.rows:
            lines.append(drawn(row.rows, depth + 1))
    return "\n".join(lines)


def test_the_menu_at_rest() -> None:
    assert drawn(menu(host_state(model="SmolLM2 135M"), str)) == (
        "(Test board · 126×32)\n(SmolLM2 135M · ready)\n-\n*Open Thock\nAsk…\nMode\n  o Suggestions\n"
        "  . Chat\n  . Moods\nPause\n  15 minutes\n  1 hour\n  Until I resume\nUnload model\n-\n"
        "Settings…\nDiagnostics\n  Check this computer…\n  Open log folder\nQuit"
    )


def test_the_profile_in_force_is_told() -> None:
    rows = menu(replace(host_state(), profile="coding"), str)
    assert rows[2] == Row("Profile: coding")


def test_profiles_can_be_chosen_once_there_are_some() -> None:
    profiles = {name: ProfileSettings() for name in ("coding", "a name of 64 letters" * 3)}
    state = replace(host_state(), settings=Settings(profiles=profiles), profile="coding")
    for is_chosen, automatic, coding in ((False, True, False), (True, False, True)):
        rows = menu(replace(state, is_profile_chosen=is_chosen), str)
        (row,) = [row for row in rows if row.text == "Profile"]
        assert [(r.action, r.checked) for r in row.rows[:2]] == [
            (ChooseProfile(None), automatic), (ChooseProfile("coding"), coding),
        ]  # fmt: skip
        assert row.rows[2].checked is False
        assert len(row.rows[2].text) <= 60
    assert "Profile" not in [row.text for row in menu(host_state(), str)]


def test_while_it_answers_cancel_comes_first() -> None:
    rows = menu(host_state(status=Status.STREAMING, reply="so far"), str)
    assert [row.action for row in rows[3:6]] == [Action.CANCEL, Action.OPEN, Action.COPY_REPLY]
    assert Action.ASK not in [row.action for row in rows]


def test_what_is_paused_can_be_resumed() -> None:
    rows = menu(host_state(is_paused=True), str)
    assert rows[0].text == "Test board · paused"
    assert Action.RESUME in [row.action for row in rows]


@pytest.mark.parametrize(
    ("engine", "text", "action"),
    [
        (EngineState.STOPPED, "No model loaded", Action.LOAD_MODEL),
        (EngineState.LOADING, "Loading the model", Action.UNLOAD_MODEL),
        (EngineState.RESTARTING, "The model is started again", Action.UNLOAD_MODEL),
        (EngineState.FAILED, "No model: no room", Action.LOAD_MODEL),
    ],
)
def test_the_model_row_offers_what_can_be_done(
    engine: EngineState, text: str, action: Action
) -> None:
    rows = menu(host_state(engine=engine, engine_detail="no room"), str)
    assert rows[1].text == text
    assert action in [row.action for row in rows]


def test_long_names_and_details_do_not_widen_the_menu() -> None:
    state = replace(
        host_state(engine=EngineState.FAILED, engine_detail="x " * 500), keyboard="k" * 99
    )
    assert all(len(row.text) <= 75 for row in menu(state, str))
    assert "\n" not in menu(state, str)[1].text


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, Shape.IDLE),
        ({"status": Status.THINKING}, Shape.BUSY),
        ({"keyboard": None}, Shape.NO_KEYBOARD),
        ({"keyboard": None, "is_paused": True}, Shape.PAUSED),
        ({"engine": EngineState.FAILED, "keyboard": None}, Shape.TROUBLE),
        ({"engine": EngineState.LOADING}, Shape.LOADING),
        ({"engine": EngineState.STOPPED}, Shape.IDLE),
        ({"error": "ValueError"}, Shape.TROUBLE),
    ],
)
def test_the_icon_follows_the_state(changes: dict[str, object], expected: Shape) -> None:
    assert shape(host_state(**changes)) is expected


def test_no_content_is_in_the_menu_or_the_tooltip() -> None:
    desk = Desk()
    desk.type("canarybird")
    state = HostState(replace(desk.state, reply="canarybird"), Settings(), "Test board")
    assert "canary" not in drawn(menu(state, str)) + tooltip(state, str)


def test_every_text_of_the_menu_has_a_chinese_one() -> None:
    tr = translation(Language.ZH_CN, Catalog.DESKTOP)
    for engine, paused, status in itertools.product(EngineState, (True, False), Status):
        state = host_state(engine=engine, is_paused=paused, status=status, reply="x", model="m")
        for mode in ModeName:
            rows = drawn(menu(replace(state, companion=replace(state.companion, mode=mode)), tr))
            plain = rows.replace("Test board", "").replace("Thock", "").replace("m ·", "")
            assert not any("a" <= character <= "z" for character in plain if character != "o"), rows


@pytest.mark.parametrize("size", SIZES)
def test_no_two_states_look_alike_even_without_colour(size: int) -> None:
    pictures = {shape: icon(shape, size, DARK).getchannel("A") for shape in Shape}
    for one, other in itertools.combinations(Shape, 2):
        difference = ImageChops.difference(pictures[one], pictures[other])
        differing = sum(value > 96 for value in difference.tobytes())
        assert differing >= size * size // 40, (one, other)


def test_the_icon_fills_its_square_and_keeps_its_ink() -> None:
    picture = icon(Shape.IDLE, 32, LIGHT)
    assert (picture.mode, picture.size) == ("RGBA", (32, 32))
    assert picture.getbbox() == (2, 2, 31, 31)
    on_ground = icon(Shape.IDLE, 32, LIGHT, DARK)
    assert on_ground.mode == "RGB"
    assert on_ground.getpixel((0, 0)) == DARK
    assert isinstance(on_ground, Image.Image)


@given(st.text(), st.sampled_from([TOOLTIP_UNITS, TITLE_UNITS, MESSAGE_UNITS, 1]))
def test_texts_fit_the_systems_and_no_character_is_halved(text: str, units: int) -> None:
    short = cut(text, units)
    assert utf16_units(short) <= units
    assert short == text or short.endswith("…")
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert len(short.encode("utf-16-le")) // 2 == utf16_units(short)


def test_limits_are_counted_in_utf16() -> None:
    assert cut("😀" * 100, 127) == "😀" * 63 + "…"
    assert cut("a" * 127, 127) == "a" * 127
    assert cut("a" * 128, 127) == "a" * 126 + "…"
    assert shortened("one\n two", 60) == "one two"


def test_a_failed_engine_is_told_by_the_machine_itself() -> None:
    desk = Desk()
    desk.post(EngineChanged(EngineState.FAILED, "the model file is gone"))
    state = HostState(desk.state, Settings())
    assert shape(state) is Shape.TROUBLE
    assert tooltip(state, str).endswith("No model: the model file is gone")


@pytest.mark.parametrize("engine", EngineState)
@pytest.mark.parametrize("is_paused", [False, True])
@pytest.mark.parametrize("has_keyboard", [False, True])
def test_nothing_in_the_menu_is_left_in_english(
    engine: EngineState, is_paused: bool, has_keyboard: bool
) -> None:
    tr = translation(Language.ZH_CN, Catalog.DESKTOP)
    cause = str(ModelFileError("/m/tiny.gguf", "header", "is empty"))
    state = host_state(
        engine=engine, engine_detail=cause, is_paused=is_paused, model="tiny", reply="4"
    )
    if not has_keyboard:
        state = replace(state, companion=replace(state.companion, keyboard=None))
    state = replace(state, keyboard="Thock virtual keyboard", profile="work")
    for text in (drawn(menu(state, tr)), tooltip(state, tr)):
        assert not english_left(text, "tiny", "tiny.gguf", "work", "o"), text
