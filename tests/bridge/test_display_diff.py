# SPDX-License-Identifier: Apache-2.0
"""Differences between pictures, drawn by the C core: the result is the new picture, with few frames."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from firmware_bridge.display.diff import bitmap_runs, text_change
from firmware_bridge.display.frame import BitmapFrame, TextFrame
from firmware_bridge.display.image import from_pixel_rows, pixel_rows
from firmware_bridge.firmware.virtual_core import BoardConfig, FirmwareCore
from firmware_bridge.link_output import Step, display_steps
from firmware_bridge.protocol.capabilities import Capabilities, Feature
from firmware_bridge.protocol.frames import Frame, FrameType, decode, encode
from firmware_bridge.protocol.messages import Ack, BitmapRun, EventKinds, Subscribe, TextRun

ROOM = 22
WIDTH, HEIGHT = 128, 32
LINES = st.text(st.sampled_from("ab ~"), max_size=21)
TEXT_FRAMES = st.lists(LINES, max_size=4).map(lambda rows: TextFrame(tuple(rows)))


def drawn(seed: int, density: float) -> BitmapFrame:
    """Random bytes; drawing 512 single ones would make hypothesis slow."""
    dice = random.Random(seed)
    pages = (dice.randrange(256) if dice.random() < density else 0 for _ in range(512))
    return BitmapFrame(WIDTH, HEIGHT, bytes(pages))


BITMAPS = st.builds(drawn, st.integers(0, 9999), st.sampled_from([0.0, 0.02, 0.2, 1.0]))


@st.composite
def similar_bitmaps(draw: st.DrawFn) -> tuple[BitmapFrame, BitmapFrame]:
    before = draw(BITMAPS)
    pages = bytearray(before.pages)
    for place in draw(st.lists(st.integers(0, 511), max_size=12)):
        pages[place] ^= draw(st.integers(1, 255))
    return before, BitmapFrame(WIDTH, HEIGHT, bytes(pages))


class Screen:
    """A firmware core that takes frames for its display."""

    def __init__(self) -> None:
        self.answers: list[bytes] = []
        self.core = FirmwareCore(BoardConfig(), self._send)
        self.say(Step(Subscribe(EventKinds(0))))

    def _send(self, report: bytes) -> bool:
        self.answers.append(report)
        return True

    def say(self, step: Step) -> None:
        message = step.message
        frame = Frame(message.type, 1, 0, message.pack(), step.first, step.last)
        self.answers.clear()
        assert self.core.receive(encode(frame, 32), 0)
        answer = decode(self.answers[0])
        assert answer.type is FrameType.ACK, answer
        assert Ack.unpack(answer.payload).done is message.type


BOARD = Capabilities(1, 1, 32, bytes(6), WIDTH, HEIGHT, 0, 21, 4, 16, ~Feature(0), 32, 1)


@settings(max_examples=40)
@given(st.lists(st.one_of(TEXT_FRAMES, BITMAPS), min_size=1, max_size=6))
def test_the_firmware_shows_the_last_of_any_sequence(
    frames: list[TextFrame | BitmapFrame],
) -> None:
    screen = Screen()
    shown = None
    for frame in frames:
        for step in display_steps(shown, frame, BOARD):
            screen.say(step)
        shown = frame
    fresh = Screen()
    for step in display_steps(None, frames[-1], BOARD):
        fresh.say(step)
    assert screen.core.picture() == fresh.core.picture()
    if isinstance(frames[-1], BitmapFrame):
        assert screen.core.picture() == frames[-1]


@given(similar_bitmaps())
def test_bitmap_runs_carry_every_difference_in_the_fewest_frames(
    pair: tuple[BitmapFrame, BitmapFrame],
) -> None:
    before, after = pair
    runs = bitmap_runs(before, after, ROOM)
    result = bytearray(before.pages)
    for run in runs:
        assert 1 <= len(run.data) <= ROOM
        assert run.x + len(run.data) <= WIDTH
        start = run.page * WIDTH + run.x
        result[start : start + len(run.data)] = run.data
    assert bytes(result) == after.pages
    assert len(runs) == fewest_runs(before, after)


def fewest_runs(before: BitmapFrame, after: BitmapFrame) -> int:
    """By dynamic programming, independent of the greedy choice."""
    total = 0
    for page in range(HEIGHT // 8):
        best = [0] * (WIDTH + 1)  # frames for the columns from x on
        for x in range(WIDTH - 1, -1, -1):
            place = page * WIDTH + x
            skip = best[x + 1] if before.pages[place] == after.pages[place] else WIDTH
            best[x] = min(skip, 1 + best[min(x + ROOM, WIDTH)])
        total += best[0]
    return total


@given(BITMAPS)
def test_the_same_bitmap_needs_no_frame(frame: BitmapFrame) -> None:
    assert bitmap_runs(frame, BitmapFrame(WIDTH, HEIGHT, frame.pages), ROOM) == ()


def test_an_unknown_picture_is_sent_whole() -> None:
    frame = BitmapFrame(WIDTH, HEIGHT, bytes(512))
    assert len(bitmap_runs(None, frame, ROOM)) == 4 * 6
    other = BitmapFrame(64, 32, bytes(256))
    assert len(bitmap_runs(other, frame, ROOM)) == 4 * 6


def test_text_is_sent_from_the_first_difference_on() -> None:
    before = TextFrame(("same", "The quick brown", "gone"))
    after = TextFrame(("same", "The quack"))
    change = text_change(before, after, ROOM)
    assert not change.clears
    assert change.runs == (TextRun(1, 6, "ack"), TextRun(2, 0, ""))


def test_a_new_text_clears_and_leaves_empty_rows_out() -> None:
    change = text_change(None, TextFrame(("one", "", "three   ")), ROOM)
    assert change.clears
    assert change.runs == (TextRun(0, 0, "one"), TextRun(2, 0, "three"))
    assert text_change(None, TextFrame(()), ROOM).runs == (TextRun(0, 0, ""),)


def test_spaces_at_the_end_are_no_difference() -> None:
    assert text_change(TextFrame(("a",)), TextFrame(("a  ", "  ")), ROOM).runs == ()


def test_rows_wider_than_a_frame_are_split() -> None:
    change = text_change(None, TextFrame(("x" * 42,)), ROOM)
    assert [(run.column, len(run.text)) for run in change.runs] == [(0, 22), (22, 20)]


@given(BITMAPS)
def test_pixels_survive_the_round_trip(frame: BitmapFrame) -> None:
    rows = pixel_rows(frame)
    assert (len(rows), len(rows[0])) == (HEIGHT, WIDTH)
    assert from_pixel_rows(rows) == frame


def test_pixel_rows_have_bit_0_on_top() -> None:
    rows = pixel_rows(BitmapFrame(2, 8, b"\x01\x80"))
    assert rows[0] == b"\1\0"
    assert rows[7] == b"\0\1"


def test_run_of_bitmap_bytes_keeps_its_place() -> None:
    before = BitmapFrame(WIDTH, HEIGHT, bytes(512))
    pages = bytearray(512)
    pages[WIDTH + 5] = pages[WIDTH + 9] = 7
    after = BitmapFrame(WIDTH, HEIGHT, bytes(pages))
    assert bitmap_runs(before, after, ROOM) == (BitmapRun(1, 5, b"\7\0\0\0\7"),)
