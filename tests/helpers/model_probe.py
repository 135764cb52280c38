# SPDX-License-Identifier: Apache-2.0
"""Load models one after the other under a memory limit, and report what became of each.

Run as a child: paths come as lines on stdin, one JSON object per path goes to stdout. The address
space may grow by LIMIT_BYTES over what the interpreter and its libraries take; past that an
allocation fails, which the report shows as MemoryError. A crash shows as a missing line.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

import numpy as np
from gguf import quants

from engine.errors import ModelFileError
from engine.formats import open_model

LIMIT_BYTES = 200 << 20


def main() -> None:
    # One dequantisation first, so that lazy imports and thread pools are not counted.
    quants.Q8_0.dequantize_blocks(np.zeros((1, 34), np.uint8))
    status = Path("/proc/self/statm").read_text().split()
    used = int(status[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + LIMIT_BYTES, used + LIMIT_BYTES))
    _check_limit()
    for line in sys.stdin:
        path = line.rstrip("\n")
        start = time.perf_counter()
        report = _load(Path(path))
        seconds = time.perf_counter() - start
        print(json.dumps({"path": path, "seconds": seconds, **report}), flush=True)


def _check_limit() -> None:
    try:
        np.empty(LIMIT_BYTES + (16 << 20), np.uint8)  # the interpreter may have freed a little
    except MemoryError:
        return
    sys.exit("the memory limit is not enforced here")


def _load(path: Path) -> dict[str, str]:
    """Everything that the engine would read: settings, tokeniser, each tensor."""
    try:
        model = open_model(path)
        try:
            tokenizer = model.tokenizer
            if tokenizer.tokens:
                assert len(tokenizer.tokens) == model.config.vocab_size
                assert len(tokenizer.token_types) == model.config.vocab_size
            for name in model.tensor_names():
                assert np.isfinite(model.tensor(name)).all(), name
        finally:
            model.close()
    except ModelFileError as error:
        return {"error": type(error).__name__, "message": str(error), "field": error.field}
    except BaseException as error:  # noqa: BLE001 - the report is the point of this process
        return {"error": type(error).__name__, "message": str(error), "field": ""}
    return {"error": "", "message": "", "field": ""}


if __name__ == "__main__":
    main()
