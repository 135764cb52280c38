# SPDX-License-Identifier: Apache-2.0
"""Whether a request gives the same bits: again, in every residency, in one go or step by step."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from engine.bench.gpu.run import Run
from engine.cuda.backend import CudaBackend
from engine.cuda.mailbox import Reply

_TOP: Final = 8
_WHOLE: Final = 100  # of so many runs one computes the whole prompt
_LOGITS: Final = 1000  # and of so many one hands out all logits
_PLACE: Final = 16  # characters of a hash that are kept


def digest_of(reply: Reply) -> str:
    """Hash of a reply's tokens, logits and log-probabilities."""
    fields = [(c.token, c.logit, c.log_probability) for c in reply.candidates]
    return hashlib.sha256(np.array(fields, dtype=np.float64).tobytes()).hexdigest()[:_PLACE]


def repeated(
    backend: CudaBackend,
    tokens: Sequence[int],
    runs: int,
    numbers: Callable[[range], Iterable[int]],
) -> dict[str, Any]:
    """`runs` runs that all end at the last token: of the whole prompt, or of its last 1 to 8 tokens.

    Of different hashes each is kept with how often it was seen. `numbers` passes a range on, telling progress.
    """
    replies: dict[str, int] = {}
    logits: dict[str, int] = {}
    start = time.monotonic()
    last = len(tokens) - 1
    for index in numbers(range(runs)):
        at = 0 if index % _WHOLE == 0 else max(0, last - index % 8)
        if index % _LOGITS == 0:
            row = backend.forward(tokens[at:], at)
            place = hashlib.sha256(row.tobytes()).hexdigest()[:_PLACE]
            logits[place] = logits.get(place, 0) + 1
        digest = digest_of(backend.best(tokens[at:], at, _TOP))
        replies[digest] = replies.get(digest, 0) + 1
    return {
        "runs": runs,
        "replies": replies,
        "logits": logits,
        "seconds": round(time.monotonic() - start, 1),
    }


def agree(parts: dict[str, dict[str, Any]]) -> bool:
    """Whether all residencies saw one reply and one row of logits, the same ones."""
    replies = {digest for part in parts.values() for digest in part["replies"]}
    logits = {digest for part in parts.values() for digest in part["logits"]}
    return bool(parts) and len(replies) == 1 and len(logits) == 1


def hashes(run: Run) -> dict[str, Any]:
    """Identical runs by output hash in each residency, and one hash across them."""
    tokens = run.prompt()
    parts: dict[str, dict[str, Any]] = {}
    result: dict[str, Any] = {"residencies": parts}
    for residency, backend in run.residencies():
        name = residency.value
        told = partial(run.progress, f"hashes, {name}", total=run.repeats)
        parts[name] = repeated(backend, tokens, run.repeats, told)
        result["kernel"] = run.kernel_of(backend)
    return result | {"passed": agree(parts)}


def different_prefixes(backend: CudaBackend, tokens: Sequence[int]) -> list[int]:
    """Prefix lengths after which the rest does not give the bits of the whole."""
    full = backend.forward(tokens, 0)
    wrong = []
    for prefix in range(1, len(tokens)):
        backend.forward(tokens[:prefix], 0)
        if not np.array_equal(backend.forward(tokens[prefix:], prefix), full):
            wrong.append(prefix)
    return wrong


def prefixes(run: Run) -> dict[str, Any]:
    """Incremental against full at every prefix length, in each residency and on both kernels."""
    tokens = run.prompt()
    result: dict[str, Any] = {"prefixes": len(tokens) - 1, "different": {}}
    for choice in dict.fromkeys((run.kernel, "grid")):
        for residency, backend in run.residencies(kernel=choice):
            name = f"{run.kernel_of(backend)}, {residency.value}"
            run.say(f"prefixes, {name}")
            result["different"][name] = different_prefixes(backend, tokens)
    return result | {"passed": not any(result["different"].values())}
