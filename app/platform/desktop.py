# SPDX-License-Identifier: Apache-2.0
"""The clipboard and the file manager, through the programs that the system has for them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from engine.texts import Text

_LIMIT_S = 5.0

# In the order in which they are tried. wl-copy and xclip stay behind to serve the text.
_WAYLAND = (("wl-copy",),)
_X11 = (("xclip", "-selection", "clipboard"), ("xsel", "--clipboard", "--input"))


class NoProgramError(Exception):
    """The system has no program for it; the message says which to install."""


def copy_text(
    text: str,
    environment: Mapping[str, str] = os.environ,
    find: Callable[[str], str | None] = shutil.which,
) -> None:
    """Put `text` on the clipboard.

    Raises:
        NoProgramError: nothing here can.
    """
    for command in clipboard_commands(sys.platform, environment):
        if find(command[0]) is not None:
            encoding = "utf-16" if command[0] == "clip" else "utf-8"
            try:
                subprocess.run(
                    command, input=text.encode(encoding), timeout=_LIMIT_S, check=True,
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                )  # fmt: skip
            except (OSError, subprocess.SubprocessError):
                continue
            return
    raise NoProgramError("to copy, install wl-clipboard (Wayland) or xclip (X11).")


def clipboard_commands(platform: str, environment: Mapping[str, str]) -> Sequence[tuple[str, ...]]:
    """What may take a text for the clipboard on its standard input."""
    match platform:
        case "win32":
            return (("clip",),)
        case "darwin":
            return (("pbcopy",),)
        case _:
            return (_WAYLAND if environment.get("WAYLAND_DISPLAY") else ()) + _X11


def open_folder(folder: Path) -> None:
    """Show `folder` in the file manager.

    Raises:
        NoProgramError: nothing here can.
    """
    try:
        if sys.platform == "win32":
            os.startfile(folder)
        else:
            program = "open" if sys.platform == "darwin" else "xdg-open"
            subprocess.Popen(
                [program, str(folder)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
    except OSError as error:
        raise NoProgramError(Text("the folder is {folder}.", folder=folder)) from error
