# SPDX-License-Identifier: Apache-2.0
"""The pixel fonts: every common hanzi has a shape of its own, nothing is clipped, columns are true."""

from __future__ import annotations

import json
import subprocess
import sys
import unicodedata

import pytest
from PIL import Image, ImageDraw

from app.companion.typefaces import Typefaces
from firmware_bridge.display.pixel_font import PixelFont
from tests.helpers.gb2312 import hanzi

FACES = Typefaces()
FONTS = {"large": FACES.large, "medium": FACES.medium, "small": FACES.small}
PUNCTUATION = "，。、；：？！“”‘’（）《》〈〉【】「」『』…—·～￥％"
KANA = [chr(code) for code in (*range(0x3041, 0x3094), *range(0x30A1, 0x30F7))]  # of JIS X 0208
LATIN_1 = [chr(code) for code in range(0xC0, 0x100) if chr(code).isalpha()]


def look(font: PixelFont, character: str) -> bytes:
    glyph = font.glyph(character)
    assert glyph is not None, f"no glyph for {character}"
    return glyph.tobytes()


@pytest.mark.parametrize("name", FONTS)
def test_every_common_hanzi_is_drawn_and_none_looks_like_a_missing_character(name: str) -> None:
    common = hanzi(1)
    assert len(common) == 3755
    font = FONTS[name]
    assert font.glyph("\U0010fffe") is None
    boxes = [look(font, character) for character in "□口囗" if font.covers(character)]
    for character in common:
        glyph = font.glyph(character)
        assert glyph is not None, f"tofu for {character}"
        assert glyph.getbbox() is not None, f"{character} is empty"
        assert glyph.size == (font.height, font.height)
        assert character == "口" or glyph.tobytes() not in boxes, f"{character} looks like a box"


@pytest.mark.parametrize("name", FONTS)
def test_rare_hanzi_come_from_the_small_font_where_the_large_one_lacks_them(name: str) -> None:
    rare = hanzi(2)
    assert len(rare) == 3008
    assert [character for character in rare if not FONTS[name].covers(character)] == []


@pytest.mark.parametrize("name", FONTS)
def test_letters_punctuation_and_kana_are_there(name: str) -> None:
    characters = [*map(chr, range(0x20, 0x7F)), *PUNCTUATION, *KANA, *LATIN_1, "□", "…"]
    assert [character for character in characters if not FONTS[name].covers(character)] == []


@pytest.mark.parametrize("name", ["large", "medium"])
def test_characters_stand_in_columns(name: str) -> None:
    """Half a line's height for a narrow character, a whole one for a wide one: so columns are true."""
    font = FONTS[name]
    for character in (
        *map(chr, range(0x20, 0x7F)),
        *PUNCTUATION,
        *KANA,
        *LATIN_1,
        *hanzi(1),
        *hanzi(2),
    ):
        columns = font.columns(character)
        assert font.width(character) == columns * font.height // 2
        if unicodedata.east_asian_width(character) == "W":
            assert columns == 2


@pytest.mark.parametrize("name", FONTS)
def test_no_glyph_is_clipped(name: str) -> None:
    """Drawn on a wide canvas, no character has a pixel outside its own cell."""
    font = FONTS[name]
    loaded = font._font()
    ascent, descent = loaded.getmetrics()
    margin = 12
    for character in (*map(chr, range(0x20, 0x7F)), *PUNCTUATION, *KANA, *LATIN_1, *hanzi(1)):
        glyph = font.glyph(character)
        assert glyph is not None
        image = Image.new("1", (glyph.width + 2 * margin, font.height + 2 * margin))
        canvas = ImageDraw.Draw(image)
        canvas.fontmode = "1"
        top = margin + (font.height - ascent - descent) // 2
        canvas.text((margin, top), character, fill=1, font=loaded)
        cell = (margin, margin, margin + glyph.width, margin + font.height)
        assert image.crop(cell).tobytes() == glyph.tobytes(), character
        image.paste(0, cell)
        assert image.getbbox() is None, f"{character} leaves its cell"


def test_a_character_that_no_font_has_is_none_and_takes_no_room() -> None:
    assert FACES.large.glyph("👍") is None
    assert FACES.large.width("a👍b") == FACES.large.width("ab")


PROGRAM = """
import json, sys, time, psutil
from app.companion.typefaces import Typefaces
faces = Typefaces()
assert "PIL" not in sys.modules
before = psutil.Process().memory_info().rss
start = time.perf_counter()
assert faces.large.covers("天")
seconds = time.perf_counter() - start
print(json.dumps([seconds, (psutil.Process().memory_info().rss - before) / 2**20]))
"""


def test_a_font_costs_nothing_before_its_first_character_and_little_after() -> None:
    output = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=True
    ).stdout
    seconds, mib = json.loads(output)
    assert mib < 24  # about 13 MiB, Pillow included
    assert seconds < 5  # about 0.1 s on two cores; this only catches a wrong file
