# SPDX-License-Identifier: Apache-2.0
"""Every control says what it is and can be reached by keyboard; every text is there in full."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from app.i18n import Language
from app.settings_window.labels import Place
from app.settings_window.window import speech
from tests.helpers.settings_desk import SettingsDesk, settle
from tests.helpers.settings_layout import PICTURES, controls, cut_off, describe


def test_every_control_has_a_name_and_the_pictures_too(desk: SettingsDesk) -> None:
    desk.edits.change(("profiles",), {"work": {"applications": ["code"]}})
    checked = 0
    for page in desk.pages():
        for widget in controls(desk.window):
            checked += 1
            assert widget.accessibleName(), f"{page.place}: {describe(widget)}"
        for widget in page.findChildren(QWidget):
            if isinstance(widget, PICTURES):
                assert widget.accessibleName(), f"{page.place}: {describe(widget)}"
    assert checked > 100


def test_settings_describe_themselves(desk: SettingsDesk) -> None:
    for page in desk.pages():
        for row in page.rows.values():
            assert row.editor.focus.accessibleName() == row.field.title
            assert row.editor.focus.accessibleDescription() == row.field.description


def test_names_are_spoken_in_chinese(desk: SettingsDesk) -> None:
    list(desk.pages())
    desk.edits.change(("language",), Language.ZH_CN)
    for page in desk.pages():
        for row in page.rows.values():
            tr = speech(Language.ZH_CN)
            assert row.editor.focus.accessibleName() == tr(row.field.title)


def test_every_control_that_can_be_used_takes_the_focus(desk: SettingsDesk) -> None:
    for page in desk.pages():
        for widget in controls(desk.window):
            if widget.isEnabled():
                policy = widget.focusPolicy()
                target = widget.focusProxy() or widget
                reachable = policy & Qt.FocusPolicy.TabFocus or target.focusPolicy()
                assert reachable, f"{page.place}: {describe(widget)}"


@pytest.mark.parametrize("place", Place)
def test_tab_goes_through_every_control_of_a_page(desk: SettingsDesk, place: Place) -> None:
    page = desk.page(place)
    settle()
    wanted = {
        w for w in controls(page) if w.isEnabled() and w.focusPolicy() & Qt.FocusPolicy.TabFocus
    }
    seen: set[QWidget] = set()
    widget: QWidget = desk.window
    for _ in range(1000):
        widget = widget.nextInFocusChain()
        seen.add(widget)
        if widget is desk.window:
            break
    seen |= {w.focusProxy() for w in seen if w.focusProxy()}
    missing = [describe(w) for w in wanted if w not in seen]
    assert not missing


@pytest.mark.parametrize("language", Language)
@pytest.mark.parametrize("width", [640, 980])
def test_nothing_is_cut_off(desk: SettingsDesk, language: Language, width: int) -> None:
    desk.edits.change(("profiles",), {"work": {"applications": ["code"]}})
    desk.edits.change(("language",), language)
    desk.window.resize(width, 700)
    for page in desk.pages():
        settle(0.05)
        assert not cut_off(desk.window), page.place
        bar = page.horizontalScrollBar()
        assert bar.maximum() == 0, f"{page.place} is wider than the window by {bar.maximum()}"


def test_the_assistant_names_its_controls_and_cuts_nothing_off(desk: SettingsDesk) -> None:
    desk.computer.folder.joinpath("small-chat.gguf").unlink()
    desk.app.start_assistant()
    assistant = desk.app.assistant
    assert assistant is not None
    for language in Language:
        desk.edits.change(("language",), language)
        while True:
            settle(0.1)
            assert not cut_off(assistant), assistant.step
            for widget in controls(assistant):
                assert widget.accessibleName(), f"{assistant.step}: {describe(widget)}"
            if assistant.steps[-1] is assistant.step:
                break
            assistant.go_on()
        while assistant.back.isEnabled():
            assistant.go_back()
