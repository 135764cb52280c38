# SPDX-License-Identifier: Apache-2.0
"""500 damaged files: each gives settings that a companion can start with, and each loss is told."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from app.config.migrations import VERSION_KEY
from app.config.store import SettingsStore
from app.settings import Settings
from tests.helpers.companion import Desk

GOOD = (Path(__file__).parents[1] / "golden" / "config" / "v1.toml").read_bytes()
POISON = [
    b"\x00", b"\xff\xfe", b"]", b"[", b"[[", b"'", b'"""', b"=", b"\n= 1\n", b"{", b"nan", b"-1",
    b"9" * 5000, b"[" * 3000, b"9999-99-99", b"\n[suggest]\n", b"\nmode = 3\n", b"\n[mode]\n",
    b"\nsuggest = 1\n", b"\nschema_version = 'x'\n", b"\nzzz.yyy = 1\n", b"\r", b"# ", b"\\", b"true",
]  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """The good file after some accidents: bytes lost, doubled, changed, put in; cut off; not it at all."""
    data = bytearray(GOOD)
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(data)))
        match draw(st.sampled_from(["cut", "drop", "flip", "insert", "poison", "double"])):
            case "cut":
                del data[at:]
            case "drop":
                del data[at : at + draw(st.integers(1, 40))]
            case "flip" if at < len(data):
                data[at] ^= 1 << draw(st.integers(0, 7))
            case "insert":
                data[at:at] = draw(st.binary(max_size=12))
            case "poison":
                data[at:at] = draw(st.sampled_from(POISON))
            case "double":
                data[at:at] = data[at : at + draw(st.integers(1, 60))]
    return bytes(data)


def meant(data: bytes) -> dict[str, Any] | None:
    try:
        return tomllib.loads(data.decode())
    except (ValueError, RecursionError):
        return None


def is_part_of(table: dict[str, Any], values: dict[str, Any]) -> bool:
    """Every value that the file has is what was loaded."""
    return all(
        key in values
        and (
            is_part_of(value, values[key]) if isinstance(value, dict) else _same(value, values[key])
        )
        for key, value in table.items()
    )


def _same(written: Any, loaded: Any) -> bool:
    return bool(written == loaded) or str(written) == str(loaded) or float(written) == float(loaded)


@settings(
    max_examples=500, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.one_of(damaged(), st.binary(max_size=200)))
@example(data=b"")
@example(data=b"[" * 100_000)
@example(data=b"x\n" * 100_000)
@example(data=b"a = 1\n" * 200_000)
@example(data=b"max_context = " + b"9" * 5000)
@example(data=b"layout = 'zz'\nmodel = 1979-05-27")
def test_every_damaged_file_starts_the_app_and_every_loss_is_told(
    tmp_path: Path, data: bytes
) -> None:
    path = tmp_path / "settings.toml"
    path.write_bytes(data)
    store = SettingsStore(path)
    loaded = store.load()
    desk = Desk(loaded.settings)  # a companion starts with them
    assert desk.state.mode is loaded.settings.mode
    assert path.read_bytes() == data, "reading must not change the file"
    table = meant(data)
    if table is None:
        assert loaded.problems, "the file is no TOML, and nobody was told"
    elif not loaded.problems:
        table.pop(VERSION_KEY, None)
        assert is_part_of(table, loaded.settings.model_dump(mode="json"))
    if loaded.problems:
        assert loaded.backup is not None
        assert loaded.backup.read_bytes() == data
        loaded.backup.unlink()


@pytest.mark.parametrize("line", range(GOOD.count(b"\n")))
def test_a_line_that_is_lost_costs_only_what_stood_in_it(tmp_path: Path, line: int) -> None:
    lines = GOOD.decode().splitlines()
    name = lines[line].partition(" ")[0]
    lines[line] = "%%% " + lines[line]
    path = tmp_path / "settings.toml"
    path.write_text("\n".join(lines))
    loaded = SettingsStore(path).load()
    assert loaded.problems[0].place == f"line {line + 1}"
    good, found = SettingsStore(_good(tmp_path)).load().settings, loaded.settings
    if lines[line].endswith("]"):
        return  # of a table without its name, each setting is told as unknown
    for field in Settings.model_fields:
        old, new = getattr(good, field), getattr(found, field)
        if field != name and not isinstance(old, BaseModel):
            assert old == new, field


def _good(folder: Path) -> Path:
    path = folder / "good.toml"
    path.write_bytes(GOOD)
    return path
