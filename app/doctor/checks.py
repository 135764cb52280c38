# SPDX-License-Identifier: Apache-2.0
"""The checks of `thock doctor`, cheap ones only: each takes milliseconds and changes nothing."""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import psutil

from app.doctor.report import CheckStatus, Finding
from app.models.errors import ModelStoreError
from app.models.store import ModelStore, default_models_folder
from engine.texts import Text

Check = Callable[[], Finding]

MIN_PYTHON = (3, 11)
# SmolLM2-135M in float32 with torch takes about 1 GB of resident memory in the engine child.
_ENGINE_BYTES = 1.5e9
_MODEL_DISK_BYTES = 3e8


def check_python() -> Finding:
    """The interpreter is new enough."""
    found = platform.python_version()
    if sys.version_info < MIN_PYTHON:
        return Finding("python", CheckStatus.ERROR, found, "Thock needs Python 3.11 or newer.")
    return Finding(
        "python",
        CheckStatus.OK,
        Text(
            "{found} on {system} {machine}",
            found=found,
            system=platform.system(),
            machine=platform.machine(),
        ),
    )


def check_firmware_core() -> Finding:
    """The C core of the virtual keyboard was built for this Python and answers."""
    try:
        import firmware_bridge._core  # noqa: F401 - the import is the check
    except ImportError as error:
        return Finding(
            "firmware core",
            CheckStatus.ERROR,
            Text("the virtual keyboard is not built ({error})", error=error),
            "Install a C compiler (Debian: gcc python3-dev) and install Thock again.",
        )
    return Finding(
        "firmware core", CheckStatus.OK, "the virtual keyboard runs the firmware's C code"
    )


def check_torch() -> Finding:
    """The CPU engine's library is installed (its import takes seconds, so only its name is read)."""
    try:
        found = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return Finding(
            "torch",
            CheckStatus.ERROR,
            "not installed",
            "Install Thock again with its dependencies.",
        )
    return Finding("torch", CheckStatus.OK, found)


def check_model() -> Finding:
    """At least one model is installed and can be opened."""
    from engine.errors import EngineError
    from engine.formats import open_model

    models = ModelStore().list()
    if not models:
        return Finding(
            "model", CheckStatus.ERROR, "none installed", "Run `thock model add smollm2`."
        )
    for model in models:
        try:
            source = open_model(ModelStore().find(model.name).path)
            source.close()
        except (EngineError, ModelStoreError) as error:
            return Finding(
                "model",
                CheckStatus.ERROR,
                str(error),
                Text(
                    "Run `thock model remove {name}` and add it again with `thock model add`.",
                    name=model.name,
                ),
            )
    return Finding("model", CheckStatus.OK, ", ".join(model.name for model in models))


def check_memory() -> Finding:
    """The engine child fits beside what runs now."""
    free = psutil.virtual_memory().available
    text = Text("{free:.1f} GB free", free=free / 1e9)
    if free < _ENGINE_BYTES:
        return Finding(
            "memory", CheckStatus.WARNING, text, "The default model wants 1.5 GB: close something."
        )
    return Finding("memory", CheckStatus.OK, text)


def check_disk() -> Finding:
    """There is room for a model."""
    folder = default_models_folder()
    place = next(p for p in (folder, *folder.parents) if p.exists())
    free = shutil.disk_usage(place).free
    text = Text(
        "{free:.1f} GB free for models in {folder}",
        free=free / 1e9,
        folder=_home_relative(folder),
    )
    if free < _MODEL_DISK_BYTES:
        return Finding("disk", CheckStatus.WARNING, text, "Free some space before adding a model.")
    return Finding("disk", CheckStatus.OK, text)


def check_terminal() -> Finding:
    """`thock demo` can draw its picture here."""
    columns, rows = shutil.get_terminal_size()
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    if encoding != "utf8":
        return Finding(
            "terminal",
            CheckStatus.WARNING,
            Text("encoding is {encoding}", encoding=encoding or Text("unknown")),
            "Set a UTF-8 locale (for example LANG=C.UTF-8): the OLED is drawn with block characters.",
        )
    size = Text("{columns}x{rows}, UTF-8", columns=columns, rows=rows)
    return Finding("terminal", CheckStatus.OK, size)


def _home_relative(path: Path) -> str:
    """`~/...`: a report that is pasted into a forum should not name the person."""
    try:
        return f"~/{path.relative_to(Path.home())}"
    except ValueError:
        return str(path)


ALL_CHECKS: tuple[Check, ...] = (
    check_python,
    check_firmware_core,
    check_torch,
    check_model,
    check_memory,
    check_disk,
    check_terminal,
)
