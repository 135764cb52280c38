# SPDX-License-Identifier: Apache-2.0
"""The host tells its listeners, whatever one of them does."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.lifecycle.host import HostState
from app.settings import ModeName
from tests.helpers.running_host import RunningHost


@pytest.mark.expected_log("a listener failed with RuntimeError")
def test_a_listener_that_fails_keeps_nobody_from_the_news(tmp_path: Path) -> None:
    seen: list[ModeName] = []

    def fail(_state: HostState) -> None:
        raise RuntimeError("the panel is gone")

    with RunningHost(tmp_path) as running:
        running.host.listen(fail)
        running.host.listen(lambda state: seen.append(state.companion.mode))
        for mode in (ModeName.CHAT, ModeName.REACT, ModeName.SUGGEST):
            running.host.set_mode(mode)
            assert running.wait(lambda mode=mode: seen and seen[-1] is mode)
        running.host.change_settings({"suggest": {"count": 1}})
        assert running.host.settings.suggest.count == 1


def test_settings_of_the_command_line_hold_until_they_are_changed(tmp_path: Path) -> None:
    with RunningHost(tmp_path) as running:
        running.host._overrides = {"mode": "react"}
        assert running.host.change_settings({"suggest": {"count": 2}}).mode is ModeName.REACT
        assert running.store.load().settings.mode is ModeName.SUGGEST
        assert running.host.change_settings({"mode": "chat"}).mode is ModeName.CHAT
