# SPDX-License-Identifier: Apache-2.0
"""Parity on the real model: the best next token at thousands of positions of a text."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from engine.bench.gpu.run import Run
from engine.cuda import parity
from engine.cuda.backend import CudaBackend
from engine.cuda.layout import Tuning
from engine.errors import EngineError
from engine.formats import open_model
from engine.tokenizer import Tokenizer

LEAST_SAME: Final = 0.999
_FILE: Final = "reference.npz"


def windows_of(run: Run) -> NDArray[np.int64]:
    """(windows, 128) tokens of the text, as many whole windows as `run.positions` has.

    Raises:
        EngineError: no text was named, or it is too short.
    """
    if run.text is None:
        raise EngineError("parity on a model needs --text FILE, some pages of plain text")
    source = open_model(run.model)
    try:
        tokenizer = Tokenizer.from_spec(source.tokenizer)
    finally:
        source.close()
    text = run.text.read_text(encoding="utf-8")
    tokens = tokenizer.encode(text, add_special=True, parse_special=False)
    count = min(run.positions, len(tokens)) // parity.WINDOW
    if count == 0:
        raise EngineError(f"the text has only {len(tokens)} tokens")
    return np.array(tokens[: count * parity.WINDOW], dtype=np.int64).reshape(count, parity.WINDOW)


def reference(run: Run) -> parity.Expected:
    """What the float32 reference with the same quantised weights gives; read, or made in minutes.

    Raises:
        EngineError: `random:` weights have no text.
    """
    path = run.expected / _FILE
    if path.exists():
        return parity.Expected.load(path)
    if run.model.startswith("random:"):
        raise EngineError("parity on text needs a model that was trained: --model FILE")
    windows = windows_of(run)
    source = open_model(run.model)
    try:
        parts = [
            parity.expect(source, windows[i : i + 1])
            for i in run.progress("reference", range(len(windows)))
        ]
    finally:
        source.close()
    joined = parity.Expected(
        windows,
        *(np.concatenate([getattr(p, n) for p in parts]) for n in ("best", "logits", "spread")),
    )
    run.expected.mkdir(parents=True, exist_ok=True)
    joined.save(path)
    return joined


def section(run: Run) -> dict[str, Any]:
    """Both kernels; the one that the device takes by itself has to pass."""
    expected = reference(run)
    result: dict[str, Any] = {"kernels": {}, "least_same": LEAST_SAME}
    for choice in dict.fromkeys((run.kernel, "grid")):
        backend = CudaBackend(
            run.packed(), 256, run.kernels, tuning=Tuning(kernel=choice, wait_ms=run.wait_ms)
        )
        try:
            name = run.kernel_of(backend)
            windows = run.progress(f"model, {name}", list(expected.tokens))
            rows = np.concatenate([backend.forward_all(w.tolist(), 0) for w in windows])
        finally:
            backend.close()
        figures = parity.compare(rows, expected)
        result["kernels"].setdefault(name, figures)
        result.setdefault("served_by", name)
    served = result["kernels"][result["served_by"]]
    passed = served["top1_same"] >= LEAST_SAME and served["unexplained"] == 0
    return result | {"passed": passed}
