# SPDX-License-Identifier: Apache-2.0
"""Shortcuts in the form of the settings and in Qt's, there and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtGui import QKeySequence

from app.settings_window.hotkey_names import portable_of, setting_of

TEXT = QKeySequence.SequenceFormat.PortableText

modifiers = st.lists(
    st.sampled_from(["<ctrl>", "<alt>", "<shift>", "<cmd>"]), unique=True, min_size=1
)
keys = st.sampled_from(
    [*"abcxyz0189,.-+", "<space>", "<enter>", "<esc>", "<f1>", "<f12>", "<page_up>", "<delete>"]
)


@given(modifiers, keys)
def test_a_shortcut_comes_back_through_qt(held: list[str], key: str) -> None:
    """In Qt's order of the modifiers, which means the same."""
    setting = "+".join([*held, key])
    sequence = QKeySequence.fromString(portable_of(setting), TEXT)
    assert sequence.count() == 1
    back = setting_of(sequence.toString(TEXT))
    assert back.removesuffix(f"+{key}") != back
    assert set(back.removesuffix(f"+{key}").split("+")) == set(held)


@pytest.mark.parametrize(
    ("setting", "portable"),
    [("", ""), ("<ctrl>+<alt>+a", "Ctrl+Alt+A"), ("<f5>", "F5"), ("<ctrl>++", "Ctrl++")],
)
def test_both_forms(setting: str, portable: str) -> None:
    assert portable_of(setting) == portable
    assert setting_of(portable) == setting


def test_a_key_without_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match="Volume Up"):
        setting_of("Ctrl+Volume Up")
