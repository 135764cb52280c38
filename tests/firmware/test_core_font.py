# SPDX-License-Identifier: Apache-2.0
"""The drawn font is complete, its C tables are up to date, and no two characters look alike."""

from __future__ import annotations

from firmware_bridge.firmware.build_font import CORE, font_source, read_glyphs

DRAWING = (CORE / "glyphs.txt").read_text()


def test_the_c_tables_come_from_the_drawing() -> None:
    assert (CORE / "thock_font.c").read_text() == font_source(DRAWING)


def test_every_printable_character_is_drawn() -> None:
    font = read_glyphs(DRAWING)["font"]
    assert len(font) == 0x7F - 0x20
    letters = [chr(code) for code in range(0x20, 0x7F)]
    for character, name in zip(letters, font, strict=True):
        if character.isalnum():
            assert name == character
    assert {len(columns) for columns in font.values()} == {5}
    assert [name for name, columns in font.items() if not any(columns)] == ["space"]


def test_no_two_characters_look_alike() -> None:
    font = read_glyphs(DRAWING)["font"]
    assert len(set(font.values())) == len(font)


def test_descenders_go_below_the_baseline_and_nothing_else_does() -> None:
    font = read_glyphs(DRAWING)["font"]
    below = {name for name, columns in font.items() if any(column & 0x80 for column in columns)}
    assert below == {"g", "j", "p", "q", "y", "comma", "semicolon", "bar"}
