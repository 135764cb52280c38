# SPDX-License-Identifier: Apache-2.0
"""A report holds what helps, and no canary: none that was typed, none that names a person or a keyboard."""

from __future__ import annotations

import json
import logging
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from app.cli import main
from app.config.problems import Problem
from app.config.store import Loaded
from app.diagnostics.report import as_zip, collect, preview, write
from app.doctor.desktop import check_gpu, check_hotkeys, check_tray
from app.doctor.report import CheckStatus, Finding
from app.log import set_up_file_logging
from app.settings import Settings
from firmware_bridge.discovery.candidates import HID, Candidate
from firmware_bridge.transport.base import DeviceIdentity
from tests.helpers.companion import Desk

CANARY = "canarybird"
SERIAL = "SN-4711-XYZ"


def candidate(home: Path) -> Candidate:
    identity = DeviceIdentity(HID, 0xFEED, 0x6060, serial=SERIAL, product="Test board")
    return Candidate(f"{home}/dev", identity, True, f"raw HID, serial {SERIAL}")


def report(home: Path, settings: Settings) -> dict[str, str]:
    logs = home / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    (logs / "thock.log").write_text(f"WARNING link: {home}/x of {SERIAL} went away\n")
    return dict(
        collect(
            findings=[Finding("model", CheckStatus.ERROR, f"{home}/m.gguf is broken", "mend it")],
            candidates=[candidate(home)],
            loaded=Loaded(settings, (Problem("layout", "no such layout"),)),
            state={"mode": "chat"},
            log_folder=logs,
            home=home,
        )
    )


def test_it_holds_what_helps(tmp_path: Path) -> None:
    files = report(tmp_path / "ann", Settings())
    assert set(files) == {
        "versions.txt", "doctor.txt", "keyboards.txt", "settings.json", "state.json", "thock.log",
    }  # fmt: skip
    assert "thock 0" in files["versions.txt"]
    assert "~/m.gguf is broken" in files["doctor.txt"]
    assert "Test board (hid feed:6060)" in files["keyboards.txt"]
    settings = json.loads(files["settings.json"])
    assert settings["settings"]["suggest"]["count"] == 3
    assert settings["settings"]["mode"] == "suggest"
    assert settings["problems"] == ["layout: no such layout"]


def test_no_serial_number_and_no_home_is_in_it(tmp_path: Path) -> None:
    home = tmp_path / "ann"
    everything = preview(report(home, Settings(keyboard=SERIAL, model=home / "secret.gguf")))
    assert SERIAL not in everything
    assert str(home) not in everything
    assert "secret" not in everything
    assert "(serial number)" in everything


def every_free_text() -> Settings:
    """Settings with the canary in every field that takes any text."""
    values = json.loads(Settings().model_dump_json())

    def fill(table: dict[str, object], path: tuple[str, ...]) -> None:
        for key, value in table.items():
            if isinstance(value, dict) and value:
                fill(value, (*path, key))
                continue
            for canary in (CANARY, [CANARY], {CANARY: {}}, {CANARY: CANARY}, None):
                trial = json.loads(json.dumps(values))
                place = trial
                for part in path:
                    place = place[part]
                place[key] = canary
                try:
                    Settings.model_validate(trial)
                except ValueError:
                    continue
                table[key] = canary
                break

    fill(values, ())
    return Settings.model_validate(values)


def test_no_setting_of_free_text_is_copied(tmp_path: Path) -> None:
    settings = every_free_text()
    assert CANARY in settings.model_dump_json(), "no setting took the canary"
    assert CANARY not in preview(report(tmp_path, settings))


def test_what_was_typed_is_not_in_it(tmp_path: Path) -> None:
    desk = Desk()
    desk.type(f"{CANARY} ")
    everything = preview(report(tmp_path, Settings()))
    assert CANARY not in everything


def test_the_zip_is_what_was_shown(tmp_path: Path) -> None:
    files = report(tmp_path, Settings())
    path = tmp_path / "report.zip"
    write(files, path)
    assert path.read_bytes()[:2] == as_zip(files)[:2] == b"PK"
    with zipfile.ZipFile(path) as archive:
        assert {name: archive.read(name).decode() for name in archive.namelist()} == files
    assert path.stat().st_mode & 0o077 == 0


def test_the_command_shows_first_and_writes_only_what_was_agreed_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.commands.diagnostics.collected", lambda: {"a.txt": "all of it"})
    path = tmp_path / "r.zip"
    result = CliRunner().invoke(main, ["diagnostics", "--output", str(path)], input="n\n")
    assert "all of it" in result.output
    assert not path.exists()
    result = CliRunner().invoke(main, ["diagnostics", "--output", str(path)], input="y\n")
    assert result.exit_code == 0, result.output
    assert path.exists()


@pytest.mark.expected_log("xxx")
def test_the_log_file_is_private_rotates_and_names_no_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "ann"))
    path = set_up_file_logging(tmp_path / "state")
    logger = logging.getLogger("app.test")
    try:
        for _ in range(9000):
            logger.error("%s", tmp_path / "ann" / ("x" * 200))
    finally:
        root = logging.getLogger()
        for handler in [h for h in root.handlers if h.get_name() == "thock-file"]:
            root.removeHandler(handler)
            handler.close()
    files = sorted(p.name for p in path.parent.iterdir())
    assert files == ["thock.log", "thock.log.1", "thock.log.2", "thock.log.3"]
    assert all(p.stat().st_size <= 600_000 for p in path.parent.iterdir())
    assert path.stat().st_mode & 0o077 == 0
    assert "~/xxx" in path.read_text()
    assert "/ann/" not in path.read_text()


@pytest.mark.parametrize(
    ("environment", "has_gi", "status", "text"),
    [
        ({}, False, CheckStatus.OK, "no graphical session"),
        ({"DISPLAY": ":0"}, False, CheckStatus.WARNING, "without a menu"),
        ({"DISPLAY": ":0"}, True, CheckStatus.OK, "with a menu"),
        ({"WAYLAND_DISPLAY": "w"}, False, CheckStatus.WARNING, "no icon"),
    ],
)
def test_the_tray_check(
    environment: dict[str, str], has_gi: bool, status: CheckStatus, text: str
) -> None:
    finding = check_tray(environment, "linux", lambda _name: has_gi)
    assert finding.status is status
    assert text in finding.text
    assert bool(finding.fix) is (status is CheckStatus.WARNING)


def test_the_gpu_check(tmp_path: Path) -> None:
    assert "CPU computes" in check_gpu(tmp_path / "none").text
    version = tmp_path / "version"
    version.write_text("NVRM version: NVIDIA UNIX  x86_64 Kernel Module  570.1\nGCC\n")
    assert check_gpu(version).text == "NVRM version: NVIDIA UNIX x86_64 Kernel Module 570.1"


def test_the_hotkey_check() -> None:
    assert "portal" in check_hotkeys({"WAYLAND_DISPLAY": "w"}, "linux").text
    assert "the system" in check_hotkeys({"DISPLAY": ":0"}, "linux").text
