# SPDX-License-Identifier: Apache-2.0
"""Start with the session: an entry of the system, only if the person asks for it.

Linux: a desktop entry (Desktop Application Autostart Specification, freedesktop.org). Windows: a value below
the Run key. macOS: a property list for launchd. Each entry names the Python that runs Thock now.
"""

from __future__ import annotations

import os
import plistlib
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from app.config.atomic import write_atomically

_RUN_KEY = r"Software\Microsoft\Windows\CurrentVersion\Run"
_VALUE = "Thock"
_LABEL = "org.thock.Thock"


class Autostart(Protocol):
    """Raises OSError where the system does not let us."""

    def is_on(self) -> bool: ...

    def turn_on(self, command: Sequence[str]) -> None: ...

    def turn_off(self) -> None: ...


def thock_command() -> list[str]:
    """What starts the companion with its tray."""
    return [sys.executable, "-m", "app", "run", "--tray"]


def system_autostart(
    platform: str = sys.platform, environment: Mapping[str, str] = os.environ
) -> Autostart:
    """That of this system."""
    home = Path.home()
    if platform == "win32":
        import winreg

        return RunKey(winreg)
    if platform == "darwin":
        return LaunchAgent(home / "Library" / "LaunchAgents")
    config = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    return DesktopEntry(config / "autostart")


class DesktopEntry:
    """A file `thock.desktop` in the folder for autostart."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "thock.desktop"

    def is_on(self) -> bool:
        return self.path.is_file()

    def turn_on(self, command: Sequence[str]) -> None:
        lines = (
            "[Desktop Entry]", "Type=Application", "Name=Thock", f"Exec={_exec(command)}",
            "Icon=thock", "Terminal=false", "X-GNOME-Autostart-enabled=true", "",
        )  # fmt: skip
        write_atomically(self.path, "\n".join(lines).encode())

    def turn_off(self) -> None:
        self.path.unlink(missing_ok=True)


def _exec(command: Sequence[str]) -> str:
    """Quoted as the Desktop Entry Specification wants it: always in quotes, with `%` doubled."""

    def quoted(word: str) -> str:
        for character in '\\"`$':
            word = word.replace(character, "\\" + character)
        # The value of a key is unescaped once more before that, so backslashes double again.
        return '"' + word.replace("%", "%%").replace("\\", "\\\\") + '"'

    return " ".join(map(quoted, command))


class RunKey:
    """A value of the current user's Run key; `registry` is the module winreg."""

    def __init__(self, registry: Any) -> None:
        self._registry = registry

    def is_on(self) -> bool:
        registry = self._registry
        try:
            with registry.OpenKey(registry.HKEY_CURRENT_USER, _RUN_KEY) as key:
                registry.QueryValueEx(key, _VALUE)
        except FileNotFoundError:
            return False
        return True

    def turn_on(self, command: Sequence[str]) -> None:
        registry = self._registry
        # The Python without a console, if there is one beside it.
        program = Path(command[0])
        windowless = program.with_name(program.name.replace("python.exe", "pythonw.exe"))
        words = [str(windowless if windowless.exists() else program), *command[1:]]
        with registry.CreateKey(registry.HKEY_CURRENT_USER, _RUN_KEY) as key:
            line = subprocess.list2cmdline(words)
            registry.SetValueEx(key, _VALUE, 0, registry.REG_SZ, line)

    def turn_off(self) -> None:
        registry = self._registry
        try:
            with registry.OpenKey(
                registry.HKEY_CURRENT_USER, _RUN_KEY, 0, registry.KEY_SET_VALUE
            ) as key:
                registry.DeleteValue(key, _VALUE)
        except FileNotFoundError:
            return


class LaunchAgent:
    """A property list that launchd reads at the next log-in."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / f"{_LABEL}.plist"

    def is_on(self) -> bool:
        return self.path.is_file()

    def turn_on(self, command: Sequence[str]) -> None:
        agent = {
            "Label": _LABEL,
            "ProgramArguments": list(command),
            "RunAtLoad": True,
            "ProcessType": "Interactive",
            "LimitLoadToSessionType": "Aqua",
        }
        write_atomically(self.path, plistlib.dumps(agent))

    def turn_off(self) -> None:
        self.path.unlink(missing_ok=True)
