# SPDX-License-Identifier: Apache-2.0
"""`thock doctor` tells what is wrong with the fix, and installs nothing without asking."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from app.cli import main
from app.doctor.keyboards import check_keyboards
from app.doctor.report import CheckStatus, Finding, describe, worst
from app.doctor.udev import UdevError, install, rules_for
from firmware_bridge.discovery.candidates import Candidate
from firmware_bridge.transport.base import DeviceIdentity


def board(path: str = "/dev/hidraw3", *, interface: int = 1, transport: str = "hid") -> Candidate:
    identity = DeviceIdentity(transport, 0xFEED, 0x0001, "", "1-2", "Corne")
    return Candidate(path, identity, True, "it has the raw HID usage", interface, 32)


def doctor(
    monkeypatch: pytest.MonkeyPatch, found: list[Candidate], *arguments: str, answer: str = ""
) -> Result:
    monkeypatch.setattr("app.commands.doctor._candidates", lambda: found)
    return CliRunner().invoke(main, ["doctor", *arguments], input=answer)


def test_report_shows_the_fix_below_what_is_wrong() -> None:
    findings = [
        Finding("python", CheckStatus.OK, "3.13"),
        Finding("model", CheckStatus.ERROR, "none", "Run `thock model add smollm2`."),
    ]
    assert worst(findings) is CheckStatus.ERROR
    lines = describe(findings).splitlines()
    assert lines[0].startswith("  ok  python")
    assert lines[1].startswith("FAIL  model")
    assert "-> Run" in lines[2]


def test_the_exit_code_is_the_worst_finding(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("app.models.store.default_models_folder", lambda: tmp_path / "none")
    result = doctor(monkeypatch, [])
    assert result.exit_code == 2
    assert "thock model add smollm2" in result.output


def test_a_keyboard_that_may_not_be_opened_gets_the_rule(tmp_path: Path) -> None:
    missing = board(str(tmp_path / "hidraw9"))
    finding = check_keyboards([missing])
    assert finding.status is CheckStatus.ERROR
    assert "--install-udev" in finding.fix
    node = tmp_path / "hidraw3"
    node.touch()
    assert check_keyboards([board(str(node))]).status is CheckStatus.OK
    assert check_keyboards([]).status is CheckStatus.OK


def test_a_locked_serial_port_names_the_group(tmp_path: Path) -> None:
    finding = check_keyboards([board(str(tmp_path / "ttyACM0"), transport="serial")])
    assert "dialout" in finding.fix


def test_rules_open_the_raw_interface_only() -> None:
    rules = rules_for([board(), board(transport="serial")])
    assert 'ATTRS{bInterfaceNumber}=="01"' in rules
    assert rules.count("idVendor") == 1
    with pytest.raises(UdevError, match="no keyboard"):
        rules_for([board(interface=-1)])


def test_nothing_is_installed_without_a_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        raise AssertionError("a command was run")

    monkeypatch.setattr(subprocess, "run", run)
    result = doctor(monkeypatch, [board()], "--install-udev", answer="n\n")
    assert result.exit_code == 1
    assert "uaccess" in result.output


def test_a_yes_installs_the_rules_that_were_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []
    written: list[str] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        if "install" in command:
            written.append(Path(command[-2]).read_text(encoding="utf-8"))
        ran.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    result = doctor(monkeypatch, [board()], "--install-udev", answer="y\n")
    assert result.exit_code == 0, result.output
    assert written[0] in result.output
    assert ran[0][-1] == "/etc/udev/rules.d/70-thock.rules"
    assert [c[-1] for c in ran[1:]] == ["--reload", "--action=change"]


def test_a_failed_command_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(
        subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 1)
    )
    with pytest.raises(UdevError, match="status 1"):
        install("rules")
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(UdevError, match="by hand"):
        install("rules")
