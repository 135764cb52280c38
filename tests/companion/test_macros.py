# SPDX-License-Identifier: Apache-2.0
"""Macro keys: which of them type, and what they are called."""

from __future__ import annotations

import pytest

from app.companion.macros import macro_name, typing_macro

NAMES = ("build", "deploy")


@pytest.mark.parametrize(
    ("number", "name", "types"),
    [
        (5, "5", False),
        (16, "build", True),
        (17, "deploy", True),
        (18, "18", True),
        (143, "143", True),
        (144, "144", False),
        (146, "146", False),
        (147, "recorded macro 1", True),
        (148, "recorded macro 2", True),
        (149, "149", False),
    ],
)
def test_numbers(number: int, name: str, types: bool) -> None:
    assert macro_name(number, NAMES) == name
    assert typing_macro(number, NAMES) == (name if types else None)
