# SPDX-License-Identifier: Apache-2.0
"""Text, bitmap and status glyph, in every rotation; pictures are compared with tests/golden/oled."""

from __future__ import annotations

import numpy as np
import pytest

from firmware_bridge.display.frame import BitmapFrame
from firmware_bridge.firmware.virtual_core import BoardConfig
from firmware_bridge.protocol.messages import BitmapRun, Release, SetStatus, Status, TextRun
from firmware_bridge.protocol.messages import Parts as ReleasedParts
from tests.helpers.bench import Bench
from tests.helpers.golden import assert_golden, pixels

SMALL = BoardConfig(panel_width=128, panel_height=32)
LARGE = BoardConfig(panel_width=128, panel_height=64)
GEOMETRIES = [(128, 32), (128, 64), (64, 128), (64, 48), (64, 32), (128, 128), (8, 8), (40, 16)]
REPLY = (
    "The quick brown fox",
    "jumps over lazy dogs.",
    "Pygmy quiz: (a+b)*c=7",
    "if (x[i] != 0) { ~y; }"[:21],
)


def ready(board: BoardConfig = SMALL) -> Bench:
    bench = Bench(board)
    bench.subscribe()
    return bench


def show_bitmap(bench: Bench, frame: BitmapFrame) -> None:
    """Complete a whole bitmap in frames of 22 bytes."""
    room = bench.config.report_length - 10
    runs = [
        BitmapRun(page, x, frame.pages[page * frame.width + x : (page + 1) * frame.width][:room])
        for page in range(frame.height // 8)
        for x in range(0, frame.width, room)
    ]
    for number, run in enumerate(runs):
        bench.do(run, first=number == 0, last=number == len(runs) - 1)


def noise(width: int, height: int, seed: int = 1) -> BitmapFrame:
    data = np.random.default_rng(seed).integers(0, 256, width * height // 8, np.uint8)
    return BitmapFrame(width, height, data.tobytes())


def test_golden_text_32() -> None:
    bench = ready(SMALL)
    bench.show(*REPLY)
    assert_golden(bench.core.picture(), "text_128x32")


def test_golden_text_64() -> None:
    bench = ready(LARGE)
    bench.show(
        *REPLY, "0O 1lI| 5S 8B 2Z 6G", "def f(a, b): return a", "$9.99 50% #1 @me & co",
        "`x` \"Q\" 'v' ^_^ \\o/ <",
    )  # fmt: skip
    assert_golden(bench.core.picture(), "text_128x64")


def test_golden_font_sheet() -> None:
    bench = ready(LARGE)
    characters = "".join(map(chr, range(0x20, 0x7F)))
    bench.show(*(characters[start : start + 16] for start in range(0, 95, 16)))
    assert_golden(bench.core.picture(), "font_sheet")


def test_golden_upright_text() -> None:
    bench = ready(BoardConfig(panel_width=128, panel_height=32, rotation=1))
    bench.show(*["It", "is", "wet.", "Take", "a", "big", "coat", "&", "jog", "now"])
    assert_golden(bench.core.picture(), "upright_32x128")
    assert_golden(bench.core.panel(), "upright_on_its_panel_128x32")


@pytest.mark.parametrize("status", list(Status))
def test_golden_status(status: Status) -> None:
    bench = ready(SMALL)
    bench.show("What is the capital", "city of France? Paris")
    bench.do(SetStatus(status))
    assert_golden(bench.core.picture(), f"status_{status.name.lower()}")


def test_status_glyphs_differ_in_shape() -> None:
    """In many pixels, not in one: they are told apart at a glance and without colour."""
    glyphs = []
    for status in list(Status)[1:]:
        bench = ready(SMALL)
        bench.do(SetStatus(status))
        glyphs.append(pixels(bench.core.picture()))
        assert glyphs[-1][:8, 120:126].sum() == glyphs[-1].sum() >= 10
    for i, one in enumerate(glyphs):
        for other in glyphs[:i]:
            assert (one != other).sum() >= 10


def test_the_status_glyph_lies_over_a_bitmap_too_and_leaves_it_whole() -> None:
    bench = ready()
    picture = noise(128, 32)
    show_bitmap(bench, picture)
    bench.do(SetStatus(Status.PAUSED))
    shown = pixels(bench.core.picture())
    differs = np.argwhere(shown != pixels(picture))
    assert len(differs)
    assert differs.min(axis=0).tolist() >= [0, 120]
    assert differs[:, 0].max() < 8
    assert differs[:, 1].max() < 126
    bench.do(SetStatus(Status.IDLE))
    assert bench.core.picture() == picture


def test_a_status_alone_takes_the_display_and_gives_it_back() -> None:
    bench = ready()
    assert not bench.core.display_taken
    bench.do(SetStatus(Status.LISTENING))
    assert bench.core.display_taken
    assert bench.core.dirty_pages() == {0, 1, 2, 3}
    bench.do(SetStatus(Status.IDLE))
    assert not bench.core.display_taken


@pytest.mark.parametrize(("width", "height"), GEOMETRIES)
@pytest.mark.parametrize("rotation", range(4))
def test_rotation_turns_the_same_picture(width: int, height: int, rotation: int) -> None:
    """A turned panel shows what an unturned board with the host's geometry shows, turned by numpy."""
    panel = (height, width) if rotation % 2 else (width, height)
    flat = ready(BoardConfig(panel_width=width, panel_height=height))
    turned = ready(BoardConfig(panel_width=panel[0], panel_height=panel[1], rotation=rotation))
    rng = np.random.default_rng(width * height + rotation)
    columns, rows = width // 6, height // 8
    text = ["".join(map(chr, rng.integers(0x20, 0x7F, columns))) for _ in range(rows)]
    for step in ("text", "status", "bitmap"):
        for bench in (flat, turned):
            if step == "text":
                bench.show(*text)
            elif step == "status":
                bench.do(SetStatus(Status.THINKING))
            else:
                show_bitmap(bench, noise(width, height))
        straight = pixels(flat.core.panel())
        assert straight.any()
        np.testing.assert_array_equal(
            pixels(turned.core.panel()), np.rot90(straight, -rotation), err_msg=step
        )
        np.testing.assert_array_equal(pixels(turned.core.picture()), straight, err_msg=step)


def test_nothing_of_a_group_is_seen_before_its_last_frame() -> None:
    bench = ready()
    bench.show("old", "picture")
    before = bench.core.picture()
    bench.do(TextRun(0, 0, "new"), first=True, last=False)
    bench.do(TextRun(1, 0, "words"), first=False, last=False)
    assert bench.core.dirty_pages() == frozenset()
    assert bench.core.picture() == before
    bench.do(SetStatus(Status.STREAMING))  # a redraw in between shows the old picture too
    bench.do(SetStatus(Status.IDLE))
    assert bench.core.picture() == before
    bench.do(TextRun(2, 0, "done"), first=False, last=True)
    expected = ready()
    expected.show("new", "words", "done")
    assert bench.core.picture() == expected.core.picture()


@pytest.mark.parametrize("with_text", [True, False])
def test_an_unfinished_group_is_forgotten_by_the_next_first(with_text: bool) -> None:
    bench = ready()
    if with_text:
        bench.do(TextRun(3, 0, "lost"), first=True, last=False)
        bench.show("kept")
        expected = ready()
        expected.show("kept")
        assert bench.core.picture() == expected.core.picture()
    else:
        bench.do(BitmapRun(3, 0, b"\xff"), first=True, last=False)
        bench.do(BitmapRun(0, 5, b"\xff"))
        assert pixels(bench.core.picture()).sum() == 8


def test_without_first_a_group_goes_on_from_the_picture_before() -> None:
    bench = ready()
    bench.show("one", "two")
    bench.do(TextRun(1, 2, "O!"), first=False)
    expected = ready()
    expected.show("one", "twO!")
    assert bench.core.picture() == expected.core.picture()


def test_the_rest_of_a_row_is_cleared() -> None:
    bench = ready()
    bench.show("a long row of letters")
    bench.do(TextRun(0, 6, "b"), first=False)
    expected = ready()
    expected.show("a longb")
    assert bench.core.picture() == expected.core.picture()


def test_bitmap_differences_change_only_their_bytes() -> None:
    bench = ready()
    picture = noise(128, 32)
    show_bitmap(bench, picture)
    bench.core.panel()
    bench.do(BitmapRun(2, 100, b"\xaa\x55"))
    assert bench.core.dirty_pages() == {2}
    changed = bytearray(picture.pages)
    changed[2 * 128 + 100 : 2 * 128 + 102] = b"\xaa\x55"
    assert bench.core.picture().pages == bytes(changed)


def test_text_and_bitmap_are_kept_side_by_side() -> None:
    """Whichever was completed last is shown; the other keeps its content for differences."""
    bench = ready()
    picture = noise(128, 32)
    show_bitmap(bench, picture)
    bench.show("text")
    text = bench.core.picture()
    bench.do(BitmapRun(0, 0, b""))
    assert bench.core.picture() == picture
    bench.do(TextRun(1, 0, ""), first=False)
    assert bench.core.picture() == text


def test_release_shows_an_empty_panel_and_forgets_both_pictures() -> None:
    bench = ready()
    show_bitmap(bench, noise(128, 32))
    bench.show("text")
    bench.do(Release(ReleasedParts.DISPLAY))
    assert not any(bench.core.panel().pages)
    bench.do(BitmapRun(0, 0, b"\x01"))
    assert pixels(bench.core.picture()).sum() == 1
    bench.do(TextRun(0, 0, ""), first=False)
    assert not any(bench.core.panel().pages)


@pytest.mark.parametrize(
    ("rotation", "page"), [(0, 1), (1, None), (2, 2), (3, None)], ids=lambda v: str(v)
)
def test_only_changed_pages_are_dirty(rotation: int, page: int | None) -> None:
    board = BoardConfig(panel_width=128, panel_height=32, rotation=rotation)
    bench = ready(board)
    assert bench.core.dirty_pages() == {0, 1, 2, 3}
    bench.show("a", "b")
    bench.core.panel()
    assert bench.core.dirty_pages() == frozenset()
    bench.show("a", "b")  # the same again: nothing to send over a slow bus
    assert bench.core.dirty_pages() == frozenset()
    bench.show("a", "c")
    assert bench.core.dirty_pages() == ({page} if page is not None else {0, 1, 2, 3})
