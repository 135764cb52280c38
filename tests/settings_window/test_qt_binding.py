# SPDX-License-Identifier: Apache-2.0
"""The installed PySide6 keeps count of None, True and False.

PySide6-Essentials 6.12.0 under Python 3.11 takes one reference of None away with every call of a function
that returns nothing, and the window ends with "deallocating None" after some minutes. 6.11.3 does not, and
Python 3.12 keeps no count of None.
"""

from __future__ import annotations

import sys

import pytest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

_CALLS = 500


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="None is immortal")
def test_calls_into_qt_do_not_use_up_none(qtbot: QtBot) -> None:
    label = QLabel()
    qtbot.addWidget(label)
    before = [sys.getrefcount(value) for value in (None, True, False)]
    for _ in range(_CALLS):
        label.setText("")
        label.layout()
        label.isEnabled()
        label.isHidden()
    after = [sys.getrefcount(value) for value in (None, True, False)]
    for old, new in zip(before, after, strict=True):
        assert abs(new - old) < _CALLS / 10, "use another version of PySide6"
