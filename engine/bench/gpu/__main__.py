# SPDX-License-Identifier: Apache-2.0
"""python -m engine.bench.gpu MODEL --out FOLDER [--only SECTION ...]

Acceptance runs of the GPU engine. Writes FOLDER/SECTION.json for each section, prints what passed, and ends
with 0 if all did, 1 if not, 2 if a section could not run. MODEL is a model file or folder, or `random:` and
smollm2, small, llama-1b or llama-7b. Sections do not need each other; the long ones are shapes, which --part
cuts, and hashes, which --repeats shortens. --prepare does before, without a GPU, what needs none: what shapes
and model are compared with.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from engine.bench.gpu import clocked, sanitizer, shapes, steady, words
from engine.bench.gpu.run import Run
from engine.errors import EngineError

EXIT_FAILED: Final = 1
EXIT_NOT_RUN: Final = 2


@dataclass(frozen=True, slots=True)
class Section:
    """`claim`: what has to hold for it to pass."""

    claim: str
    run: Callable[[Run], dict[str, Any]]


SECTIONS: Final[Mapping[str, Section]] = MappingProxyType(
    {
        "model": Section(
            "the best next token of the reference at 99.9 % of positions, the rest near ties",
            words.section,
        ),
        "shapes": Section(
            "the executable spec's logits for all heads, widths, token counts, vocabularies and rotary orders",
            shapes.section,
        ),
        "hashes": Section("one output hash over all runs of all residencies", steady.hashes),
        "prefixes": Section(
            "step by step gives the bits of one go at every prefix", steady.prefixes
        ),
        "sanitizer": Section("memcheck, synccheck and racecheck find nothing", sanitizer.section),
        "doorbell": Section(
            f"resident round trip at most {clocked.DOORBELL_US:g} us at p50, below copy, launch, copy",
            clocked.doorbell,
        ),
        "leases": Section(
            "no kernel stays longer than its limit, over 1,000 leases", clocked.leases
        ),
        "speed": Section("the speed marks of the model's shape", clocked.speed),
    }
)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="engine.bench.gpu",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
        epilog="\n".join(f"{name:<10}{section.claim}" for name, section in SECTIONS.items()),
    )
    parser.add_argument("model")
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    parser.add_argument("--only", action="append", choices=tuple(SECTIONS), help="may be repeated")
    parser.add_argument("--prepare", action="store_true", help="only what needs no GPU")
    parser.add_argument("--expected", type=Path, help="folder of what --prepare made; OUT/expected")
    parser.add_argument("--text", type=Path, help="plain text for section model")
    parser.add_argument("--positions", type=int, default=5120, help="of that text")
    parser.add_argument("--repeats", type=int, default=100_000, help="identical runs a residency")
    parser.add_argument("--runs", type=int, default=1000, help="of each time")
    parser.add_argument(
        "--leases", type=_leases, default={20: 900, 100: 60, 500: 40}, help="20:900,100:60,500:40"
    )
    parser.add_argument("--part", type=_part, default=(1, 1), help="of the shapes, as 1/4")
    parser.add_argument("--kernel", choices=("auto", "grid"), default="auto")
    parser.add_argument("--wait-ms", type=int, default=1000)
    parser.add_argument("--cache", type=Path, default=Path("build") / "fp8")
    parser.add_argument("--kernels", type=Path, help="folder of compiled kernels; CACHE")
    parser.add_argument("--commit", default="", help="where there is no checkout to ask")
    return parser


def _leases(text: str) -> dict[int, int]:
    pairs = (part.split(":") for part in text.split(","))
    return {int(limit): int(count) for limit, count in pairs}


def _part(text: str) -> tuple[int, int]:
    part, parts = (int(number) for number in text.split("/"))
    if not 1 <= part <= parts:
        raise ValueError(text)
    return part, parts


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line."""
    options = _parser().parse_args(arguments)
    run = Run(
        model=options.model,
        kernels=options.kernels or options.cache,
        cache=options.cache,
        expected=options.expected or options.out / "expected",
        repeats=options.repeats,
        runs=options.runs,
        leases=options.leases,
        kernel=options.kernel,
        wait_ms=options.wait_ms,
        text=options.text,
        positions=options.positions,
        part=options.part,
    )
    names = options.only or list(SECTIONS)
    if options.prepare:
        return _prepare(run, names)
    codes = [_section(name, run, options) for name in dict.fromkeys(names)]
    return max(codes)


def _prepare(run: Run, names: Sequence[str]) -> int:
    if "shapes" in names:
        part, parts = run.part
        todo = list(shapes.shapes())[part - 1 :: parts]
        with ProcessPoolExecutor() as pool:
            made = pool.map(partial(shapes.prepare, folder=run.expected), todo)
            for _ in run.progress("shapes", made, len(todo)):
                pass
    if "model" in names and not run.model.startswith("random:"):
        words.reference(run)
        run.packed()
    return 0


def _section(name: str, run: Run, options: argparse.Namespace) -> int:
    section = SECTIONS[name]
    run.say(f"--- {name}: {section.claim}")
    try:
        facts = run.facts(options.commit)
        before = run.gpu.read()
        result = section.run(run)
    except EngineError as error:
        print(f"not run {name}: {error.code}: {error}")
        return EXIT_NOT_RUN
    found = {
        "section": name,
        "claim": section.claim,
        "passed": result.pop("passed"),
        **facts,
        "sensors_before": before,
        "sensors_after": run.gpu.read(),
        **result,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    part, parts = run.part
    suffix = f"-{part}-of-{parts}" if name == "shapes" and parts > 1 else ""
    path = options.out / f"{name}{suffix}.json"
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"{'passed ' if found['passed'] else 'FAILED '} {name}: {section.claim} ({path})")
    return 0 if found["passed"] else EXIT_FAILED


if __name__ == "__main__":
    sys.exit(main())
