# SPDX-License-Identifier: Apache-2.0
"""What the window asks of this computer: devices, checks, models. Tests put their own in its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from app.doctor.report import Finding
from app.models.catalogue import CatalogueEntry, load_catalogue
from app.models.fetch import fetch_model
from app.models.store import InstalledModel, ModelStore
from app.platform.desktop import open_folder
from app.settings_window.memory_plan import MemoryPlan, plan_for
from app.settings_window.speed_test import Speed, measure_speed
from firmware_bridge.discovery.candidates import Candidate

if TYPE_CHECKING:
    from app.diagnostics.report import Report

Progress = Callable[[object], None]


class ScanError(Exception):
    """The devices could not be listed; the message says why."""


def scan_keyboards() -> Sequence[Candidate]:
    """What is connected, without opening anything. Takes up to a few hundred milliseconds.

    Raises:
        ScanError: the HID library is missing, or listing hangs.
    """
    from firmware_bridge.discovery.system import system_watch
    from firmware_bridge.errors import TransportError
    from firmware_bridge.transport.hid_library import load_hid_library

    try:
        watch = system_watch(load_hid_library())
        watch.start()
        try:
            return watch.candidates()
        finally:
            watch.stop()
    except TransportError as error:
        raise ScanError(str(error)) from error


def run_checks() -> Sequence[Finding]:
    """What `thock doctor` finds, but for the terminal."""
    from app.commands.doctor import all_findings

    return [finding for finding in all_findings() if finding.subject != "terminal"]


def make_report() -> Report:
    """What `thock diagnostics` writes."""
    from app.commands.diagnostics import collected

    return collected()


def show_folder(folder: Path) -> None:
    """Open a folder in the file manager; it is made if it is not there.

    Raises:
        NoProgramError, OSError: it cannot be shown; the message says where it is.
    """
    folder.mkdir(parents=True, exist_ok=True)
    open_folder(folder)


@dataclass(frozen=True, slots=True)
class Computer:
    """Functions that may take long are called on a task's thread."""

    store: ModelStore = field(default_factory=ModelStore)
    scan: Callable[[], Sequence[Candidate]] = scan_keyboards
    checks: Callable[[], Sequence[Finding]] = run_checks
    report: Callable[[], Report] = make_report
    open_folder: Callable[[Path], None] = show_folder
    catalogue: Callable[[], Mapping[str, CatalogueEntry]] = load_catalogue
    plan: Callable[[Path, int], MemoryPlan] = plan_for
    speed: Callable[[Path, int, Callable[[], object]], Speed] = measure_speed
    fetch: Callable[..., InstalledModel] = fetch_model
