# SPDX-License-Identifier: Apache-2.0
"""Model & engine: choose, add, remove, download, plan and measure; and the first steps."""

from __future__ import annotations

import json
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtWidgets import QSpinBox
from pytestqt.qtbot import QtBot

from app.first_run import FirstRun
from app.models.errors import DownloadError
from app.models.store import InstalledModel
from app.settings_window.assistant import Assistant
from app.settings_window.assistant_steps import KeyboardStep, ModelStep, PermissionStep, TrialStep
from app.settings_window.first_steps import Situation, Step, locked_among
from app.settings_window.labels import Place
from app.settings_window.memory_plan import Fit, plan_for, plan_of
from app.settings_window.pages.engine import EnginePage
from app.settings_window.ports import CompanionView, Presence
from app.settings_window.speed_test import SpeedTestError, measure_speed
from engine.client import FAKE_ENGINE
from engine.config import ModelConfig
from tests.helpers.settings_desk import BOARD, PLAIN, SettingsDesk, settle


def engine_page(desk: SettingsDesk) -> EnginePage:
    page = desk.page(Place.ENGINE)
    assert isinstance(page, EnginePage)
    return page


def test_models_are_listed_with_their_plan(desk: SettingsDesk, qtbot: QtBot) -> None:
    page = engine_page(desk)
    (row,) = page.models.rows
    assert row.choice.isChecked()  # without a choice, the first
    qtbot.waitUntil(lambda: "Memory" in row.facts.text())
    assert row.facts.text() == (
        "On disk: 1 MB\nMemory: 864 MB for 135 million weights and 2048 tokens; "
        "8.0 GB of 16.0 GB are free."
    )


def test_another_context_length_makes_another_plan(desk: SettingsDesk, qtbot: QtBot) -> None:
    page = engine_page(desk)
    box = page.rows[("max_context",)].editor.focus
    assert isinstance(box, QSpinBox)
    box.setValue(512)
    qtbot.waitUntil(lambda: "512 tokens" in page.models.rows[0].facts.text())


def test_a_window_that_the_context_cannot_hold_is_told(desk: SettingsDesk, qtbot: QtBot) -> None:
    page = engine_page(desk)
    qtbot.waitUntil(lambda: "Memory" in page.models.rows[0].facts.text())
    desk.edits.change(("max_context",), 256)
    qtbot.waitUntil(lambda: "256 tokens" in page.models.rows[0].facts.text())
    assert "Suggestions" not in page.models.rows[0].facts.text()
    desk.edits.change(("suggest", "context_tokens"), 512)
    told = "Suggestions cannot see 512 tokens with it: its context holds 256."
    assert told in page.models.rows[0].facts.text()
    desk.edits.change(("suggest", "context_tokens"), 128)
    assert "Suggestions" not in page.models.rows[0].facts.text()


def test_a_model_is_chosen_and_removed(desk: SettingsDesk) -> None:
    desk.computer.add_model("zebra")
    page = engine_page(desk)
    page.models.rows[1].choice.click()
    assert desk.settings.settings.model == Path("zebra")
    page.models.rows[0].remove.click()
    settle(0.02)
    assert [row.model.name for row in page.models.rows] == ["zebra"]


def test_the_speed_is_measured_on_demand(desk: SettingsDesk, qtbot: QtBot) -> None:
    row = engine_page(desk).models.rows[0]
    row.test.click()
    qtbot.waitUntil(lambda: "Measured" in row.facts.text())
    assert "loaded in 1.5 s, first word after 30 ms, then 60 tokens/s" in row.facts.text()


def test_a_download_shows_its_progress_and_is_used(desk: SettingsDesk, qtbot: QtBot) -> None:
    (desk.computer.folder / "small-chat.gguf").unlink()
    page = engine_page(desk)
    row = page.downloads["small"]
    row.get.click()
    qtbot.waitUntil(lambda: bool(page.models.rows))
    assert desk.settings.settings.model == Path("small")
    assert "installed" in row.state.text()
    assert not row.get.isEnabled()
    assert not row.bar.isVisible()


