# SPDX-License-Identifier: Apache-2.0
"""The settings window on a fake companion and a computer of its own: for tests."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

# Before Qt is imported; tests of a real display set it themselves.
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QApplication

from app.doctor.report import CheckStatus, Finding, describe
from app.i18n import Language
from app.models.catalogue import CatalogueEntry
from app.models.store import InstalledModel, ModelStore
from app.platform.desktop import NoProgramError
from app.settings import Appearance, Settings
from app.settings_window.application import SettingsApp
from app.settings_window.computer import Computer
from app.settings_window.edits import Edits
from app.settings_window.fake import FakeCompanion, FakeSettings
from app.settings_window.labels import Place
from app.settings_window.memory_plan import MemoryPlan
from app.settings_window.pages.base import PageView
from app.settings_window.speed_test import Speed
from engine.errors import ModelFileError
from engine.texts import Text
from firmware_bridge.discovery.candidates import HID, Candidate
from firmware_bridge.transport.base import DeviceIdentity

_TASKS_S = 5.0  # a test may hold one of them up

ENTRY = CatalogueEntry.model_validate(
    {
        "title": "Small model (Q4)",
        "license": "Apache-2.0",
        "requirement": "small-model==1.0",
        "member": "small.gguf",
        "sha256": "0" * 64,
        "bytes": 98_000_000,
    }
)
BOARD = Candidate(
    path="/dev/hidraw7",
    identity=DeviceIdentity(
        HID, vendor_id=0xFEED, product_id=1, product="Test board", location="1-4"
    ),
    matches=True,
    reason="it has a raw HID interface",
    interface=1,
)
PLAIN = Candidate(
    path="/dev/hidraw8",
    identity=DeviceIdentity(HID, vendor_id=1, product_id=2, product="Mouse", location="1-5"),
    matches=False,
    reason="no raw HID interface",
)
# As the checks put them, with numbers, names and causes in them.
FINDINGS = (
    Finding("python", CheckStatus.OK, "3.11.7"),
    Finding(
        "memory",
        CheckStatus.WARNING,
        Text("{free:.1f} GB free", free=0.53),
        "The default model wants 1.5 GB: close something.",
    ),
    Finding(
        "hotkeys",
        CheckStatus.OK,
        Text("through {way}, if you turn them on", way=Text("the system")),
    ),
    Finding(
        "engine",
        CheckStatus.ERROR,
        Text("failed: {reason}", reason=ModelFileError("/m/small.gguf", "path", "is empty")),
    ),
    Finding("model", CheckStatus.ERROR, "none installed", "Run `thock model add smollm2`."),
)
TROUBLE = str(
    ModelFileError("/m/small.gguf", Text("tensor {name}", name="blk.0.attn_q.weight"), "is missing")
)


@dataclass
class FakeComputer:
    """What the window finds, and what it did. `store` is a real one, in `folder`."""

    folder: Path
    candidates: Sequence[Candidate] = (BOARD, PLAIN)
    findings: Sequence[Finding] = FINDINGS
    free: int = 8_000_000_000
    fetched: list[str] = field(default_factory=list)
    opened: list[Path] = field(default_factory=list)
    refusal: str = ""

    def computer(self) -> Computer:
        return Computer(
            store=ModelStore(self.folder),
            scan=lambda: self.candidates,
            checks=lambda: self.findings,
            report=lambda: {"versions.txt": "thock 0.1.0", "doctor.txt": describe(self.findings)},
            catalogue=self._catalogue,
            plan=self._plan,
            open_folder=self._open,
            speed=lambda _path, _context, _wanted: Speed(1.5, 30.0, 60.0),
            fetch=self._fetch,
        )

    def _open(self, folder: Path) -> None:
        if self.refusal:
            raise NoProgramError(self.refusal)
        self.opened.append(folder)

    def add_model(self, name: str) -> None:
        """A file that looks like a model from outside."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / f"{name}.gguf").write_bytes(b"GGUF" + bytes(1_000_000))

    def _catalogue(self) -> Mapping[str, CatalogueEntry]:
        return {"small": ENTRY}

    def _plan(self, _path: Path, context: int) -> MemoryPlan:
        return MemoryPlan(135_000_000, context, 540_000_000, 94_000_000, self.free, 16_000_000_000)

    def _fetch(
        self, store: ModelStore, name: str, _entry: CatalogueEntry, *, progress: object
    ) -> InstalledModel:
        assert callable(progress)
        progress(ENTRY.size // 2)
        progress(ENTRY.size - ENTRY.size // 2)
        self.add_model(name)
        self.fetched.append(name)
        return store.find(name)


class SettingsDesk:
    """One window, its fakes and its pages."""

    def __init__(
        self,
        folder: Path,
        language: Language = Language.EN,
        appearance: Appearance = Appearance.LIGHT,
    ) -> None:
        settings = Settings.model_validate(
            {"language": language, "general": {"appearance": appearance}}
        )
        self.settings = FakeSettings(settings)
        self.companion = FakeCompanion()
        self.computer = FakeComputer(folder / "models")
        self.computer.add_model("small-chat")
        self.app = SettingsApp(self.settings, self.companion, self.computer.computer())
        self.window = self.app.window

    @property
    def edits(self) -> Edits:
        return self.app.tools.edits

    def page(self, place: Place) -> PageView:
        """Go to a page, and give it."""
        self.window.go_to(place)
        return self.window.page

    def pages(self) -> Iterator[PageView]:
        """Every page in turn, as it is seen after its work is done."""
        for place in Place:
            page = self.page(place)
            settle()
            yield page

    def close(self) -> None:
        if self.app.assistant is not None:
            self.app.assistant.close()
        self.window.close()
        self.window.deleteLater()
        settle(0.02)


def settle(seconds: float = 0.06) -> None:
    """Let Qt and the tasks of a page come to rest. `QTest.qWait` would let no other thread run meanwhile."""
    _run_events(seconds)
    end = time.monotonic() + _TASKS_S
    while time.monotonic() < end and any(t.name == "settings-task" for t in threading.enumerate()):
        _run_events(0.01)
    _run_events(0.0)  # what the last of them sent


def _run_events(seconds: float) -> None:
    loop = QEventLoop()
    QTimer.singleShot(round(seconds * 1000), loop.quit)
    loop.exec()


def application() -> QApplication:
    """The one QApplication."""
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    return app
