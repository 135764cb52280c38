# SPDX-License-Identifier: Apache-2.0
"""Compare what a display shows with a 1-bit PNG in tests/golden/oled.

`THOCK_REWRITE_GOLDENS=1 python -m pytest ...` writes the pictures anew; look at them before you commit them.
"""

from __future__ import annotations

import os
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
