# SPDX-License-Identifier: Apache-2.0
"""Parity over shapes: the kernels against their executable specs, with generated weights.

Every combination of heads and width, twice: the vocabulary padded to whole tiles or not, and the other order of
rotary pairs. The spec's rows do not depend on how many tokens come at once, so one run of it is what all token
counts are compared with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from engine.bench.gpu.run import Run
from engine.config import ModelConfig, RopeLayout
from engine.cuda import build, cluster_schedule, panel_schedule, panel_shape, schedule
from engine.cuda.backend import CudaBackend
from engine.cuda.build import Variant
from engine.cuda.cluster_interpreter import ClusterInterpreter
from engine.cuda.cluster_shape import CLUSTER, fitting_variant
from engine.cuda.driver import Context, DeviceFacts
from engine.cuda.interpreter import Interpreter
from engine.cuda.layout import GridLayout, Tuning
from engine.cuda.panel_interpreter import PanelInterpreter
from engine.cuda.random_source import RandomSource
from engine.fp8.model import PackedModel, quantise_model
from engine.fp8.quantise import Grouping

HEADS: Final = ((9, 3), (32, 8), (32, 32), (4, 4))
WIDTHS: Final = (576, 896, 2048, 4096)
TOKENS: Final = (*range(1, 10), 127, 128, 129)
VOCABULARIES: Final = (512, 515)  # whole tiles of 16; 13 rows of padding
_CONTEXT: Final = 160
_ENOUGH: Final = 7  # rows of a request of which one is exact, unless the first one is not
# Sequences that are tried where the first row of the usual one has a turned rounding.
_OTHER_TOKENS: Final = 3
_HOPPER_SHARED: Final = 227 << 10
_HOPPER_BLOCKS: Final = 132

# Relative distance of a row of logits. Summing in another order changes the last bits of float32 (`exact`);
# where that turns the rounding of an activation, the row and all after it, which attend to it, end within the
# noise of the format (`flipped`).
LIMITS: Final = {
    "grid": {"exact": 1e-4, "flipped": 0.1},
    "cluster": {"exact": 5e-4, "flipped": 2e-3},
    "panel": {"exact": 5e-4, "flipped": 2e-3},
}

Logits = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Shape:
    """One generated model, named by what is special about it."""

    name: str
    config: ModelConfig


def shapes(*, head_dim: int = 64, ffn: int = 768) -> Iterator[Shape]:
    """Two models for each combination of HEADS and WIDTHS."""
    for index, (heads, width) in enumerate(product(HEADS, WIDTHS)):
        for second in (False, True):
            # Shifted by row and column: every width and every choice of heads meets all four pairs.
            vocabulary = VOCABULARIES[second]
            turned = second ^ bool((index + index // len(WIDTHS)) % 2)
            layout = RopeLayout.INTERLEAVED if turned else RopeLayout.HALF_SPLIT
            layers = 2 if width < 1000 else 1
            config = ModelConfig(
                architecture="llama",
                vocab_size=vocabulary,
                dim=width,
                n_layers=layers,
                n_heads=heads[0],
                n_kv_heads=heads[1],
                head_dim=head_dim,
                ffn_dim=ffn,
                context_length=512,
                norm_eps=1e-5,
                rope_theta=10000.0,
                rope_layout=layout,
                tied_head=second,
                attention_bias=turned,
            )
            name = f"{heads[0]}/{heads[1]} {width} {vocabulary} {layout.value}"
            yield Shape(name, config)


def tokens_of(config: ModelConfig, sequence: int = 0) -> list[int]:
    """As many as the longest request has."""
    random = np.random.default_rng(config.dim + config.n_heads + 100_000 * sequence)
    return [int(t) for t in random.integers(0, config.vocab_size, TOKENS[-1])]


def expected(model: PackedModel, kernel: str, tokens: Sequence[int]) -> Logits:
    """Logits of all tokens by the spec of `kernel`, "grid", "cluster" or "panel"."""
    config, count = model.config, len(tokens)
    if kernel == "cluster":
        clusters = -(-count // 8)
        cut = cluster_schedule.build(config, clusters, width=8, all_logits=True)
        return ClusterInterpreter(model, _CONTEXT).run(cut, tokens, 0)
    run: Callable[[Sequence[int], int], Logits]
    if kernel == "panel":
        panels = panel_schedule.build(config, 20, width=128, all_logits=True)
        run = partial(PanelInterpreter(model, _CONTEXT).run, panels)
    else:
        built = schedule.build(config, model.grouping, 4, width=128, workers=2, all_logits=True)
        run = partial(Interpreter(model, _CONTEXT).run, built)
    return np.concatenate([run(tokens[at : at + 128], at) for at in range(0, count, 128)])


def _beside_grid(
    config: ModelConfig, arch: str, shared_memory: int, blocks: int
) -> dict[str, Variant]:
    """The other kernels that can run this model, by name."""
    chosen = (config, Grouping.CHANNEL, arch, shared_memory)
    fitting: dict[str, Variant | None] = {
        "cluster": fitting_variant(*chosen, 4 * CLUSTER),
        "panel": panel_shape.fitting_variant(*chosen, blocks),
    }
    return {name: variant for name, variant in fitting.items() if variant is not None}


def kernels_of(config: ModelConfig) -> list[str]:
    """Those that an H200 can run this model on."""
    return ["grid", *_beside_grid(config, "sm_90a", _HOPPER_SHARED, _HOPPER_BLOCKS)]


def distances(found: Logits, wanted: Logits) -> NDArray[np.float64]:
    """Relative distance of each row."""
    apart: NDArray[np.float64] = np.linalg.norm(found - wanted, axis=1) / np.linalg.norm(
        wanted, axis=1
    )
    return apart


def judge(found: dict[int, Logits], wanted: Logits, kernel: str) -> dict[str, Any]:
    """Rows of each token count against the spec's.

    `unexplained`: another best token although the spec's two lie further apart than the noise of the
    format, as a share of the range of the logits.
    """
    limits = LIMITS[kernel]
    far: list[float] = []
    near: list[float] = []
    different = unexplained = rows = 0
    for count, logits in found.items():
        ours, right = logits.argmax(axis=1), wanted[:count].argmax(axis=1)
        apart = distances(logits, wanted[:count])
        far.append(float(apart.max()) if np.isfinite(logits).all() else float("inf"))
        if count >= _ENOUGH:
            near.append(float(apart.min()))
        rows += count
        for row in np.flatnonzero(ours != right):
            different += 1
            gap = wanted[row, right[row]] - wanted[row, ours[row]]
            unexplained += bool(gap > limits["flipped"] * np.ptp(wanted[row]))
    right = max(far) <= limits["flipped"] and not unexplained
    return {
        "rows": rows,
        "same_best_token": rows - different,
        "unexplained": unexplained,
        "largest_distance": max(far),
        "smallest_distance": max(near, default=0.0),
        "right": right,
        "passed": right and max(near, default=0.0) <= limits["exact"],
    }


def judge_other_tokens(
    part: dict[str, Any], backend: CudaBackend, model: PackedModel, kernel: str
) -> None:
    """Where no row of `part` was exact but nothing else is wrong: other first tokens have other roundings."""
    for sequence in range(1, 1 + _OTHER_TOKENS):
        if part["passed"] or not part["right"]:
            return
        tokens = tokens_of(model.config, sequence)[:9]
        again = judge({9: backend.forward_all(tokens, 0)}, expected(model, kernel, tokens), kernel)
        part[f"with tokens {sequence}"] = again
        part["right"], part["passed"] = again["right"], again["passed"]


def _kept(folder: Path, shape: Shape, kernel: str) -> Path:
    return folder / f"{shape.name.replace('/', '-').replace(' ', '_')}-{kernel}.npy"


def prepare(shape: Shape, folder: Path) -> None:
    """Compute what `check` will compare with, once; needs no GPU."""
    missing = [k for k in kernels_of(shape.config) if not _kept(folder, shape, k).exists()]
    if not missing:
        return
    folder.mkdir(parents=True, exist_ok=True)
    model = quantise_model(RandomSource(shape.config))
    for kernel in missing:
        rows = expected(model, kernel, tokens_of(shape.config))
        path = _kept(folder, shape, kernel)
        part = path.with_suffix(".part.npy")
        np.save(part, rows)
        part.replace(path)


def check(shape: Shape, run: Run, counts: Sequence[int] = TOKENS) -> dict[str, Any]:
    """One model on every kernel, at every token count of `counts`."""
    model = quantise_model(RandomSource(shape.config))
    tokens = tokens_of(shape.config)
    result: dict[str, Any] = {}
    for choice in ("auto", "panel", "grid"):
        backend = CudaBackend(
            model, _CONTEXT, run.kernels, tuning=Tuning(kernel=choice, wait_ms=run.wait_ms)
        )
        try:
            kernel = run.kernel_of(backend)
            if kernel in result:
                continue
            path = _kept(run.expected, shape, kernel)
            wanted = (
                np.load(path) if path.exists() else expected(model, kernel, tokens[: max(counts)])
            )
            found = {count: backend.forward_all(tokens[:count], 0) for count in counts}
            result[kernel] = judge(found, wanted, kernel)
            judge_other_tokens(result[kernel], backend, model, kernel)
        finally:
            backend.close()
    return result


def variants(config: ModelConfig, facts: DeviceFacts) -> list[Variant]:
    """The kernels that `check` will load on this device."""
    found = _beside_grid(config, facts.arch, facts.shared_memory, facts.multiprocessors)
    tuning = Tuning()
    for wide in (tuning.wide, 1):
        layout = GridLayout(
            config, Grouping.CHANNEL, facts.arch, facts.multiprocessors, replace(tuning, wide=wide)
        )
        if layout.shared_bytes <= facts.shared_memory:
            break
    return [*found.values(), layout.variant]


def compile_all(run: Run, listed: Sequence[Shape]) -> None:
    """All kernels of these shapes at once, on all processors: one after the other they take longest."""
    with Context() as context:
        facts = context.facts
    todo = [variant for shape in listed for variant in variants(shape.config, facts)]
    # New processes, not copies of this one: CUDA does not survive a fork.
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        made = pool.map(partial(build.cached_kernel, folder=run.kernels), todo)
        for _ in run.progress("kernels", made, len(todo)):
            pass


def section(run: Run) -> dict[str, Any]:
    """All shapes, or the part of them that was asked for."""
    part, parts = run.part
    listed = list(shapes())[part - 1 :: parts]
    compile_all(run, listed)
    result: dict[str, Any] = {"tokens": list(TOKENS), "limits": LIMITS, "shapes": {}}
    for shape in run.progress("shapes", listed):
        result["shapes"][shape.name] = check(shape, run)
    every = [part for kernels in result["shapes"].values() for part in kernels.values()]
    result["rows"] = sum(part["rows"] for part in every)
    result["same_best_token"] = sum(part["same_best_token"] for part in every)
    result["passed"] = all(part["passed"] for part in every)
    return result
