# SPDX-License-Identifier: Apache-2.0
"""A question in which nothing can be read is none."""

from __future__ import annotations

import pytest

from app.companion.asked import is_blank


@pytest.mark.parametrize(
    "text", ["", "  \n\t", "\x00\x07\x1b", "\u200b\u200d\ufeff", "\u3000 \u00a0"]
)
def test_nothing_to_read(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", ["?", " a ", "\x1ba", "\u4f60", "\N{SNOWMAN}", "\ufffd"])
def test_something_to_read(text: str) -> None:
    assert not is_blank(text)
