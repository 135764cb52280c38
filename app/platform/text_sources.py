# SPDX-License-Identifier: Apache-2.0
"""Text to ask about: the clipboard, or what is selected in the program in front. Read only when asked to."""

from __future__ import annotations

import enum
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

from app.platform.desktop import NoProgramError
from engine.texts import Text

_LIMIT_S = 3.0
MAX_CHARS = 3000
_CUT = " ..."


class TextSource(enum.StrEnum):
    """Where the text is."""

    CLIPBOARD = "clipboard"
    SELECTION = "selection"


class NoTextError(Exception):
    """There is no text; the message says where."""


def read_text(
    source: TextSource,
    platform: str = sys.platform,
    environment: Mapping[str, str] = os.environ,
    find: Callable[[str], str | None] = shutil.which,
) -> str:
    """The text, at most MAX_CHARS characters of it.

    Raises:
        NoProgramError: nothing here can read it; the message says what to install.
        NoTextError: it is empty, or no text.
    """
    for command in reading_commands(source, platform, environment):
        if find(command[0]) is None:
            continue
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                timeout=_LIMIT_S,
                stdin=subprocess.DEVNULL,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        text = done.stdout.decode("utf-8", "replace").strip("\ufeff\r\n\t \0")
        if done.returncode != 0 or not text:
            raise NoTextError(Text("the {source} holds no text", source=Text(source.value)))
        return shortened(text)
    if platform in ("win32", "darwin"):
        raise NoProgramError(
            Text("the {source} cannot be read on this system.", source=Text(source.value))
        )
    raise NoProgramError(
        Text(
            "to read the {source}, install wl-clipboard (Wayland) or xclip (X11).",
            source=Text(source.value),
        )
    )


def shortened(text: str) -> str:
    """At most MAX_CHARS characters of `text`, with a sign that there were more."""
    return text if len(text) <= MAX_CHARS else text[: MAX_CHARS - len(_CUT)] + _CUT


def reading_commands(
    source: TextSource, platform: str, environment: Mapping[str, str]
) -> Sequence[tuple[str, ...]]:
    """What may write the text to its standard output, in the order in which they are tried."""
    is_selection = source is TextSource.SELECTION
    match platform:
        case "win32" | "darwin" if is_selection:
            return ()  # neither tells another program what is selected, but for its accessibility rights
        case "win32":
            script = "[Console]::OutputEncoding=[Text.Encoding]::UTF8; Get-Clipboard -Raw"
            return (("powershell", "-NoProfile", "-NonInteractive", "-Command", script),)
        case "darwin":
            return (("pbpaste",),)
        case _:
            wayland = ("wl-paste", "--no-newline", *(("--primary",) if is_selection else ()))
            x11 = (
                ("xclip", "-out", "-selection", "primary" if is_selection else "clipboard"),
                ("xsel", "--output", "--primary" if is_selection else "--clipboard"),
            )
            return ((wayland,) if environment.get("WAYLAND_DISPLAY") else ()) + x11


def question_about(text: str, question: str) -> str:
    """What is asked: the question of the person, if there is one, about the text."""
    return f"{question.strip()}\n\n{text}" if question.strip() else text