def test_a_download_can_be_called_off_and_tells_its_failure(
    desk: SettingsDesk, qtbot: QtBot
) -> None:
    page = engine_page(desk)
    row = page.downloads["small"]
    begun, go_on = threading.Event(), threading.Event()

    def fetch(*_: object, progress: object) -> InstalledModel:
        assert callable(progress)
        begun.set()
        go_on.wait(5)
        progress(1)
        raise AssertionError("it was called off")

    row._computer = replace(row._computer, fetch=fetch)
    row.get.click()
    qtbot.waitUntil(begun.is_set)
    assert row.get.text() == "Cancel"
    assert row.bar.isVisible()
    row.get.click()
    go_on.set()
    qtbot.waitUntil(lambda: row.get.text() == "Download")
    assert "⚠" not in row.state.text()

    def fail(*_: object, progress: object) -> InstalledModel:
        raise DownloadError("this machine seems to be offline.")

    row._computer = replace(row._computer, fetch=fail)
    row.get.click()
    qtbot.waitUntil(lambda: row.state.text() == "⚠ this machine seems to be offline.")


def test_a_file_of_the_person_is_linked(desk: SettingsDesk, qtbot: QtBot, tmp_path: Path) -> None:
    page = engine_page(desk)
    own = tmp_path / "own.gguf"
    own.write_bytes(b"GGUF")
    page.add_path(own)
    qtbot.waitUntil(lambda: [r.model.name for r in page.models.rows] == ["own", "small-chat"])
    page.add_path(tmp_path / "missing.gguf")
    qtbot.waitUntil(lambda: "no such file" in page.result.text())


def test_a_link_to_nothing_says_so(desk: SettingsDesk, tmp_path: Path) -> None:
    (desk.computer.folder / "gone.gguf").symlink_to(tmp_path / "gone.gguf")
    row = engine_page(desk).models.rows[0]
    assert row.facts.text() == "⚠ The file that this entry leads to is gone."
    assert not row.choice.isEnabled()


def test_the_engine_is_loaded_and_unloaded(desk: SettingsDesk) -> None:
    page = engine_page(desk)
    assert page.toggle.text() == "Unload model"
    page.toggle.click()
    assert desk.companion.view.engine == "stopped"
    assert page.state.text() == "No model is in memory."
    page.toggle.click()
    assert desk.companion.view.engine == "ready"


# ---------------------------------------------------------------- plan and speed


def test_the_plan_counts_weights_and_cache() -> None:
    config = ModelConfig(
        architecture="llama", vocab_size=100, dim=8, n_layers=2, n_heads=2, n_kv_heads=1,
        head_dim=4, ffn_dim=16, context_length=64, norm_eps=1e-5, rope_theta=1e4,
    )  # fmt: skip
    plan = plan_of(config, 128, free=10**9, total=10**9)
    assert plan.weights == config.parameters * 4
    assert plan.context == 64
    assert plan.cache == 2 * 2 * 1 * 4 * 64 * 4
    assert plan.fit is Fit.FITS
    assert plan.needed > plan.weights + plan.cache  # and what runs it
    tied = replace(config, tied_head=True)
    assert plan_of(tied, 128, free=1, total=1).weights == (tied.parameters + 100 * 8) * 4
    assert plan_of(config, 128, free=1, total=10**9).fit is Fit.TIGHT
    assert plan_of(config, 128, free=1, total=1).fit is Fit.TOO_LARGE


@pytest.mark.model
def test_the_plan_of_the_default_model(smollm2: Path) -> None:
    plan = plan_for(smollm2, 2048)
    assert plan.parameters == 134_515_008
    assert plan.cache == 2 * 30 * 3 * 64 * 2048 * 4


