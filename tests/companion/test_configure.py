# SPDX-License-Identifier: Apache-2.0
"""Settings that change while the companion runs."""

from __future__ import annotations

import pytest

from app.companion.messages import Configure
from app.settings import ChatSettings, ModeName, Settings, SuggestSettings
from engine.client import EngineState
from engine.messages import Chat, Suggest
from tests.helpers.companion import Desk


def test_the_next_request_follows_the_new_settings() -> None:
    desk = Desk()
    desk.type("a")
    desk.post(Configure(Settings(suggest=SuggestSettings(count=1))))
    desk.type("b")
    last = desk.engine.commands[-1]
    assert isinstance(last, Suggest)
    assert (last.text, last.count) == ("b", 1)


def test_the_mode_changes_with_its_setting_only() -> None:
    desk = Desk()
    desk.post(Configure(Settings(mode=ModeName.CHAT)))
    assert desk.state.mode is ModeName.CHAT
    desk.press_macro(0)
    assert desk.state.mode is ModeName.REACT
    desk.post(Configure(Settings(mode=ModeName.CHAT, context_chars=100)))
    assert desk.state.mode is ModeName.REACT


@pytest.mark.parametrize(
    ("allowed", "tokens", "kept"), [(4096, 128, 512), (4096, 1024, 4096), (64, 512, 64)]
)
def test_no_more_typing_is_kept_than_suggestions_see_or_the_person_allows(
    allowed: int, tokens: int, kept: int
) -> None:
    suggest = SuggestSettings.model_validate({"context_tokens": tokens})
    desk = Desk(Settings(context_chars=allowed, suggest=suggest))
    lengths = []
    for _ in range(kept // 8 + 1):
        desk.type("letters ", gap_s=0)
        lengths.append(len(desk.companion._machine._desk.context))
    assert max(lengths) == kept
    assert lengths[-1] < kept


def test_chat_is_made_anew() -> None:
    desk = Desk(Settings(mode=ModeName.CHAT))
    changed = desk.settings.model_copy(update={"chat": ChatSettings(max_tokens=7)})
    desk.post(Configure(changed))
    desk.type("why\n")
    last = desk.engine.commands[-1]
    assert isinstance(last, Chat)
    assert last.max_tokens == 7


def test_the_idle_wipe_follows() -> None:
    desk = Desk()
    desk.post(Configure(Settings(idle_wipe_s=10)))
    desk.take()
    desk.advance(11)
    assert desk.take()[-1] == "release"


def test_a_paused_companion_stays_paused_and_the_same_settings_change_nothing() -> None:
    desk = Desk()
    desk.type("abc")
    before = desk.picture
    desk.post(Configure(desk.settings))
    assert desk.picture == before
    desk.press_macro(2)
    desk.post(Configure(Settings(context_chars=100)))
    desk.type("x")
    assert desk.state.is_paused
    assert "paused" in desk.picture


def test_the_state_tells_the_lights_as_they_were_sent() -> None:
    desk = Desk()
    desk.engine_is(EngineState.RESTARTING, "it died")
    desk.advance(1)
    sent = [line for line in desk.take() if line.startswith("lights")][-1]
    fill = desk.state.lights.fill
    assert fill is not None
    assert sent.startswith(f"lights {fill.red},{fill.green},{fill.blue}")
    desk.advance(400)
    assert desk.state.lights.fill is None
