# SPDX-License-Identifier: Apache-2.0
"""The copied files are all that a firmware build needs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from firmware_bridge.firmware.export import main
from tests.helpers.kmk_board import OWN
from tests.helpers.qmk_build import (
    BOARD,
    HOST,
    OLED,
    RGB,
    SHIMS,
    VIA,
    WARNINGS,
    run,
    write_community_modules,
)


def test_the_copied_qmk_module_compiles_by_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    HOST.need()
    userspace = tmp_path / "userspace"
    userspace.mkdir()
    assert main(["qmk", str(userspace)]) == 0
    module = userspace / "modules" / "thock" / "companion"
    assert str(module) in capsys.readouterr().out
    sources = [
        word
        for line in (module / "rules.mk").read_text().splitlines()
        if line.startswith("SRC")
        for word in line.split()
        if word.endswith(".c")
    ]
    write_community_modules(tmp_path)
    run(
        *HOST.compiler, HOST.standard, *WARNINGS, *BOARD, *OLED, *RGB, *VIA,
        '-DTHOCK_CONFIG_HEADER="thock_board.h"', f"-I{tmp_path}", f"-I{SHIMS}", "-c",
        *(module / name for name in ("companion.c", *sources)), cwd=tmp_path,
    )  # fmt: skip
    assert json.loads((module / "qmk_module.json").read_text())["features"] == {"raw": True}
    assert (module / "LICENSE.GPL-2.0-or-later").is_file()


def test_the_copied_kmk_module_is_complete(tmp_path: Path) -> None:
    assert main(["kmk", str(tmp_path)]) == 0
    assert {path.stem for path in tmp_path.iterdir()} == set(OWN)


def test_a_folder_that_is_missing_is_not_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["qmk", str(tmp_path / "typo")]) == 1
    assert "typo" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