def test_the_speed_of_the_scripted_engine(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"replies": ["one two three four"], "token_ms": 20}))
    speed = measure_speed(script, 256, lambda: None, FAKE_ENGINE)
    assert speed.load_s > 0
    assert speed.first_token_ms >= 15
    assert 0 < speed.tokens_per_s < 60


@pytest.mark.expected_log("engine given up")
def test_a_test_of_what_is_no_model_says_why(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text("{")
    with pytest.raises(SpeedTestError, match="script"):
        measure_speed(script, 256, lambda: None, FAKE_ENGINE)


# ---------------------------------------------------------------- first steps


def test_only_needed_steps_come() -> None:
    assert Situation(is_connected=True, has_model=True).steps == (Step.WELCOME, Step.TEST)
    assert Situation(locked=(BOARD,)).steps == tuple(Step)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="udev")
def test_a_keyboard_whose_node_may_not_be_opened_is_locked() -> None:
    assert locked_among([BOARD, PLAIN]) == (BOARD,)  # there is no such node here


def assistant_of(desk: SettingsDesk) -> Assistant:
    desk.app.start_assistant()
    assert desk.app.assistant is not None
    return desk.app.assistant


def test_the_first_steps_from_nothing(desk: SettingsDesk, qtbot: QtBot) -> None:
    (desk.computer.folder / "small-chat.gguf").unlink()
    desk.companion.become(CompanionView(presence=Presence.HERE, mode="suggest", engine="stopped"))
    assistant = assistant_of(desk)
    qtbot.waitUntil(lambda: assistant.steps == tuple(Step))
    assistant.next.click()
    assert isinstance(assistant.view, PermissionStep)
    assert "Test board" in assistant.view.names.text()
    desk.computer.candidates = ()
    assistant.next.click()
    assert isinstance(assistant.view, KeyboardStep)
    qtbot.waitUntil(lambda: Step.PERMISSION not in assistant.steps)
    assistant.view.virtual.click()
    assert desk.settings.settings.keyboard == "virtual"
    assert assistant.view.state.text() == "✓ The virtual keyboard is chosen."
    assistant.next.click()
    assert isinstance(assistant.view, ModelStep)
    assistant.view.rows[0].get.click()
    qtbot.waitUntil(lambda: desk.settings.settings.model == Path("small"))
    assistant.next.click()
    assert isinstance(assistant.view, TrialStep)
    assert assistant.next.text() == "Done"
    assistant.view.ask.send.click()
    assert assistant.view.ask.answer.text() == "What is a keyboard?"
    assistant.next.click()
    assert not assistant.isVisible()


def test_nothing_is_asked_where_nothing_is_missing(desk: SettingsDesk, qtbot: QtBot) -> None:
    desk.computer.candidates = ()
    assistant = assistant_of(desk)
    settle()
    assert assistant.steps == (Step.WELCOME, Step.TEST)
    assistant.next.click()
    assert isinstance(assistant.view, TrialStep)
    assistant.back.click()
    assert assistant.step is Step.WELCOME


def test_the_first_steps_come_once(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    assert FirstRun(folder).is_due
    FirstRun(folder).note()
    assert not FirstRun(folder).is_due
    blocked = tmp_path / "file"
    blocked.write_text("")
    FirstRun(blocked).note()  # no folder can be made there


def test_the_first_steps_are_over_when_somebody_took_or_closed_them_not_when_they_are_seen(
    desk: SettingsDesk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, end in enumerate((Assistant.accept, Assistant.reject, Assistant.close)):
        first_run = FirstRun(tmp_path / str(number))
        monkeypatch.setattr(desk.app, "_first_run", first_run)
        desk.app.tools.bridge.asked_for.emit(
            "first-steps"
        )  # as `thock settings --page first-steps`
        assistant = desk.app.assistant
        assert assistant is not None
        assert assistant.isVisible()
        assert first_run.is_due
        end(assistant)
        assert not first_run.is_due
