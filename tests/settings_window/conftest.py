# SPDX-License-Identifier: Apache-2.0
"""One window for each test, offscreen."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partialmethod
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from tests.helpers.settings_desk import SettingsDesk, application


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Qt's tests wait for 5 s else, which is little for the threads of a busy machine."""
    wait_until = partialmethod(QtBot.waitUntil, timeout=60_000)
    monkeypatch.setattr(QtBot, "waitUntil", wait_until)


@pytest.fixture
def desk(qtbot: QtBot, tmp_path: Path) -> Iterator[SettingsDesk]:
    """The window, shown; in English and light."""
    application().setStyle("fusion")
    desk = SettingsDesk(tmp_path)
    desk.window.show()
    yield desk
    desk.close()
