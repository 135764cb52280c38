# SPDX-License-Identifier: Apache-2.0
"""`thock bench engine`, on a tiny model: its table, its file, its exit codes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from app.bench.engine_report import lines
from app.commands.bench import command
from tests.helpers.gguf_writer import make_tiny_gguf

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(make_tiny_gguf(tmp_path_factory.mktemp("bench") / "tiny.gguf").path)


def bench(*arguments: str) -> Any:
    return CliRunner().invoke(command, ["engine", "--engine", "cpu", "--runs", "3", *arguments])


def test_times_beside_a_peer(model: str, tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    done = bench("--model", model, "--json", str(file))
    assert done.exit_code == 0, done.output
    for part in ("128 -> 1", "+8", "peer p50", "transformers", "1000 ms", "on cpu", "commit "):
        assert part in done.output
    found = json.loads(file.read_text(encoding="utf-8"))
    assert set(found["requests"]) == set(found["peer"]["requests"])
    for name in ("device", "driver", "processor", "sensors_before", "commit", "date"):
        assert name in found


def test_numbers_that_are_right(model: str) -> None:
    done = bench("--model", model, "--check")
    assert done.exit_code == 0, done.output
    assert done.output.count("passed") == 3


def test_a_model_that_cannot_be_read(tmp_path: Path) -> None:
    file = tmp_path / "no.gguf"
    file.write_bytes(b"not a model")
    done = bench("--model", str(file))
    assert done.exit_code == 1
    assert "was not measured" in done.output


def test_numbers_that_are_wrong_end_with_1(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = subprocess.run

    def run(argv: Any, **options: Any) -> Any:
        done = real(argv, **options)
        found = json.loads(done.stdout)
        found["check"]["repeated"]["passed"] = False
        return subprocess.CompletedProcess(argv, 1, json.dumps(found))

    monkeypatch.setattr(subprocess, "run", run)
    done = bench("--model", model, "--check")
    assert done.exit_code == 1
    assert "FAILED  the same every time" in done.output


def test_what_a_gpu_adds() -> None:
    row = {"p50_ms": 0.3, "p90_ms": 0.4, "max_ms": 0.5, "runs": 3, "joules": 0.02}
    gpu = json.loads((ROOT / "docs/benchmarks/h200-smollm2-shape.json").read_text(encoding="utf-8"))
    found = {
        "model": "tiny", "parameters": 1_000_000, "backend": "cuda", "note": "", "device": "Some GPU",
        "driver": "580.1", "commit": "", "date": "2026-01-01", "requests": {"128 -> 1": row},
        "after_rests": {"0 ms": row}, "gpu": gpu, "peer_missing": "this torch has no CUDA",
        "processor": {"name": "CPU", "threads": 2, "cores": 2, "load_1min": 0.5},
        "sensors_before": {"watts": 90.0}, "sensors_after": {"watts": 200.0},
    }  # fmt: skip
    text = "\n".join(lines(found))
    for part in (
        "Some GPU, driver 580.1",
        "joules",
        "0.0200",
        "watts after 200",
        "lease",
        "no peer",
    ):
        assert part in text
