# SPDX-License-Identifier: Apache-2.0
"""What `python -m engine.bench` found, as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Found = Mapping[str, Any]


def lines(found: Found) -> Iterator[str]:
    """Everything that a person wants to read; the JSON has the rest."""
    yield from _head(found)
    if "check" in found:
        yield from _checks(found["check"])
        return
    yield from _requests(found)
    yield ""
    yield f"{'+1 after a rest of':<20}{'p50 ms':>10}{'p90 ms':>10}{'max ms':>10}"
    for gap, row in found["after_rests"].items():
        yield f"{gap:<20}{_times(row)}"
    yield from _residencies(found.get("gpu", {}))


def _head(found: Found) -> Iterator[str]:
    machine = found["processor"]
    yield f"{found['model']}, {found['parameters'] / 1e6:.0f} M parameters, on {found['backend']}"
    if found["note"]:
        yield found["note"]
    if found["driver"]:
        yield f"{found['device']}, driver {found['driver']}"
    yield (
        f"{machine['name']}, {machine['threads'] or machine['cores']} threads, "
        f"load {machine['load_1min']:g}"
    )
    if found["sensors_before"]:
        told = found["sensors_before"] | {
            f"{k} after": v for k, v in found["sensors_after"].items()
        }
        yield ", ".join(f"{name} {value:g}" for name, value in told.items())
    yield f"commit {found['commit'] or 'unknown'}, {found['date']}"
    yield ""


def _requests(found: Found) -> Iterator[str]:
    peer = found.get("peer")
    joules = any("joules" in row for row in found["requests"].values())
    yield (
        f"{'tokens':<20}{'p50 ms':>10}{'p90 ms':>10}{'max ms':>10}"
        + f"{'joules':>10}" * joules
        + ("" if peer is None else f"{'peer p50':>10}{'times':>8}")
    )
    for name, row in found["requests"].items():
        line = f"{name:<20}{_times(row)}"
        if joules:
            line += f"{row['joules']:>10.4f}" if "joules" in row else f"{'':>10}"
        if peer is not None:
            theirs = peer["requests"][name]["p50_ms"]
            line += f"{theirs:>10.2f}{theirs / row['p50_ms']:>8.2f}"
        yield line
    if peer is not None:
        yield f"peer: {peer['name']}, float32, the same weights, this run"
    elif "torch_fp16" in found:
        for name, row in found["torch_fp16"].items():
            if isinstance(row, Mapping) and "eager_us" in row:
                eager, graph = row["eager_us"]["p50"], row["graph_us"]["p50"]
                yield f"PyTorch float16 {name}: eager {eager:g} us, CUDA graph {graph:g} us"
    elif "peer_missing" in found:
        yield f"no peer: {found['peer_missing']}"


def _residencies(gpu: Found) -> Iterator[str]:
    for name, part in gpu.get("residencies", {}).items():
        yield ""
        yield f"{name:<20}{'p50 us':>10}{'p99 us':>10}"
        for what, row in part["latency"].items():
            yield f"{what:<20}{row['host_us']['p50']:>10.1f}{row['host_us']['p99']:>10.1f}"
        doorbell = part.get("doorbell", {}).get("host_us")
        if doorbell is not None:
            yield f"{'doorbell':<20}{doorbell['p50']:>10.1f}{doorbell['p99']:>10.1f}"


def _checks(check: Found) -> Iterator[str]:
    texts = {
        "incremental": "step by step as in one go: {same_bits} of {prefixes} with the same bits, "
        "largest difference {largest_difference:.2g}",
        "repeated": "the same every time: {runs} runs",
        "reference": "best tokens of the reference: {same} of {positions}, {near_ties} near ties, "
        "largest difference {largest_difference:.2g}",
    }
    for name, row in check.items():
        yield f"{'passed' if row['passed'] else 'FAILED':<8}{texts[name].format(**row)}"


def _times(row: Found) -> str:
    return f"{row['p50_ms']:>10.2f}{row['p90_ms']:>10.2f}{row['max_ms']:>10.2f}"
