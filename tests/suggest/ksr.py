# SPDX-License-Identifier: Apache-2.0
"""Keystroke saving rate of suggestions with a real model, beside the n-gram predictor:

    python -m tests.suggest.ksr [--model FILE] [--characters N] [--phrases N] [--json FILE]

Two texts: excerpts from the held-out adventure (tests/data/holmes), whose other adventures the n-gram
has learnt; and tests/data/texts/english.txt, written for this project, which neither has seen. The
model learns from none of them, but may have met a book that is in the public domain before.

Three candidates are looked for each time, as the companion does by default. "first": only the likeliest
is taken, which is what the accept key does; "any": whichever is right.
"""

from __future__ import annotations

import argparse
import datetime
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from platformdirs import user_data_path

from engine.runner import ModelRunner
from engine.session import never
from tests.suggest.ngram import TrigramPredictor
from tests.suggest.simulation import NOTHING, Predictor, Savings, type_with_suggestions

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
COUNT = 3
TAKEN = {"first": 1, "any": COUNT}
EXCERPTS = 3
# As the companion does it: 512 characters are kept, and cut to half when there are more.
_CONTEXT, _STEP = 512, 256


@dataclass(frozen=True, slots=True)
class Excerpt:
    """`text` is typed from `start` on."""

    text: str
    start: int


def recent(text: str) -> str:
    """What the companion would still hold of `text`."""
    return text[max(0, len(text) - _CONTEXT) // _STEP * _STEP :]


def holmes(characters: int) -> list[Excerpt]:
    """Excerpts from all parts of the held-out adventure, `characters` in all."""
    text = (DATA / "holmes" / "held_out.txt").read_text(encoding="utf-8")
    each = characters // EXCERPTS
    starts = [(2 * part + 1) * len(text) // (2 * EXCERPTS) for part in range(EXCERPTS)]
    return [Excerpt(text[: start + each], start) for start in starts]


def own(characters: int) -> list[Excerpt]:
    """The beginning of the project's own English text."""
    text = (DATA / "texts" / "english.txt").read_text(encoding="utf-8")
    return [Excerpt(text[:characters], 0)]


def ngram() -> TrigramPredictor:
    """The predictor, having learnt the other adventures."""
    return TrigramPredictor((DATA / "holmes" / "train.txt").read_text(encoding="utf-8"))


def ngram_predictor(model: TrigramPredictor) -> Predictor:
    return lambda text: [word for word, _ in model.suggest(recent(text), COUNT)]


class ModelPredictor:
    """Asks the engine's runner as the companion does, once for each text."""

    def __init__(self, runner: ModelRunner, words: int = 1) -> None:
        self._runner = runner
        self._words = words
        self._answers: dict[str, list[str]] = {}

    def __call__(self, text: str) -> Sequence[str]:
        if text not in self._answers:
            found = self._runner.suggest(recent(text), COUNT, never)
            if self._words > 1:
                found = self._runner.suggest(recent(text), COUNT, never, self._words)
            self._answers[text] = [candidate.text for candidate in found.candidates]
        return self._answers[text]


def only(predict: Predictor, taken: int) -> Predictor:
    """The first candidates of `predict`."""
    return lambda text: predict(text)[:taken]


def measure(excerpts: Sequence[Excerpt], predict: Predictor) -> Savings:
    """All of `excerpts` typed with the help of `predict`."""
    return sum((type_with_suggestions(e.text, predict, e.start) for e in excerpts), start=NOTHING)


def as_json(savings: Savings) -> dict[str, Any]:
    return {
        "rate": round(savings.rate, 4),
        "characters": savings.characters,
        "keys": savings.keys,
        "taken": savings.taken,
        "words_taken": savings.words_taken,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Keystroke saving rate of suggestions.")
    default = user_data_path("thock", appauthor=False) / "models" / "smollm2.gguf"
    parser.add_argument("--model", type=Path, default=default)
    parser.add_argument("--characters", type=int, default=1800, help="of each text")
    parser.add_argument("--phrases", type=int, default=450, help="of each text, with phrases")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args()
    runner = ModelRunner.open(str(options.model), 512)
    baseline = ngram()
    result: dict[str, Any] = {
        "date": datetime.date.today().isoformat(),
        "model": runner.info.name,
        "keystroke_saving_rate": "1 - keys / characters; a right suggestion costs one key, whichever it is",
        "texts": {},
    }
    for name, texts in (("holmes", holmes), ("own", own)):
        rows = result["texts"].setdefault(name, {})
        excerpts, short = texts(options.characters), texts(options.phrases)
        words = ModelPredictor(runner)
        for label, sample, predict in (
            ("ngram", excerpts, ngram_predictor(baseline)),
            ("model", excerpts, words),
            ("model, short", short, words),
            ("model with phrases, short", short, ModelPredictor(runner, words=3)),
        ):
            for taken, count in TAKEN.items():
                row = f"{label}: {taken}"
                rows[row] = as_json(measure(sample, only(predict, count)))
                print(f"{name:8} {row:32} KSR {rows[row]['rate']:6.1%}", flush=True)
        if options.json:
            options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
