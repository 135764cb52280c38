# SPDX-License-Identifier: Apache-2.0
"""The acceptance runs of the GPU engine, on a simulated GPU: what they run, notice and write."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.backend import Logits
from engine.bench import timing
from engine.bench.gpu import __main__ as command
from engine.bench.gpu import clocked, run, sanitizer, shapes, steady, trip, words
from engine.cpu.backend import CpuBackend
from engine.cuda import bench, build, driver, parity
from engine.cuda.errors import NoDeviceError
from engine.cuda.mailbox import Candidate, Reply
from engine.cuda.random_source import RandomSource, random_packed
from engine.formats import open_model
from engine.fp8.model import quantise_model
from tests.helpers.gguf_writer import make_tiny_gguf
from tests.helpers.memory_source import tiny_source
from tests.helpers.random_source import tiny_config
from tests.helpers.simulated_gpu import simulated_gpu

TINY = tiny_config(layers=1, vocab=60, tied=False)
FEW = 9  # tokens instead of 128: the simulated kernel takes milliseconds for each


@pytest.fixture
def small_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (run, bench, timing):
        monkeypatch.setattr(module, "PROMPT", FEW)
    monkeypatch.setattr(timing, "GAPS_MS", (0, 1))
    monkeypatch.setattr(bench, "_WARM", 1)
    monkeypatch.setattr(trip, "_WARM", 1)
    monkeypatch.setattr(clocked, "_IDLE_LEASES", 1)
    monkeypatch.setitem(bench.SHAPES, "tiny", TINY)  # type: ignore[misc]  # Final to all but this test


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch, small_prompt: None) -> Iterator[Any]:
    with simulated_gpu(monkeypatch, random_packed(TINY)) as simulated:
        yield simulated


def accept(out: Path, *arguments: str, model: str = "random:tiny") -> tuple[int, dict[str, Any]]:
    """Exit code, and what each section wrote."""
    code = command.main(
        [model, "--out", str(out), "--cache", str(out), "--commit", "abc", *arguments]
    )
    return code, {p.stem: json.loads(p.read_text(encoding="utf-8")) for p in out.glob("*.json")}


def test_hashes_and_prefixes(gpu: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = accept(
        tmp_path, "--only", "hashes", "--only", "prefixes", "--repeats", "9", "--wait-ms", "30000"
    )
    assert code == 0
    assert capsys.readouterr().out.count("passed") == 2
    parts = found["hashes"]["residencies"]
    assert set(parts) == {"launch", "lease", "resident"}
    assert all(sum(p["replies"].values()) == 9 and len(p["logits"]) == 1 for p in parts.values())
    assert found["prefixes"]["prefixes"] == FEW - 1
    assert set(found["prefixes"]["different"]) == {f"grid, {r}" for r in parts}
    for name in ("device", "driver", "commit", "date", "clock_mhz", "sensors_before", "claim"):
        assert name in found["hashes"], name
    assert found["hashes"]["commit"] == "abc"


def test_times_are_written_whatever_they_are(gpu: Any, tmp_path: Path) -> None:
    code, found = accept(
        tmp_path, "--only", "doorbell", "--only", "leases", "--only", "speed", "--runs", "3",
        "--leases", "200:2,400:1", "--wait-ms", "30000",
    )  # fmt: skip
    assert code == command.EXIT_FAILED  # a simulated GPU is slow, and three leases are too few
    assert set(found["doorbell"]["residencies"]) == {"launch", "lease", "resident"}
    assert found["doorbell"]["copy_launch_copy_us"]["p50"] > 0
    limits = found["leases"]["limits"]
    assert [limits[k]["leases"] for k in ("200 ms", "400 ms")] == [2, 1]
    assert limits["200 ms"]["stay_us"]["p50"] > 50_000  # it was kept busy
    assert found["leases"]["idle_150_ms"]["stay_us"]["p50"] > 100_000
    speed = found["speed"]
    assert set(speed["marks"]) == {"128->1", "+1"}
    assert not speed["passed"]
    assert set(speed["l2_kept"]) == set(speed["residencies"]["launch"]["latency"])
    assert set(speed["residencies"]["lease"]["after_rests"]) == {"0 ms", "1 ms"}


def test_a_display_gpu_is_never_stayed_on(
    monkeypatch: pytest.MonkeyPatch, small_prompt: None, tmp_path: Path
) -> None:
    with simulated_gpu(monkeypatch, random_packed(TINY), watchdog=True):
        _, found = accept(tmp_path, "--only", "hashes", "--repeats", "2", "--wait-ms", "30000")
    assert set(found["hashes"]["residencies"]) == {"launch", "lease"}
    assert found["hashes"]["passed"]


def test_without_a_gpu_nothing_is_claimed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing() -> Any:
        raise NoDeviceError("no GPU here")

    monkeypatch.setattr(driver, "load", missing)
    code, found = accept(tmp_path, "--only", "hashes", "--only", "doorbell")
    assert code == command.EXIT_NOT_RUN
    assert not found
    assert capsys.readouterr().out.count("not run") == 2


def test_a_model_against_its_reference(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(parity, "WINDOW", 16)
    path = make_tiny_gguf(tmp_path / "tiny.gguf").path
    text = tmp_path / "text.txt"
    text.write_text("the keyboard had been on the desk for a long time " * 4, encoding="utf-8")
    arguments = ("--only", "model", "--text", str(text), "--positions", "40", "--wait-ms", "30000")
    assert accept(tmp_path, *arguments, "--prepare", model=str(path)) == (0, {})
    source = open_model(path)
    model = quantise_model(source)
    source.close()
    with simulated_gpu(monkeypatch, model):
        _, found = accept(tmp_path, *arguments, model=str(path))
    figures = found["model"]["kernels"]["grid"]
    assert found["model"]["served_by"] == "grid"
    assert figures["positions"] == 32
    assert figures["top1_same"] > 0.5


def test_text_and_model_are_asked_for(tmp_path: Path) -> None:
    options = run.Run("random:tiny", tmp_path, tmp_path, tmp_path)
    with pytest.raises(run.EngineError, match="--model FILE"):
        words.reference(options)
    with pytest.raises(run.EngineError, match="--text FILE"):
        words.reference(replace(options, model="x.gguf"))
    with pytest.raises(run.EngineError, match="smollm2"):
        replace(options, model="random:nonsense").packed()


# ---------------------------------------------------------------- shapes


def test_every_pair_of_choices_occurs() -> None:
    listed = list(shapes.shapes())
    assert len({s.name for s in listed}) == len(listed) == 32
    seen = {
        ((c.n_heads, c.n_kv_heads), c.dim, c.vocab_size, c.rope_layout)
        for c in (s.config for s in listed)
    }
    for first in range(4):
        for second in range(first + 1, 4):
            pairs = {(key[first], key[second]) for key in seen}
            assert len(pairs) == len({p[0] for p in pairs}) * len({p[1] for p in pairs})
    assert {key[0] for key in seen} == {(9, 3), (32, 8), (32, 32), (4, 4)}
    assert {key[1] for key in seen} == {576, 896, 2048, 4096}
    assert set(shapes.TOKENS) == {*range(1, 10), 127, 128, 129}
    kinds = {tuple(shapes.kernels_of(s.config)) for s in listed}
    assert kinds == {("grid", "cluster", "panel"), ("grid", "panel")}


def test_a_shape_is_checked_on_every_kernel(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = tiny_config(heads=(4, 4), dim=256, ffn=256, head_dim=64, layers=1, tied=False)
    shape = shapes.Shape("tiny", config)
    monkeypatch.setattr(shapes, "TOKENS", (1, 2, 9))
    shapes.prepare(shape, tmp_path)
    assert len(list(tmp_path.glob("tiny-*.npy"))) == 3
    shapes.prepare(shape, tmp_path)  # nothing is left to do
    options = run.Run("random:tiny", tmp_path, tmp_path, tmp_path, wait_ms=30_000)
    model = quantise_model(RandomSource(config))
    with simulated_gpu(monkeypatch, model, (9, 0)):
        found = shapes.check(shape, options, shapes.TOKENS)
    assert set(found) == {"cluster", "panel", "grid"}
    assert all(part["passed"] and part["rows"] == 12 for part in found.values())
    # Other weights are noticed.
    wrong = replace(model, final_norm=np.ascontiguousarray(model.final_norm[::-1]))
    with simulated_gpu(monkeypatch, wrong, (9, 0)):
        found = shapes.check(shape, options, shapes.TOKENS)
    assert not any(part["passed"] for part in found.values())


def test_a_part_of_the_shapes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[str] = []

    def check(shape: shapes.Shape, _: Any) -> dict[str, Any]:
        seen.append(shape.name)
        return {"grid": {"rows": 3, "same_best_token": 3, "passed": shape.config.dim != 4096}}

    monkeypatch.setattr(shapes, "check", check)
    monkeypatch.setattr(shapes, "compile_all", lambda *_: None)
    with simulated_gpu(monkeypatch, random_packed(TINY)):
        for part in ("1/3", "2/3", "3/3"):
            accept(tmp_path, "--only", "shapes", "--part", part)
    assert sorted(seen) == sorted(s.name for s in shapes.shapes())
    written = sorted(p.stem for p in tmp_path.glob("*.json"))
    assert written == [f"shapes-{n}-of-3" for n in (1, 2, 3)]
    found = json.loads((tmp_path / "shapes-2-of-3.json").read_text(encoding="utf-8"))
    assert not found["passed"]
    assert found["rows"] == found["same_best_token"] == 3 * len(found["shapes"])
    for wrong in ("0/3", "4/3", "x"):
        with pytest.raises(SystemExit):
            accept(tmp_path, "--part", wrong)


def test_the_kernels_that_will_be_loaded_are_compiled_before(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = tiny_config(heads=(4, 4), dim=256, ffn=256, head_dim=64, layers=1, tied=False)
    options = run.Run("random:tiny", tmp_path, tmp_path, tmp_path, wait_ms=30_000)
    loaded: list[Any] = []
    with simulated_gpu(monkeypatch, quantise_model(RandomSource(config)), (9, 0)):
        monkeypatch.setattr(
            build,
            "cached_kernel",
            lambda variant, _: loaded.append(variant) or build.Built(b"\x7fELF", "", None),
        )
        shapes.check(shapes.Shape("tiny", config), options, (1,))
        with driver.Context() as context:
            assert loaded == shapes.variants(config, context.facts)


# ---------------------------------------------------------------- determinism


class Odd(CpuBackend):
    """Wrong in one way: `drift` from call to call, or `batch` by the tokens that come at once."""

    def __init__(self, drift: float = 0.0, batch: float = 0.0) -> None:
        super().__init__(tiny_source(), 160, threads=1)
        self._drift, self._batch, self._calls = drift, batch, 0

    def forward(self, tokens: Sequence[int], position: int) -> Logits:
        self._calls += 1
        wrong = self._drift * self._calls + self._batch * len(tokens)
        row = np.zeros(97, dtype=np.float32)
        row[3] = 1.0
        return row + np.float32(wrong)

    def best(self, tokens: Sequence[int], position: int, count: int) -> Reply:
        row = self.forward(tokens, position)
        return Reply(tuple(Candidate(i, float(row[i]), -1.0) for i in range(count)), 1)


def test_other_bits_are_noticed() -> None:
    tokens = list(range(20))

    def seen(odd: Any) -> dict[str, Any]:
        return steady.repeated(odd, tokens, 3000, iter)

    steadily, drifting = seen(Odd()), seen(Odd(drift=1e-3))
    assert steady.agree({"launch": steadily, "lease": seen(Odd())})
    assert sum(steadily["replies"].values()) == 3000
    assert sum(steadily["logits"].values()) == 3
    assert not steady.agree({"launch": drifting})
    assert not steady.agree({"launch": steadily, "lease": seen(Odd(batch=1e-3))})
    assert not steady.agree({})


def test_rows_that_depend_on_their_neighbours_are_noticed() -> None:
    odd: Any = Odd(batch=1e-3)
    # Of 20 tokens the last 20 - n come at once; the whole is no other only where n is 0.
    assert steady.different_prefixes(odd, list(range(20))) == list(range(1, 20))
    right: Any = Odd()
    assert steady.different_prefixes(right, list(range(20))) == []


# ---------------------------------------------------------------- times


def test_marks_and_limits() -> None:
    latency = {"128->1": {"host_us": {"p50": 480.0}}, "+1": {"host_us": {"p50": 251.0}}}
    met = clocked.marks_met(latency, clocked.MARKS["smollm2"])
    assert [m["met"] for m in met.values()] == [True, False]
    assert clocked.late([19_999_000, 20_000_001, 20_500_000], 20) == 2


def test_progress_tells_how_long_it_takes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    options = run.Run("random:tiny", tmp_path, tmp_path, tmp_path)
    clock = iter(range(0, 1000, 2))
    monkeypatch.setattr(run.time, "monotonic", lambda: float(next(clock)))
    assert list(options.progress("things", range(8), 8)) == list(range(8))
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 2
    assert told[0].startswith("things: 2 of 8, 6 s, ")


def test_the_trip_kernel_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        build.compiler_version()
    except NoDeviceError as missing:
        pytest.skip(f"needs the CUDA compiler: {missing}")
    for arch in build.ARCHITECTURES:
        assert build.compile_kernel(trip.TripVariant(arch)).cubin.startswith(b"\x7fELF")


# ---------------------------------------------------------------- compute-sanitizer


@pytest.mark.parametrize(
    ("output", "errors", "warnings", "complete"),
    [
        ("========= ERROR SUMMARY: 0 errors\n", 0, 0, True),
        ("========= Invalid\n=========     at x\n========= ERROR SUMMARY: 1 error\n", 1, 0, True),
        ("========= RACECHECK SUMMARY: 7 hazards displayed (3 errors, 4 warnings)\n", 3, 4, True),
        ("========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n", 0, 0, True),
        ("Traceback: it did not start\n", 0, 0, False),
    ],
)
def test_a_report_is_read(output: str, errors: int, warnings: int, complete: bool) -> None:
    found = sanitizer.summary(output)
    assert (found["errors"], found["warnings"], found["complete"]) == (errors, warnings, complete)
    assert ("report" in found) == (errors + warnings > 0 or not complete)


def test_every_tool_sees_all_kernels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    started: list[list[str]] = []

    def start(argv: list[str], **_: Any) -> Any:
        started.append(argv)
        bad = "synccheck" in argv and "grid" in argv
        text = f"========= ERROR SUMMARY: {int(bad)} error{'s' * (not bad)}\n"
        return subprocess.CompletedProcess(argv, 0, text, "")

    monkeypatch.setattr(sanitizer.subprocess, "run", start)
    monkeypatch.setattr(sanitizer.shutil, "which", lambda _: "/bin/true")
    options = run.Run("random:tiny", tmp_path, tmp_path, tmp_path)
    found = sanitizer.section(options)
    assert len(started) == 9
    assert not found["passed"]
    assert [n for n, part in found["tools"].items() if part["errors"]] == ["synccheck, grid"]
    races = [argv for argv in started if "racecheck" in argv]
    counts = [int(argv[argv.index("--num-cuda-barriers") + 1]) for argv in races]
    assert counts == [sanitizer.barriers_of_a_block(kernel) for kernel in sanitizer.KERNELS]


def test_barriers_are_counted_as_the_kernel_has_them() -> None:
    state = build.sources()["cluster_state.cuh"]
    assert "ARRIVALS = 5" in state
    for line in (
        "u64 arrivals[ARRIVALS];",
        "u64 constants[2], constants_read[2];",
        "u64 stream[WARPS][MAX_SLOTS], stream_read[WARPS][MAX_SLOTS];",
    ):
        assert line in state
    assert sanitizer.barriers_of_a_block("auto") > 9
    state = build.sources()["panel_state.cuh"]
    assert "MAX_SLOTS = 32;" in state
    for line in (
        "u64 weights_full[MAX_SLOTS], weights_read[MAX_SLOTS];",
        "u64 input_full[MAX_SLOTS], input_read[MAX_SLOTS];",
    ):
        assert line in state
    assert sanitizer.barriers_of_a_block("panel") == 4 * 32 + 2


def test_a_missing_tool_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sanitizer.shutil, "which", lambda _: None)
    found = sanitizer.section(run.Run("random:tiny", tmp_path, tmp_path, tmp_path))
    assert not found["passed"]
    assert "not installed" in found["missing"]
