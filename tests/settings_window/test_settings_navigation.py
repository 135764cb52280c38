# SPDX-License-Identifier: Apache-2.0
"""Search, keys, language, colours: what all pages have in common."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPalette
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QSpinBox
from pytestqt.qtbot import QtBot

from app.config.paths import personas_folder
from app.config.problems import Problem
from app.i18n import Language
from app.settings import Appearance, Settings
from app.settings_window.application import SettingsApp
from app.settings_window.edits import Edits
from app.settings_window.fake import FakeCompanion, FakeSettings
from app.settings_window.labels import Place
from app.settings_window.pages.companion import CompanionPage
from app.settings_window.pages.keyboard import KeyboardPage
from app.settings_window.pages.status import StatusPage
from app.settings_window.ports import CompanionView
from app.settings_window.theme import mixed, trouble_colour
from firmware_bridge.protocol.messages import Status
from tests.helpers.settings_desk import FakeComputer, SettingsDesk, application, settle


def stored(desk: SettingsDesk) -> Settings:
    return desk.settings.settings


def edits(desk: SettingsDesk) -> Edits:
    return desk.app.tools.edits


def test_search_leads_to_a_setting_and_marks_it(desk: SettingsDesk) -> None:
    navigation = desk.window.navigation
    QTest.keyClick(desk.window, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    QTest.keyClicks(navigation.search, "reading speed")
    assert navigation.places.item(0).text() == "Reading speed\nCompanion"
    QTest.keyClick(navigation.search, Qt.Key.Key_Return)
    page = desk.window.page
    assert page.place is Place.COMPANION
    assert page.rows[("chat", "reading_speed")].property("part") == "found"
    navigation.search.setText("nothing of this name")
    assert navigation._nothing.isVisible()
    QTest.keyClick(navigation.search, Qt.Key.Key_Escape)
    assert navigation.places.count() == len(Place)


def test_the_arrow_keys_and_numbers_turn_the_pages(desk: SettingsDesk) -> None:
    places = desk.window.navigation.places
    places.setFocus()
    QTest.keyClick(places, Qt.Key.Key_Down)
    assert desk.window.page.place is Place.KEYBOARD
    QTest.keyClick(desk.window, Qt.Key.Key_4, Qt.KeyboardModifier.AltModifier)
    assert desk.window.page.place is Place.ENGINE
    assert places.currentRow() == list(Place).index(Place.ENGINE)


def test_another_language_and_other_colours_hold_at_once(desk: SettingsDesk) -> None:
    list(desk.pages())
    edits(desk).change(("language",), Language.ZH_CN)
    assert desk.window.windowTitle() == "Thock 设置"
    assert desk.window.navigation.places.item(0).text() == "状态"
    light = desk.window.palette().window().color()
    edits(desk).change(("general", "appearance"), Appearance.DARK)
    dark = desk.window.palette().window().color()
    assert dark.lightness() < 64 < light.lightness()
    desk.window.undo()
    desk.window.undo()
    assert desk.window.windowTitle() == "Thock settings"
    assert desk.window.palette().window().color() == light


def test_somebody_else_can_open_a_page(desk: SettingsDesk) -> None:
    desk.companion.want_page("hotkeys")
    settle(0.02)
    assert desk.window.page.place is Place.HOTKEYS
    desk.companion.want_page("no-such-page")
    settle(0.02)
    assert desk.window.page.place is Place.HOTKEYS


def test_the_wheel_does_not_change_a_number_that_is_not_focused(desk: SettingsDesk) -> None:
    page = desk.page(Place.COMPANION)
    box = page.rows[("chat", "max_tokens")].editor.focus
    assert isinstance(box, QSpinBox)
    assert box.focusPolicy() is Qt.FocusPolicy.StrongFocus


def test_a_busy_companion_can_be_cancelled(desk: SettingsDesk) -> None:
    page = desk.page(Place.STATUS)
    assert isinstance(page, StatusPage)
    desk.companion.become(replace(desk.companion.view, status=Status.STREAMING))
    assert desk.companion.view.is_busy
    page.ask._is_waiting = True
    page.ask._say()
    assert page.ask.send.text() == "Cancel"
    page.ask.send.click()
    assert not desk.companion.view.is_busy


def test_nobody_is_asked_without_a_model(desk: SettingsDesk) -> None:
    page = desk.page(Place.STATUS)
    assert isinstance(page, StatusPage)
    desk.companion.unload_model()
    assert not page.ask.send.isEnabled()
    assert page.ask.answer.text() == "No model is in memory."
    desk.companion.load_model()
    assert page.ask.send.isEnabled()


def test_folders_are_opened_or_named(desk: SettingsDesk) -> None:
    page = desk.page(Place.COMPANION)
    assert isinstance(page, CompanionPage)
    page.folder.show_folder.click()
    assert desk.computer.opened == [personas_folder()]
    desk.computer.refusal = "the folder is /somewhere."
    page.folder.show_folder.click()
    assert page.folder.trouble.text() == "⚠ the folder is /somewhere."


def test_two_looks_at_the_preview_are_one_watch(desk: SettingsDesk) -> None:
    desk.page(Place.DISPLAY)
    assert desk.companion.is_watched
    desk.app.start_assistant()
    assistant = desk.app.assistant
    assert assistant is not None
    while assistant.steps[-1] is not assistant.step:
        assistant.go_on()
    assistant.close()
    settle(0.02)
    assert desk.companion.is_watched
    desk.page(Place.ABOUT)
    assert not desk.companion.is_watched


def test_what_the_file_could_not_give_is_told(tmp_path: Path, qtbot: QtBot) -> None:
    settings = FakeSettings()
    settings.problems = (Problem("line 3", "not TOML; it was left out"),)
    window = SettingsApp(settings, FakeCompanion(), FakeComputer(tmp_path).computer()).window
    qtbot.addWidget(window)
    window.show()
    assert "line 3: not TOML; it was left out" in window.problems.text()


@pytest.mark.parametrize("appearance", [Appearance.LIGHT, Appearance.DARK])
def test_every_text_has_contrast(desk: SettingsDesk, appearance: Appearance) -> None:
    """WCAG 2.2, criterion 1.4.3: 4.5:1 for text."""
    edits(desk).change(("general", "appearance"), appearance)
    palette = application().palette()
    role = QPalette.ColorRole
    window, base = palette.color(role.Window), palette.color(role.Base)
    card = mixed(palette, role.WindowText, role.Window, 0.05)
    hint = mixed(palette, role.WindowText, role.Window, 0.72)
    pairs = [
        (palette.color(role.WindowText), window),
        (palette.color(role.Text), base),
        (palette.color(role.ButtonText), palette.color(role.Button)),
        (palette.color(role.HighlightedText), palette.color(role.Highlight)),
        (palette.color(role.PlaceholderText), base),
        (hint, window),
        (hint, card),
        (trouble_colour(palette), window),
        (trouble_colour(palette), card),
    ]
    for text, ground in pairs:
        assert contrast(text, ground) >= 4.5, (text.name(), ground.name())


def contrast(one: QColor, other: QColor) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: QColor) -> float:
    parts = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour.getRgbF()[:3]
    )  # type: ignore[union-attr]
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), parts, strict=True))


def test_a_page_that_is_made_while_a_state_is_under_way_hears_of_it(desk: SettingsDesk) -> None:
    away = CompanionView()
    told = threading.Thread(target=desk.companion.become, args=(away,))
    told.start()
    told.join()  # Qt has it, but has not delivered it
    heard: list[CompanionView] = []
    desk.app.tools.bridge.companion_changed.connect(heard.append)
    page = desk.page(Place.KEYBOARD)
    assert isinstance(page, KeyboardPage)
    settle()
    assert heard == [away]
    assert page.state.text() == "Thock does not run."
