# SPDX-License-Identifier: Apache-2.0
"""The files of a report, as texts that can be shown before they are written."""

from __future__ import annotations

import io
import json
import platform
import time
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from app.config.atomic import write_atomically
from app.config.store import Loaded
from app.diagnostics.redaction import redacted, shown_settings
from app.doctor.report import Finding, describe
from app.log import LOG_FILE
from firmware_bridge.discovery.candidates import Candidate

Report = Mapping[str, str]
"""File name -> content."""

_PACKAGES = (
    "thock", "torch", "tokenizers", "pydantic", "pystray", "PySide6-Essentials", "hidapi", "pynput",
    "jeepney", "cuda-python",
)  # fmt: skip
_LOG_CHARS = 200_000


def collect(
    *,
    findings: Iterable[Finding],
    candidates: Sequence[Candidate],
    loaded: Loaded,
    state: Mapping[str, Any] | None,
    log_folder: Path,
    home: Path,
) -> Report:
    """Everything that helps, and nothing that was typed or that names the person or one keyboard.

    `state` is the companion's StateReport as plain values, None while none runs.
    """
    settings: dict[str, Any] = {
        "settings": shown_settings(loaded.settings),
        "problems": [str(problem) for problem in loaded.problems],
    }
    files = {
        "versions.txt": _versions(),
        "doctor.txt": describe(findings),
        "keyboards.txt": "\n".join(map(_keyboard, candidates)) or "none",
        "settings.json": json.dumps(settings, indent=2),
        "state.json": json.dumps(state, indent=2),
        **_logs(log_folder),
    }
    serials = {candidate.identity.serial for candidate in candidates}
    return {name: redacted(text, serials, home) for name, text in files.items()}


def as_zip(report: Report) -> bytes:
    """The report as one file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in report.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def write(report: Report, path: Path) -> None:
    """Write the zip (mode 0600).

    Raises:
        OSError: it cannot be written.
    """
    write_atomically(path, as_zip(report))


def default_name() -> str:
    """Of a report that is made now."""
    return time.strftime("thock-report-%Y%m%d-%H%M%S.zip")


def preview(report: Report) -> str:
    """All of it, for the person to read."""
    return "\n\n".join(f"===== {name}\n{text.rstrip()}" for name, text in report.items())


def _versions() -> str:
    lines = [
        f"python {platform.python_version()} ({platform.python_implementation()})",
        f"system {platform.system()} {platform.release()} {platform.machine()}",
    ]
    for package in _PACKAGES:
        try:
            lines.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            lines.append(f"{package} not installed")
    return "\n".join(lines)


def _keyboard(candidate: Candidate) -> str:
    who = candidate.identity
    ids = f"{who.vendor_id:04x}:{who.product_id:04x}"
    mark = "yes" if candidate.matches else "no "
    return f"{mark} {who.product or 'unnamed'} ({who.transport} {ids}): {candidate.reason}"


def _logs(folder: Path) -> dict[str, str]:
    logs = {}
    for path in sorted(folder.glob(f"{LOG_FILE}*")):
        try:
            logs[path.name] = path.read_text(encoding="utf-8", errors="replace")[-_LOG_CHARS:]
        except OSError as error:
            logs[path.name] = f"cannot be read: {error.strerror or error}"
    return logs
