# SPDX-License-Identifier: Apache-2.0
"""At least 300 damaged or hostile model files: each gives a typed error or a sound model, in budget.

The budget is 1 second and 200 MiB of address space for one file. The files are loaded in a child
whose limit the operating system enforces; see tests/helpers/model_probe.py.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.gguf_mutations import Mutant, gguf_mutants
from tests.helpers.hf_mutations import hf_mutants

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS is enforced on Linux")
SECONDS = 1.0
ROOT = Path(__file__).parents[2]


def probe(paths: list[Path]) -> list[dict[str, str | float]]:
    result = subprocess.run(
        [sys.executable, "-m", "tests.helpers.model_probe"],
        input="".join(f"{path}\n" for path in paths),
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=120,
        check=False,
    )
    reports = [json.loads(line) for line in result.stdout.splitlines()]
    if result.returncode != 0 or len(reports) != len(paths):
        killer = paths[len(reports)] if len(reports) < len(paths) else "the end"
        pytest.fail(f"the child died ({result.returncode}) at {killer}: {result.stderr[-2000:]}")
    return reports


def complaints(mutants: list[Mutant]) -> list[str]:
    """What is wrong with how the mutants were treated; empty if nothing."""
    out = []
    reports = probe([mutant.path for mutant in mutants])
    for mutant, report in zip(mutants, reports, strict=True):
        error, message = str(report["error"]), str(report["message"])
        where = f"{mutant.path.name}: {error} {message!r}"
        if float(report["seconds"]) > SECONDS:
            # Others may use the machine; what counts is the best of three.
            again = [float(probe([mutant.path])[0]["seconds"]) for _ in range(2)]
            if min(again) > SECONDS:
                out.append(f"{where}: took {[report['seconds'], *again]} s")
        if not error:
            if mutant.field is not None:
                out.append(f"{where}: was accepted")
            continue
        if error not in ("ModelFileError", "UnsupportedModelError"):
            out.append(f"{where}: is no typed error")
        if mutant.path.name not in message or not report["field"]:
            out.append(f"{where}: names no file or no field")
        if mutant.field is not None and mutant.field not in message:
            out.append(f"{where}: does not name {mutant.field}")
        if not message.isprintable():
            out.append(f"{where}: is not printable")
    return out


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("models")
    yield path
    shutil.rmtree(path)  # 100 MB


@pytest.fixture(scope="module")
def mutants(folder: Path) -> list[Mutant]:
    return gguf_mutants(folder) + hf_mutants(folder)


def test_mutated_models(mutants: list[Mutant]) -> None:
    assert len(mutants) >= 300
    assert complaints(mutants) == []


def test_the_sound_models_behind_them_load(folder: Path, mutants: list[Mutant]) -> None:
    assert mutants
    sound = [*folder.glob("sound*"), folder / "sharded"]
    assert [report["message"] for report in probe(sound)] == [""] * 12
