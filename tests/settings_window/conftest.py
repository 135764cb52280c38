# SPDX-License-Identifier: Apache-2.0
"""One window for each test, offscreen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from tests.helpers.settings_desk import SettingsDesk, application


@pytest.fixture
def desk(qtbot: QtBot, tmp_path: Path) -> Iterator[SettingsDesk]:
    """The window, shown; in English and light."""
    application().setStyle("fusion")
    desk = SettingsDesk(tmp_path)
    desk.window.show()
    yield desk
    desk.close()
