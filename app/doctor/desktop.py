# SPDX-License-Identifier: Apache-2.0
"""The checks of the desktop: the tray, the window, the GPU, shortcuts of the system."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from app.doctor.report import CheckStatus, Finding
from engine.texts import Text

_NVIDIA = Path("/proc/driver/nvidia/version")
_DESKTOP_EXTRA = "Install Thock with its extra: `pip install 'thock[desktop]'`."


def check_tray(
    environment: Mapping[str, str] = os.environ,
    platform: str = sys.platform,
    is_installed: Callable[[str], bool] = lambda name: importlib.util.find_spec(name) is not None,
) -> Finding:
    """Whether there will be an icon, and whether it will have a menu."""
    if platform in ("win32", "darwin"):
        return Finding("tray", CheckStatus.OK, "icon with a menu")
    has_x11 = bool(environment.get("DISPLAY"))
    if not has_x11 and not environment.get("WAYLAND_DISPLAY"):
        return Finding("tray", CheckStatus.OK, "no graphical session; `thock status` works without")
    if is_installed("gi"):
        return Finding("tray", CheckStatus.OK, "icon with a menu, where the desktop shows icons")
    if has_x11:
        return Finding(
            "tray",
            CheckStatus.WARNING,
            "icon without a menu: a click opens the window",
            "For a menu: python3-gi gir1.2-ayatanaappindicator3-0.1 (Debian), python3-gobject "
            "libayatana-appindicator-gtk3 (Fedora), for the Python that runs Thock.",
        )
    return Finding(
        "tray",
        CheckStatus.WARNING,
        "no icon on this Wayland session",
        "Install the GTK bindings for the Python that runs Thock, or use `thock settings`.",
    )


def check_window() -> Finding:
    """The settings window's toolkit is installed; it is not loaded here."""
    if importlib.util.find_spec("PySide6") is None:
        return Finding(
            "window", CheckStatus.WARNING, "the settings window needs PySide6", _DESKTOP_EXTRA
        )
    return Finding("window", CheckStatus.OK, "PySide6 is installed")


def check_gpu(driver: Path = _NVIDIA) -> Finding:
    """The NVIDIA driver. None is no error: the CPU computes."""
    if not sys.platform.startswith("linux"):
        return Finding("gpu", CheckStatus.OK, "not looked at on this system; the CPU computes")
    try:
        line = driver.read_text(encoding="ascii", errors="replace").splitlines()[0]
    except (OSError, IndexError):
        return Finding("gpu", CheckStatus.OK, "no NVIDIA driver; the CPU computes")
    return Finding("gpu", CheckStatus.OK, " ".join(line.split()))


def check_hotkeys(
    environment: Mapping[str, str] = os.environ, platform: str = sys.platform
) -> Finding:
    """Who would tell of shortcuts of the system. The keyboard's own companion keys need nobody."""
    is_wayland = platform.startswith("linux") and bool(environment.get("WAYLAND_DISPLAY"))
    module = "jeepney" if is_wayland else "pynput"
    way = Text("the desktop's portal") if is_wayland else Text("the system")
    if importlib.util.find_spec(module) is None:
        return Finding(
            "hotkeys",
            CheckStatus.WARNING,
            Text("{module} is not installed", module=module),
            _DESKTOP_EXTRA,
        )
    return Finding("hotkeys", CheckStatus.OK, Text("through {way}, if you turn them on", way=way))


DESKTOP_CHECKS: tuple[Callable[[], Finding], ...] = (
    check_tray,
    check_window,
    check_gpu,
    check_hotkeys,
)
