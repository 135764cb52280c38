# SPDX-License-Identifier: Apache-2.0
"""An unexpected exception in words that cannot hold key content: types and places, never values."""

from __future__ import annotations

import traceback


def name_of_error(error: BaseException) -> str:
    """Type and place, as in `KeyError at words.py:57 in candidates`."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return type(error).__name__
    last = frames[-1]
    file = last.filename.replace("\\", "/").rsplit("/", 1)[-1]
    return f"{type(error).__name__} at {file}:{last.lineno} in {last.name}"


def stack_of_error(error: BaseException) -> list[str]:
    """One line a frame, the outermost first, then the type: a traceback without its message."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [f"at {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames]
    return [*places, type(error).__name__]
