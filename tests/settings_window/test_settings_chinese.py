# SPDX-License-Identifier: Apache-2.0
"""In Chinese nothing on any page is left in English, but names."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QComboBox,
    QLabel,
    QLineEdit,
    QListWidget,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.config.problems import Problem
from app.i18n import Catalog, Language, told, translation
from app.platform.desktop import NoProgramError
from app.settings_window.edits import Edits
from app.settings_window.fake import FakeSettings
from app.settings_window.labels import Place
from app.settings_window.oled_view import OledView
from app.settings_window.pages.about import PARTS
from app.settings_window.pages.diagnostics import DiagnosticsPage
from app.settings_window.pages.engine import EnginePage
from app.settings_window.pages.general import GeneralPage
from app.settings_window.ports import CompanionView, Presence, SettingsRefusedError
from engine.texts import Text
from firmware_bridge.keys.layout import layout_names
from tests.helpers.english_left import english_left
from tests.helpers.settings_desk import ENTRY, TROUBLE, SettingsDesk, settle
from tests.helpers.settings_layout import is_own, shown

# What people called something, and what stands in files.
NAMES = {"Test board", ENTRY.title, "small-chat", "small.gguf", "work", "code", *PARTS}


# For every field something that it cannot take.
WRONG = (
    None, "", "klingon", "x" * 2000, -1, 10**9, 1.5, float("nan"), True, [], [3], {}, {"x": 1}, {"": {}},
    {"a" * 99: {}}, ["x"] * 999, {str(n): {} for n in range(99)}, "25:99", b"\xff",
)  # fmt: skip


def texts(root: QWidget) -> Iterator[str]:
    for widget in shown(root):
        if not is_own(widget):
            continue
        yield widget.accessibleName()
        if not isinstance(widget, OledView):  # its description is what stands on the keyboard
            yield widget.accessibleDescription()
        yield widget.toolTip()
        if isinstance(widget, QLabel | QAbstractButton | QLineEdit):
            yield widget.text()
        if isinstance(widget, QLineEdit):
            yield widget.placeholderText()
        if isinstance(widget, QAbstractSpinBox):
            yield widget.text()
        if isinstance(widget, QComboBox):
            yield from (widget.itemText(i) for i in range(widget.count()))
        if isinstance(widget, QListWidget):
            yield from (widget.item(i).text() for i in range(widget.count()))


def english(root: QWidget) -> set[str]:
    """Texts with a word that is not Chinese, though it could be."""
    return {text for text in texts(root) if english_left(text, *NAMES)}


def test_every_page_speaks_chinese(desk: SettingsDesk) -> None:
    """Half of the pages were made in English, and change; the others are made in Chinese."""
    desk.edits.change(("profiles",), {"work": {"applications": ["code"]}})
    for page in desk.pages():
        if page.place.value == "display":
            break
    desk.edits.change(("language",), Language.ZH_CN)
    for page in desk.pages():
        settle(0.2)
        assert not english(desk.window), page.place


def test_the_first_steps_speak_chinese(desk: SettingsDesk) -> None:
    desk.computer.folder.joinpath("small-chat.gguf").unlink()
    desk.edits.change(("language",), Language.ZH_CN)
    desk.app.start_assistant()
    assistant = desk.app.assistant
    assert assistant is not None
    while True:
        settle(0.1)
        assert not english(assistant), assistant.step
        if assistant.steps[-1] is assistant.step:
            break
        assistant.go_on()


def test_every_reason_why_a_value_is_not_taken_is_chinese() -> None:
    tr = translation(Language.ZH_CN, Catalog.SETTINGS)
    edits = Edits(FakeSettings())
    told_reasons = set()
    for field in edits.fields:
        for value in WRONG:
            problem = edits.change(field.path, value)
            if problem is not None:
                text = told(tr, problem.text)
                told_reasons.add(text)
                choices = (str(choice.value) for choice in field.choices)
                assert not english_left(text, "klingon", *layout_names(), *choices), (
                    field.path,
                    value,
                    text,
                )
            else:
                edits.undo()
    assert len(told_reasons) > 10


def test_whatever_fails_is_told_in_chinese(desk: SettingsDesk, qtbot: QtBot) -> None:
    """Each page with something on it that went wrong, then the same pages after a change of the language."""
    desk.settings.problems = (
        Problem(Text("line {number}", number=3), "This is not TOML; it was left out."),
        Problem("suggest.count", Text("At most {limit} is possible.", limit=3)),
    )
    desk.edits.change(("language",), Language.ZH_CN)
    failed = CompanionView(
        presence=Presence.HERE, mode="chat", engine="failed", trouble=TROUBLE, is_paused=True
    )
    desk.companion.become(failed)
    for page in desk.pages():
        settle(0.1)
        assert not english(desk.window), page.place
    engine = desk.page(Place.ENGINE)
    assert isinstance(engine, EnginePage)
    assert "blk.0.attn_q.weight" in engine.state.text()
    engine.add_path(desk.computer.folder / "nothing.gguf")
    qtbot.waitUntil(lambda: bool(engine.result.text()))
    assert not english(desk.window), engine.result.text()
    general = desk.page(Place.GENERAL)
    assert isinstance(general, GeneralPage)
    bad = desk.computer.folder / "bad.toml"
    bad.write_text(
        'language = "zh_CN"\nlayout = "klingon"\nnonsense = 1\nmode = 3\n[\n[suggest]\ncount = 99\n'
    )
    general.import_from(bad)
    places = ("mode", "layout", "nonsense", "klingon", *layout_names())
    assert not english_left(general.result.text(), *places), general.result.text()
    assert general.result.text().count("⚠") == 5
    general.import_from(desk.computer.folder / "missing.toml")
    assert not english_left(general.result.text(), str(desk.computer.folder))
    desk.computer.refusal = str(NoProgramError(Text("the folder is {folder}.", folder="/m")))
    diagnostics = desk.page(Place.DIAGNOSTICS)
    assert isinstance(diagnostics, DiagnosticsPage)
    diagnostics.logs.show_folder.click()
    assert diagnostics.logs.trouble.text() == "⚠ 文件夹在 /m。"
    diagnostics.copy.click()
    copied = QGuiApplication.clipboard().text()
    assert "0.5 GB" in copied
    assert not english_left(copied, *NAMES), copied
    desk.settings.refuse = str(
        SettingsRefusedError(
            Text("{path} cannot be written: {reason}.", path="/x", reason=Text("Permission denied"))
        )
    )
    desk.edits.change(("chat", "max_tokens"), 7)
    row = desk.page(Place.COMPANION).rows[("chat", "max_tokens")]
    row._commit(8)
    assert row._trouble.text() == "⚠ 无法写入 /x：权限不足。"
