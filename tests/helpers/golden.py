# SPDX-License-Identifier: Apache-2.0
"""Compare what a display shows with a 1-bit PNG in tests/golden/oled.

`THOCK_REWRITE_GOLDENS=1 python -m pytest ...` writes the pictures anew; look at them before you commit them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from PIL import Image

from firmware_bridge.display.frame import BitmapFrame

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "oled"


def pixels(frame: BitmapFrame) -> np.ndarray:
    """The frame as booleans, (height, width), True where a pixel is lit."""
    rows = np.frombuffer(frame.pages, np.uint8).reshape(frame.height // 8, frame.width)
    shifts = np.arange(8, dtype=np.uint8)[None, :, None]
    lit = (rows[:, None, :] >> shifts & 1).astype(bool)
    return lit.reshape(frame.height, frame.width)


_SCALE = 4  # of sheets, so that they can be looked at as they are
_GAP = 2  # pixels of a display between two pictures
_GROUND = 96  # grey


def sheet(pictures: Mapping[str, BitmapFrame], across: int) -> np.ndarray:
    """The pictures of one size on a grey ground, `across` in a row, each pixel 4 x 4: (height, width)."""
    frames = list(pictures.values())
    height, width = frames[0].height + _GAP, frames[0].width + _GAP
    down = -(-len(frames) // across)
    ground = np.full((down * height + _GAP, across * width + _GAP), _GROUND, np.uint8)
    for i, frame in enumerate(frames):
        top, left = _GAP + i // across * height, _GAP + i % across * width
        ground[top : top + frame.height, left : left + frame.width] = pixels(frame) * 255
    return ground.repeat(_SCALE, 0).repeat(_SCALE, 1)


def assert_sheet(pictures: Mapping[str, BitmapFrame], name: str, across: int) -> None:
    """Fail unless the pictures are those of tests/golden/oled/<name>.png; say which of them differ."""
    path = GOLDEN / f"{name}.png"
    actual = sheet(pictures, across)
    if os.environ.get("THOCK_REWRITE_GOLDENS") == "1":
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(actual).save(path, optimize=True)
    assert path.is_file(), f"{path.name} is missing; write it with THOCK_REWRITE_GOLDENS=1"
    with Image.open(path) as image:
        expected = np.array(image.convert("L"))
    assert actual.shape == expected.shape, f"{name}: {actual.shape} instead of {expected.shape}"
    frame = next(iter(pictures.values()))
    height, width = (frame.height + _GAP) * _SCALE, (frame.width + _GAP) * _SCALE
    places = {(int(y) // height, int(x) // width) for y, x in np.argwhere(actual != expected)}
    names = list(pictures)
    differing = sorted({names[row * across + column] for row, column in places})
    assert not differing, f"{name}: not as they were when they were looked at: {differing}"


def assert_golden(frame: BitmapFrame, name: str) -> None:
    """Fail unless `frame` equals tests/golden/oled/<name>.png pixel by pixel."""
    path = GOLDEN / f"{name}.png"
    actual = pixels(frame)
    if os.environ.get("THOCK_REWRITE_GOLDENS") == "1":
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(actual).save(path, optimize=True)
    assert path.is_file(), f"{path.name} is missing; write it with THOCK_REWRITE_GOLDENS=1"
    with Image.open(path) as image:
        expected = np.array(image.convert("1"))
    assert actual.shape == expected.shape, f"{name}: {actual.shape} instead of {expected.shape}"
    wrong = np.argwhere(actual != expected)
    assert not len(wrong), f"{name}: {len(wrong)} pixels differ, the first at (y, x) {wrong[0]}"
