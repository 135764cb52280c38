# SPDX-License-Identifier: Apache-2.0
"""Every page does what it says, on a fake companion."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QFocusEvent, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QDoubleSpinBox, QLineEdit, QPlainTextEdit, QSpinBox
from pytestqt.qtbot import QtBot

from app.companion.messages import MAX_ASK_CHARS
from app.platform.text_sources import TextSource
from app.settings import ModeName, Settings
from app.settings_window.edits import Edits
from app.settings_window.fields import FieldKind
from app.settings_window.form import SettingRow
from app.settings_window.key_capture import Capture
from app.settings_window.labels import Place
from app.settings_window.pages.about import AboutPage
from app.settings_window.pages.companion import CompanionPage
from app.settings_window.pages.diagnostics import DiagnosticsPage
from app.settings_window.pages.general import GeneralPage
from app.settings_window.pages.hotkeys import HotkeysPage
from app.settings_window.pages.keyboard import KeyboardPage
from app.settings_window.pages.privacy import PrivacyPage
from app.settings_window.pages.profiles import ProfilesPage
from app.settings_window.pages.status import StatusPage
from app.settings_window.ports import CompanionView, PressedKey
from app.settings_window.widgets import Switch
from tests.helpers.settings_desk import SettingsDesk, application, settle


def stored(desk: SettingsDesk) -> Settings:
    return desk.settings.settings


def edits(desk: SettingsDesk) -> Edits:
    return desk.app.tools.edits


# ---------------------------------------------------------------- generated rows


SAMPLES = {
    "night_from": "07:00",
    "night_to": "07:00",
    "openrgb_host": "127.0.0.2",
    "url": "http://127.0.0.1:8080/v1",
}


def other_value(row: SettingRow) -> object:
    """Something else that the field allows, put into its control as a person would."""
    focus = row.editor.focus
    if row.field.path[-1].endswith("layout"):
        assert isinstance(focus, QComboBox)
        focus.setCurrentText("German")
        return "de"
    if isinstance(focus, Switch):
        focus.toggle()
        return focus.isChecked()
    if isinstance(focus, QSpinBox | QDoubleSpinBox):
        focus.stepBy(1 if focus.value() < focus.maximum() else -1)
        return pytest.approx(focus.value())
    if isinstance(focus, QComboBox):
        focus.setCurrentIndex(focus.count() - 1 if focus.currentIndex() == 0 else 0)
        return row.field.choices[focus.currentIndex()].value
    if isinstance(focus, QPlainTextEdit):
        focus.setPlainText("one\n\n two ")
        application().sendEvent(focus, QFocusEvent(QEvent.Type.FocusOut))
        return ("one", "two")
    assert isinstance(focus, QLineEdit)
    text = SAMPLES.get(row.field.path[-1], "abc")
    focus.setText(text)
    focus.editingFinished.emit()
    return Path(text) if row.field.kind is FieldKind.FILE else text


def test_every_generated_row_stores_resets_and_is_undone(desk: SettingsDesk) -> None:
    """All settings of all pages, through their controls."""
    edits(desk).change(("profiles",), {"work": {"applications": ["code"]}})
    settled = stored(desk)
    seen = 0
    for page in desk.pages():
        rows = dict(page.rows)
        if isinstance(page, ProfilesPage) and page.form is not None:
            rows |= page.form.rows
        for path, row in rows.items():
            if page.place is Place.HOTKEYS and row.field.kind is FieldKind.TEXT:
                continue  # keys, not text: below
            before = edits(desk).value(path)
            wanted = other_value(row)
            assert edits(desk).value(path) == wanted, row.field.name
            assert edits(desk).value(path) != before, row.field.name
            edits(desk).undo()
            assert edits(desk).value(path) == before, row.field.name
            row.editor.show(before)
            seen += 1
    assert stored(desk) == settled
    assert seen > 30


def test_every_setting_is_on_exactly_one_page(desk: SettingsDesk) -> None:
    by_hand = {("keyboard",), ("model",), ("profiles",)}
    found = [path for page in desk.pages() for path in page.rows]
    assert len(found) == len(set(found))
    assert set(found) | by_hand == {field.path for field in edits(desk).fields}


def test_a_problem_stands_beside_its_field_and_goes_away(desk: SettingsDesk) -> None:
    page = desk.page(Place.DISPLAY)
    row = page.rows[("lights", "night_from")]
    line = row.editor.focus
    assert isinstance(line, QLineEdit)
    line.setText("25:99")
    line.editingFinished.emit()
    assert row._trouble.isVisible()
    assert "⚠" in row._trouble.text()
    assert line.accessibleDescription() == row._trouble.text()
    assert stored(desk).lights.night_from == ""
    line.setText("22:30")
    line.editingFinished.emit()
    assert not row._trouble.isVisible()
    assert stored(desk).lights.night_from == "22:30"


def test_a_reset_button_is_there_when_there_is_something_to_reset(desk: SettingsDesk) -> None:
    page = desk.page(Place.COMPANION)
    assert isinstance(page, CompanionPage)
    row = page.rows[("chat", "max_tokens")]
    settled = stored(desk)
    assert not row._reset.isVisible()
    edits(desk).change(row.field.path, 7)
    assert row._reset.isVisible()
    row._reset.click()
    assert stored(desk) == settled
    assert not row._reset.isVisible()


def test_undo_by_button_and_by_keys(desk: SettingsDesk) -> None:
    desk.page(Place.COMPANION)
    settled = stored(desk)
    assert not desk.window._bar.isVisible()
    edits(desk).change(("chat", "max_tokens"), 7)
    edits(desk).change(("mode",), ModeName.CHAT)
    assert desk.window._bar.isVisible()
    assert desk.window._done.text() == "Changed: Mode"
    desk.window.undo_button.click()
    assert stored(desk).mode is ModeName.SUGGEST
    QTest.keyClick(desk.window, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert stored(desk) == settled
    assert not desk.window._bar.isVisible()


def test_a_change_by_somebody_else_is_shown(desk: SettingsDesk) -> None:
    page = desk.page(Place.COMPANION)
    box = page.rows[("mode",)].editor.focus
    assert isinstance(box, QComboBox)
    desk.settings.changed_elsewhere(Settings(mode=ModeName.REACT))
    settle(0.02)
    assert box.currentText() == "Show moods"


# ---------------------------------------------------------------- status, privacy


def test_status_tells_the_state_and_commands(desk: SettingsDesk) -> None:
    page = desk.page(Place.STATUS)
    assert isinstance(page, StatusPage)
    assert page.keyboard.text() == "Keyboard: Thock virtual keyboard"
    assert page.engine.text() == "Model: smollm2, ready"
    page.pauses[0].click()
    assert page.keys.text() == "Paused for 15 min: no key is read."
    assert page.resume.isVisible()
    assert not page.pauses[0].isVisible()
    page.resume.click()
    assert page.keys.text() == "Keys are read."
    away = "VIA is using the keyboard. Close it, then resume."
    desk.companion.become(replace(desk.companion.view, away=away, is_left_open=True))
    assert page.keyboard.text() == away
    assert page.keys.text() == "No key is read."
    page.resume.click()
    assert page.keyboard.text() == "Keyboard: Thock virtual keyboard"
    assert page.pauses[0].isVisible()
    page.mode.setCurrentIndex(1)
    page.mode.activated.emit(1)
    assert desk.companion.view.mode == "chat"
    assert stored(desk).mode is ModeName.SUGGEST
    desk.companion.become(replace(desk.companion.view, engine="failed", trouble="no memory"))
    assert page.engine.text() == "⚠ no memory"
    desk.companion.become(replace(desk.companion.view, latency_ms=12.4))
    assert page.latency.text() == "last answer after 12 ms"


def test_without_a_companion_nothing_pretends(desk: SettingsDesk) -> None:
    for page in desk.pages():
        desk.companion.become(CompanionView())
        assert desk.window.away.isVisible()
        if isinstance(page, StatusPage):
            assert not page.ask.send.isEnabled()
            assert not page.mode.isEnabled()
        if isinstance(page, PrivacyPage):
            assert not page.pause.isEnabled()


def test_a_choice_of_numbers_has_its_unit(desk: SettingsDesk) -> None:
    page = desk.page(Place.COMPANION)
    assert isinstance(page, CompanionPage)
    box = page.rows[("suggest", "context_tokens")].editor.focus
    assert isinstance(box, QComboBox)
    texts = [box.itemText(index) for index in range(box.count())]
    assert texts == ["128 tokens", "256 tokens", "512 tokens", "1024 tokens"]
    box.setCurrentIndex(2)
    assert stored(desk).suggest.context_tokens == 512


def test_a_question_can_be_about_the_clipboard(desk: SettingsDesk) -> None:
    desk.window.open_place("ask")
    page = desk.window.page
    assert isinstance(page, StatusPage)
    QGuiApplication.clipboard().setText("  some text\n")
    page.ask.sources[TextSource.CLIPBOARD].click()
    assert page.ask.answer.text() == "some text"
    page.ask.question.setText("Why?")
    page.ask.sources[TextSource.CLIPBOARD].click()
    assert page.ask.answer.text() == "Why?\n\nsome text"
    QGuiApplication.clipboard().setText("x" * 10_000)
    page.ask.question.setText("y" * 4000)
    page.ask.sources[TextSource.CLIPBOARD].click()
    assert len(page.ask.answer.text()) <= MAX_ASK_CHARS
    QGuiApplication.clipboard().clear()
    page.ask.sources[TextSource.CLIPBOARD].click()
    assert page.ask.answer.text() == "⚠ the clipboard holds no text"
    assert page.ask.send.text() == "Ask"


def test_a_question_is_answered_and_forgotten(desk: SettingsDesk) -> None:
    desk.window.open_place("ask")
    page = desk.window.page
    assert isinstance(page, StatusPage)
    page.ask.question.setText("secret question")
    page.ask.question.returnPressed.emit()
    assert page.ask.answer.text() == "secret question"
    page.ask.copy.click()
    assert QGuiApplication.clipboard().text() == "secret question"
    desk.page(Place.ABOUT)
    assert "secret" not in page.ask.answer.text()


def test_the_last_answer_is_copied_on_demand(desk: SettingsDesk) -> None:
    page = desk.page(Place.STATUS)
    assert isinstance(page, StatusPage)
    page.copy.click()
    assert QGuiApplication.clipboard().text() == "An answer of before."


def test_privacy_pauses_and_forgets(desk: SettingsDesk) -> None:
    page = desk.page(Place.PRIVACY)
    assert isinstance(page, PrivacyPage)
    page.pause.click()
    assert desk.companion.view.is_paused
    assert page.pause.text() == page.pause.accessibleName() == "Resume"
    page.pause.click()
    assert not desk.companion.view.is_paused
    page.forget.click()
    assert desk.companion.forgotten == 1


# ---------------------------------------------------------------- keyboard, hotkeys


def test_a_keyboard_is_chosen_from_what_is_connected(desk: SettingsDesk, qtbot: QtBot) -> None:
    page = desk.page(Place.KEYBOARD)
    assert isinstance(page, KeyboardPage)
    qtbot.waitUntil(lambda: len(page.choices) == 3)
    assert list(page.choices) == ["auto", "1-4", "virtual"]
    assert page.choices["auto"].isChecked()
    assert page._result.text() == "1 of 2 devices could be a keyboard for Thock."
    page.choices["1-4"].click()
    assert stored(desk).keyboard == "1-4"
    desk.window.undo()
    assert page.choices["auto"].isChecked()
    edits(desk).change(("keyboard",), "2-9")
    assert page.choices["2-9"].isChecked()


def test_the_key_capture_says_which_key_it_was(desk: SettingsDesk) -> None:
    page = desk.page(Place.HOTKEYS)
    assert isinstance(page, HotkeysPage)
    capture = page.capture
    capture.begin.click()
    assert capture.text.text() == "Press the key on your keyboard…"
    assert desk.companion.is_capturing
    desk.companion.press(PressedKey(None, None, None, macro=1))
    settle(0.02)
    assert capture.text.text() == "Companion key 2: ask"
    capture.begin.click()
    desk.companion.press(PressedKey(2, 3, 4))
    settle(0.02)
    assert capture.text.text() == "An ordinary key, in row 2 and column 3 of the keyboard."
    capture.begin.click()
    capture.begin.click()
    assert not desk.companion.is_capturing
    capture.begin.click()
    desk.page(Place.ABOUT)
    assert not desk.companion.is_capturing
    assert capture.key is None


def test_the_key_capture_gives_up_after_a_while(desk: SettingsDesk, qtbot: QtBot) -> None:
    page = desk.page(Place.HOTKEYS)
    assert isinstance(page, HotkeysPage)
    page.capture._timer.setInterval(10)
    page.capture.begin.click()
    qtbot.waitUntil(lambda: page.capture.state is Capture.TIMED_OUT)
    assert not desk.companion.is_capturing


def test_a_shortcut_is_pressed_to_set_it(desk: SettingsDesk) -> None:
    page = desk.page(Place.HOTKEYS)
    row = page.rows[("hotkeys", "cancel")]
    control = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
    QTest.keyClick(row.editor.edit, Qt.Key.Key_F5, control)  # type: ignore[attr-defined]
    row.editor.edit.editingFinished.emit()  # type: ignore[attr-defined]
    assert stored(desk).hotkeys.cancel == "<ctrl>+<shift>+<f5>"
    row.editor.clear.click()  # type: ignore[attr-defined]
    assert stored(desk).hotkeys.cancel == ""


def test_two_settings_with_one_shortcut_are_told(desk: SettingsDesk) -> None:
    page = desk.page(Place.HOTKEYS)
    assert isinstance(page, HotkeysPage)
    assert not page.conflicts.isVisible()
    edits(desk).change(("hotkeys", "pause"), stored(desk).hotkeys.ask)
    assert page.conflicts.text() == "⚠ “Ask” and “Pause or resume” have the same shortcut."
    desk.window.undo()
    assert not page.conflicts.isVisible()


# ---------------------------------------------------------------- general, profiles, the rest


def test_export_and_import_bring_everything_back(desk: SettingsDesk, tmp_path: Path) -> None:
    page = desk.page(Place.GENERAL)
    assert isinstance(page, GeneralPage)
    edits(desk).change(("chat", "max_tokens"), 7)
    edits(desk).change(("profiles",), {"work": {"applications": ["code"]}})
    wanted = stored(desk)
    page.export_to(tmp_path / "out.toml")
    page.reset_everything()
    assert stored(desk) == Settings()
    page.import_from(tmp_path / "out.toml")
    assert stored(desk) == wanted
    desk.window.undo()
    assert stored(desk) == Settings()


def test_a_bad_import_says_why_and_changes_nothing(desk: SettingsDesk, tmp_path: Path) -> None:
    page = desk.page(Place.GENERAL)
    assert isinstance(page, GeneralPage)
    page.import_from(tmp_path / "missing.toml")
    assert "No such file" in page.result.text()
    bad = tmp_path / "bad.toml"
    bad.write_text('layout = "klingon"\n[chat]\nmax_tokens = 5\n')
    page.import_from(bad)
    assert "klingon" in page.result.text()
    assert stored(desk) == Settings.model_validate({"chat": {"max_tokens": 5}})
    page.export_to(tmp_path / "no" / "such" / "folder.toml")
    assert page.result.text().startswith("⚠")


def test_profiles_come_change_their_name_and_go(desk: SettingsDesk) -> None:
    page = desk.page(Place.PROFILES)
    assert isinstance(page, ProfilesPage)
    assert page.empty.isVisible()
    page.add_profile("work")
    page.add_profile("play")
    assert list(stored(desk).profiles) == ["work", "play"]
    assert page.name == "play"
    page.choose("work")
    page.rename_profile("office")
    assert set(stored(desk).profiles) == {"office", "play"}
    assert page.form is not None
    mode = page.form.rows[("profiles", "office", "mode")].editor.focus
    assert isinstance(mode, QComboBox)
    assert mode.itemText(0) == "As in the settings"
    mode.setCurrentIndex(2)
    assert stored(desk).profiles["office"].mode is ModeName.CHAT
    page.remove_profile()
    page.remove_profile()
    assert stored(desk).profiles == {}
    assert page.form is None
    desk.window.undo()
    desk.window.undo()
    assert stored(desk).profiles["office"].mode is ModeName.CHAT
    page.add_profile("x" * 100)
    assert page.trouble.isVisible()


def test_diagnostics_sort_by_need_and_can_be_copied(desk: SettingsDesk, qtbot: QtBot) -> None:
    page = desk.page(Place.DIAGNOSTICS)
    assert isinstance(page, DiagnosticsPage)
    qtbot.waitUntil(lambda: page._summary.text() == "To look at: 3")
    page.copy.click()
    assert "none installed" in QGuiApplication.clipboard().text()
    desk.computer.findings = desk.computer.findings[:1]
    page.check()
    qtbot.waitUntil(lambda: page._summary.text() == "Everything is in order.")


def test_the_report_is_shown_before_it_is_written(
    desk: SettingsDesk, qtbot: QtBot, tmp_path: Path
) -> None:
    page = desk.page(Place.DIAGNOSTICS)
    assert isinstance(page, DiagnosticsPage)
    page.report.click()
    qtbot.waitUntil(lambda: page.dialog is not None)
    assert page.dialog is not None
    assert "===== versions.txt\nthock 0.1.0" in page.dialog.text.toPlainText()
    path = tmp_path / "report.zip"
    page.dialog.write_to(path)
    assert page.dialog.outcome.text() == f"Written to {path}."
    with zipfile.ZipFile(path) as report:
        assert report.namelist() == ["versions.txt", "doctor.txt"]
    page.dialog.write_to(tmp_path / "no" / "folder" / "report.zip")
    page.dialog.shut.click()
    assert not page.dialog.isVisible()


def test_about_starts_the_first_steps(desk: SettingsDesk) -> None:
    page = desk.page(Place.ABOUT)
    assert isinstance(page, AboutPage)
    page.assistant.click()
    assert desk.app.assistant is not None
    assert desk.app.assistant.isVisible()
