# SPDX-License-Identifier: Apache-2.0
"""What a key costs in suggest mode, by the length of the window: `python -m tests.suggest.bench_window MODEL`.

Types a part of the licence as the companion sees it, so that the text is cut once on the way. Times are of the
processor on one thread, because other programs change them less than those of the clock.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import torch

from app.companion.context import TypingContext
from app.settings import Settings, SuggestSettings
from engine.runner import ModelRunner
from firmware_bridge.keys.text_events import TextTyped

_TEXT = " ".join((Path(__file__).resolve().parents[2] / "LICENSE").read_text().split())
_WINDOWS = (128, 256, 512, 1024)
_BEFORE = 40  # keys before the text is cut
_KEYS = 90


def measure(model: str, window: int) -> str:
    """One row: keys that found their text in the cache, then the one at which the text was cut."""
    runner = ModelRunner.open(model, 2048, window)
    suggest = SuggestSettings.model_validate({"context_tokens": window})
    kept = Settings(suggest=suggest).kept_chars
    context = TypingContext(kept)
    for letter in _TEXT[: kept - _BEFORE]:
        context.apply(TextTyped(letter))
    runner.suggest(context.text, 3, lambda: False)
    longest = held = len(runner._session.tokens)
    keys: list[tuple[float, int]] = []
    cuts: list[tuple[float, int]] = []
    for letter in _TEXT[kept - _BEFORE : kept - _BEFORE + _KEYS]:
        context.apply(TextTyped(letter))
        start = time.process_time()
        found = runner.suggest(context.text, 3, lambda: False)
        spent_ms = (time.process_time() - start) * 1e3
        before, held = held, len(runner._session.tokens)
        longest = max(longest, held)
        (cuts if held < before - 8 else keys).append((spent_ms, held - found.reused))
    runner.close()
    p50, p90 = np.percentile([ms for ms, _ in keys], [50, 90])
    most = max(count for _, count in keys)
    cut = ", ".join(f"{count} tokens {ms:.0f} ms" for ms, count in cuts)
    return f"| {window} | {longest} | {most} | {p50:.0f} | {p90:.0f} | {cut} |"


def main() -> None:
    torch.set_num_threads(1)
    print("| window | longest text in tokens | prefilled by a key, at most | ms p50 | p90 | cut |")
    print("|---|---|---|---|---|---|")
    for window in map(int, sys.argv[2:] or _WINDOWS):
        print(measure(sys.argv[1], window), flush=True)


if __name__ == "__main__":
    main()
