# SPDX-License-Identifier: Apache-2.0
"""Compare the GPU engine with the reference of the same quantised weights, token by token, on a real model.

    python -m engine.cuda.parity MODEL --reference kept.npz --text FILE     (minutes, needs no GPU)
    python -m engine.cuda.parity MODEL --reference kept.npz --json result.json

The reference computes in float32 with e4m3 weights; the device rounds activations. A different best token
is explained by a near tie if the reference's own logits of the two lie closer than the device's error.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from engine.cuda.backend import CudaBackend
from engine.cuda.layout import Tuning
from engine.formats import open_model
from engine.formats.source import ModelSource
from engine.fp8.model import quantise_model
from engine.fp8.quantise import Grouping, quantise
from engine.reference.backend import ReferenceBackend
from engine.tokenizer import Tokenizer

WINDOW: Final = 128
_KEPT: Final = 32  # best tokens of a position


class QuantisedSource:
    """`source` with the weights that the GPU engine holds, as floats. The head is a tensor of its own."""

    def __init__(self, source: ModelSource, grouping: Grouping) -> None:
        self._source, self._grouping = source, grouping
        self.path, self.tokenizer = source.path, source.tokenizer
        self.config = replace(source.config, tied_head=False)

    def tensor_names(self) -> Sequence[str]:
        return sorted({*self._source.tensor_names(), "head"})

    def tensor(self, name: str) -> NDArray[np.float32]:
        tied = name == "head" and self._source.config.tied_head
        values = self._source.tensor("embed" if tied else name)
        if values.ndim == 1:
            return values
        if name == "embed":
            return values.astype(np.float16).astype(np.float32)
        return quantise(values, self._grouping).dequantise()

    def close(self) -> None:
        self._source.close()


@dataclass(frozen=True, slots=True)
class Expected:
    """What is kept of reference logits: the best tokens (positions, KEPT), best first, and their spread."""

    tokens: NDArray[np.int64]  # (windows, WINDOW)
    best: NDArray[np.int64]
    logits: NDArray[np.float32]
    spread: NDArray[np.float32]  # largest logit minus smallest

    def save(self, path: Path) -> None:
        np.savez_compressed(
            path, tokens=self.tokens, best=self.best, logits=self.logits, spread=self.spread
        )

    @classmethod
    def load(cls, path: Path) -> Expected:
        with np.load(path) as kept:
            return cls(kept["tokens"], kept["best"], kept["logits"], kept["spread"])


def expect(source: ModelSource, windows: NDArray[np.int64]) -> Expected:
    """Run the reference with the quantised weights of `source`; minutes for thousands of positions."""
    reference = ReferenceBackend(QuantisedSource(source, Grouping.CHANNEL), WINDOW, np.float32)
    best, logits, spread = [], [], []
    for window in windows:
        rows = np.asarray(reference.forward_all(window.tolist(), 0), np.float32)
        order = np.argsort(-rows, axis=1, kind="stable")[:, :_KEPT]
        best.append(order)
        logits.append(np.take_along_axis(rows, order, axis=1))
        spread.append(rows.max(axis=1) - rows.min(axis=1))
    return Expected(windows, np.concatenate(best), np.concatenate(logits), np.concatenate(spread))


def compare(device: NDArray[np.float32], expected: Expected) -> dict[str, Any]:
    """Figures of device logits (positions, vocab) against the reference's best tokens.

    `unexplained`: other best tokens whose logits lie further apart than the errors of both.
    """
    found = np.take_along_axis(device, expected.best, axis=1)
    error = np.abs(found - expected.logits)
    winner = device.argmax(axis=1)
    rows = np.flatnonzero(winner != expected.best[:, 0])
    known = expected.best[rows] == winner[rows, None]
    gaps = np.where(
        known.any(axis=1),
        expected.logits[rows, 0] - (expected.logits[rows] * known).sum(axis=1),
        np.inf,
    )
    explained = gaps <= 2 * error[rows].max(axis=1)
    return {
        "positions": len(device),
        "top1_same": round(1 - len(rows) / len(device), 5),
        "different": len(rows),
        "unexplained": int((~explained).sum()),
        "largest_gap_over_range_where_different": float(
            (gaps / expected.spread[rows]).max(initial=0)
        ),
        "mean_error_of_best_tokens_over_range": float(
            (error.mean(axis=1) / expected.spread).mean()
        ),
        "largest_error_of_best_tokens_over_range": float(
            (error.max(axis=1) / expected.spread).max()
        ),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; prints the JSON and writes it to a file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("--reference", type=Path, required=True, help="read if there, else made")
    parser.add_argument("--text", type=Path, help="to make the reference from")
    parser.add_argument("--positions", type=int, default=5120)
    parser.add_argument("--json", type=Path, help="compare the GPU, and write this")
    parser.add_argument("--cache", type=Path, default=Path("build") / "fp8")
    options = parser.parse_args(arguments)
    source = open_model(options.model)
    if options.reference.exists():
        expected = Expected.load(options.reference)
    else:
        text = options.text.read_text(encoding="utf-8")
        tokenizer = Tokenizer.from_spec(source.tokenizer)
        tokens = tokenizer.encode(text, add_special=True, parse_special=False)
        count = min(options.positions, len(tokens)) // WINDOW
        windows = np.array(tokens[: count * WINDOW], dtype=np.int64).reshape(count, WINDOW)
        expected = expect(source, windows)
        expected.save(options.reference)
    if options.json is None:
        return 0
    model = quantise_model(source, Grouping.CHANNEL)
    result: dict[str, Any] = {"model": Path(options.model).name}
    for kernel in ("auto", "grid"):
        backend = CudaBackend(model, 256, options.cache, tuning=Tuning(kernel=kernel))
        try:
            found = np.concatenate([backend.forward_all(w.tolist(), 0) for w in expected.tokens])
            name = backend.engine.layout.name
            result |= {"device": backend.facts.name}
        finally:
            backend.close()
        result[f"{name}_kernel_vs_quantised_weights"] = compare(found, expected)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
