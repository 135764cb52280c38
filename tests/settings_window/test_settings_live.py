# SPDX-License-Identifier: Apache-2.0
"""The window and the running companion: how soon a setting holds, and that the preview does not lie."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QComboBox, QSpinBox
from pytestqt.qtbot import QtBot

from app.companion.macros import MacroKey
from app.config.store import SettingsStore
from app.settings import ModeName, Settings
from app.settings_window.application import SettingsApp
from app.settings_window.companion_link import CompanionLink
from app.settings_window.labels import Place
from app.settings_window.oled_view import ON
from app.settings_window.pages.display import DisplayPage
from app.settings_window.pages.hotkeys import HotkeysPage
from app.settings_window.pages.status import StatusPage
from app.settings_window.ports import Presence
from firmware_bridge.display.image import pixel_rows
from firmware_bridge.firmware.virtual_core import BoardConfig
from tests.helpers.settings_desk import FakeComputer, settle
from tests.helpers.settings_program import RunningProgram
from tests.helpers.timing import undisturbed
from tests.helpers.waiting import wait_until

LIMIT_S = 0.1  # from the control to the companion's state
WAIT_MS = 60_000


class Live:
    """A running companion, and the window on it."""

    def __init__(self, program: RunningProgram, folder: Path) -> None:
        self.program = program
        self.link = CompanionLink(folder, SettingsStore(folder / "settings.toml"))
        computer = FakeComputer(folder / "models").computer()
        self.app = SettingsApp(self.link, self.link, computer)
        self.window = self.app.window
        self.window.show()
        self.link.start()

    def close(self) -> None:
        self.window.close()
        self.link.close()
        self.window.deleteLater()
        settle(0.02)


@pytest.fixture
def live(tmp_path: Path, qtbot: QtBot) -> Iterator[Live]:
    with RunningProgram(tmp_path, BoardConfig(panel_height=64)) as program:
        wait_until(lambda: bool(program.state and program.state.keyboard))
        live = Live(program, tmp_path)
        qtbot.waitUntil(
            lambda: live.app.tools.bridge.view.presence is Presence.HERE, timeout=WAIT_MS
        )
        yield live
        live.close()


def test_a_setting_reaches_the_companion_within_100_ms(live: Live) -> None:
    live.window.go_to(Place.COMPANION)
    row = live.window.page.rows[("mode",)]
    box = row.editor.focus
    assert isinstance(box, QComboBox)
    took = []
    for index in (1, 2, 0, 1, 2, 0, 1, 2, 0):
        began = time.perf_counter()
        box.setCurrentIndex(index)
        wanted = list(ModeName)[index]
        wait_until(lambda wanted=wanted: _mode(live) is wanted)
        took.append(time.perf_counter() - began)
    print(f"from the control to the companion: {sorted(took)[len(took) // 2] * 1e3:.1f} ms")
    assert undisturbed(took) < LIMIT_S
    assert live.program.store.load().settings.mode is ModeName.SUGGEST


def _mode(live: Live) -> ModeName | None:
    state = live.program.state
    return None if state is None else state.mode


def preview_page(live: Live) -> DisplayPage:
    live.window.go_to(Place.DISPLAY)
    page = live.window.page
    assert isinstance(page, DisplayPage)
    return page


def test_the_preview_is_what_the_keyboard_holds_bit_for_bit(live: Live, qtbot: QtBot) -> None:
    preview = preview_page(live).preview
    keyboard = live.program.keyboard
    seen = []
    qtbot.waitUntil(lambda: live.app.tools.bridge.view.engine == "ready", timeout=WAIT_MS)
    steps: list[Callable[[], object]] = [
        lambda: live.program.type("hello wo"),
        lambda: keyboard.macro(MacroKey.NEXT_MODE),
        lambda: live.program.type("why"),
        lambda: keyboard.macro(MacroKey.PAUSE),
        lambda: keyboard.macro(MacroKey.PAUSE),
    ]
    for step in steps:
        before = keyboard.panel()
        step()
        qtbot.waitUntil(lambda before=before: keyboard.panel() != before, timeout=WAIT_MS)
        settle(0.3)
        qtbot.waitUntil(lambda: preview.oled.frame == keyboard.panel(), timeout=WAIT_MS)
        assert keyboard.display_taken
        seen.append(keyboard.panel())
        assert len(preview.lights.colours) == keyboard.config.led_count
    assert len({frame.pages for frame in seen}) >= 3


def test_the_widget_paints_the_bits_of_the_panel(live: Live, qtbot: QtBot) -> None:
    preview = preview_page(live).preview
    live.program.type("some words")
    qtbot.waitUntil(lambda: preview.oled.frame == live.program.keyboard.panel(), timeout=WAIT_MS)
    assert preview.oled.frame is not None
    image = preview.oled.grab().toImage()
    rect = preview.oled.picture_rect()
    scale = rect.width() / preview.oled.frame.width
    for y, bits in enumerate(pixel_rows(preview.oled.frame)):
        for x, bit in enumerate(bits):
            at = int(rect.left() + (x + 0.5) * scale), int(rect.top() + (y + 0.5) * scale)
            assert (image.pixel(*at) == ON) == bool(bit), (x, y)


def test_frames_are_sent_only_while_they_are_looked_at(live: Live, qtbot: QtBot) -> None:
    preview = preview_page(live).preview
    qtbot.waitUntil(lambda: preview.oled.isVisible(), timeout=WAIT_MS)
    assert "screen" in live.link._open
    live.window.go_to(Place.ABOUT)
    assert "screen" not in live.link._open
    assert preview.oled.frame is not None
    assert not any(preview.oled.frame.pages)
    live.window.go_to(Place.DISPLAY)
    assert "screen" in live.link._open
    live.window.hide()
    assert "screen" not in live.link._open


def test_a_question_is_answered(live: Live, qtbot: QtBot) -> None:
    live.window.open_place("ask")
    page = live.window.page
    assert isinstance(page, StatusPage)
    qtbot.waitUntil(lambda: live.app.tools.bridge.view.engine == "ready", timeout=WAIT_MS)
    for _ in range(2):
        page.ask.question.setText("What is it?")
        page.ask.send.click()
        qtbot.waitUntil(lambda: page.ask.answer.text() == "A keyboard has keys.", timeout=WAIT_MS)
        qtbot.waitUntil(lambda: page.ask.send.text() == "Ask", timeout=WAIT_MS)


def test_the_next_key_is_captured(live: Live, qtbot: QtBot) -> None:
    live.window.go_to(Place.HOTKEYS)
    page = live.window.page
    assert isinstance(page, HotkeysPage)
    page.capture.begin.click()

    def is_captured() -> bool:
        live.program.keyboard.macro(MacroKey.CANCEL)  # until the companion was asked for it
        return page.capture.text.text() == "Companion key 4: cancel"

    qtbot.waitUntil(is_captured, timeout=WAIT_MS)


def test_commands_and_other_peoples_changes(live: Live, qtbot: QtBot) -> None:
    live.window.go_to(Place.STATUS)
    page = live.window.page
    assert isinstance(page, StatusPage)
    page.pauses[2].click()
    qtbot.waitUntil(lambda: page.keys.text() == "Paused: no key is read.", timeout=WAIT_MS)
    page.resume.click()
    qtbot.waitUntil(lambda: page.keys.text() == "Keys are read.", timeout=WAIT_MS)
    other = CompanionLink(live.program.folder)
    other.change({"chat": {"max_tokens": 17}})
    other.close()
    edits = live.app.tools.edits
    qtbot.waitUntil(lambda: edits.settings.chat.max_tokens == 17, timeout=WAIT_MS)


def test_a_refused_change_is_told_beside_the_field(live: Live) -> None:
    live.program.store.path.write_text("schema_version = 99\n")
    live.window.go_to(Place.COMPANION)
    row = live.window.page.rows[("chat", "max_tokens")]
    box = row.editor.focus
    assert isinstance(box, QSpinBox)
    box.setValue(7)
    assert "newer Thock" in row._trouble.text()
    assert box.value() == 96


def test_the_window_outlives_the_companion_and_finds_the_next(
    live: Live, qtbot: QtBot, tmp_path: Path
) -> None:
    bridge = live.app.tools.bridge
    preview = preview_page(live).preview
    live.program.stop()
    qtbot.waitUntil(lambda: bridge.view.presence is Presence.AWAY, timeout=WAIT_MS)
    assert live.window.away.isVisible()
    assert live.app.tools.edits.change(("chat", "max_tokens"), 7) is None
    store = SettingsStore(tmp_path / "settings.toml")
    assert store.load().settings.chat.max_tokens == 7
    with RunningProgram(tmp_path) as program:
        qtbot.waitUntil(lambda: bridge.view.presence is Presence.HERE, timeout=WAIT_MS)
        qtbot.waitUntil(lambda: preview.oled.frame == program.keyboard.panel(), timeout=WAIT_MS)
        assert live.app.tools.edits.change(("chat", "max_tokens"), 8) is None
        assert store.load().settings.chat.max_tokens == 8


def test_nothing_that_was_typed_is_logged_or_stored(
    live: Live, qtbot: QtBot, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level(logging.DEBUG)
    preview = preview_page(live).preview
    live.program.type("zyxsecret ")
    qtbot.waitUntil(lambda: "zyxsecret" in preview._spoken(), timeout=WAIT_MS)
    live.window.open_place("ask")
    page = live.window.page
    assert isinstance(page, StatusPage)
    page.ask.question.setText("zyxquestion")
    page.ask.send.click()
    qtbot.waitUntil(lambda: page.ask.send.text() == "Ask", timeout=WAIT_MS)
    live.app.tools.edits.change(("chat", "max_tokens"), 7)
    assert "zyx" not in caplog.text
    assert "zyx" not in repr(preview.__dict__) + repr(page.ask.__dict__)
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert b"zyx" not in path.read_bytes(), path


def test_without_a_companion_the_file_is_read_and_written(tmp_path: Path) -> None:
    store = SettingsStore(tmp_path / "settings.toml")
    link = CompanionLink(tmp_path, store)
    assert link.load().settings == Settings()
    assert link.change({"chat": {"max_tokens": 5}}).chat.max_tokens == 5
    assert store.load().settings.chat.max_tokens == 5
