# SPDX-License-Identifier: Apache-2.0
"""Every text that is told far from where it is shown: what the catalog `messages` holds.

They stand in `Text("…")`, in the errors that a person can be told of, in findings and problems.
"""

from __future__ import annotations

import ast
import errno
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from app.demo.script import Awaited
from app.platform.text_sources import TextSource
from app.settings import ModeName
from engine.client import EngineState
from engine.messages import Device
from firmware_bridge.discovery.candidates import Caution
from firmware_bridge.discovery.caution import load_caution_list
from firmware_bridge.discovery.detect import Finding
from firmware_bridge.neighbours import load_neighbours
from firmware_bridge.protocol.messages import Status

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("app", "engine", "firmware_bridge")
# Errors of ours whose words go into a log at most, and never before a person.
UNSEEN_ERRORS = frozenset(
    {
        "ChannelClosedError", "DescriptorError", "EchoError", "FocusUnknownError", "ForbiddenRequestError",
        "FrameError", "HotkeysUnavailableError", "NoAnswerError", "NoSleepSignalsError", "NotViaError",
        "OperationCancelledError", "ReplayMismatchError", "ScheduleError", "SessionEndedError",
        "UnfitContentError", "UnhandledError", "ViableError", "OtherProgramError", "ClientIdInvalidError",
        "NoLightsError", "OpenRgbError", "OpenRgbMissingError", "UnlockInProgressError",
    }
)  # fmt: skip
# For those who develop or measure Thock: English.
UNSEEN_FOLDERS = (
    "app/bench/", "engine/bench/", "engine/cuda/bench.py", "firmware_bridge/firmware/",
)  # fmt: skip
# Who makes a text, and which of its arguments are for the person (all from that one on).
MAKERS = {
    "Text": 0, "as_text": 0, "say": 0, "Finding": 0, "Problem": 1, "_unavailable": 1, "RefusedError": 1,
    "_GiveUpError": 1, "Candidate": 3, "ModelFileError": 2, "UnsupportedModelError": 2, "CudaError": 2,
    "DeviceLostError": 2, "error": 1,
}  # fmt: skip
# What a system says of a file or a connection, in the words of Linux.
SYSTEM_ERRORS = (
    errno.EACCES, errno.EBUSY, errno.ECONNREFUSED, errno.ECONNRESET, errno.EEXIST, errno.EFBIG,
    errno.EHOSTUNREACH, errno.EINVAL, errno.EIO, errno.EISDIR, errno.EMFILE, errno.ENAMETOOLONG,
    errno.ENETUNREACH, errno.ENODEV, errno.ENOENT, errno.ENOSPC, errno.ENOTDIR, errno.ENOTEMPTY, errno.EPERM,
    errno.EPIPE, errno.EROFS, errno.ETIMEDOUT,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Found:
    """`text` is None for an f-string: put together like that, it cannot be said in another language."""

    place: str
    text: str | None


def told_texts() -> set[str]:
    """What has to be in the catalog."""
    ours = {found.text for found in found_texts() if found.text}
    boards = {finding.value for finding in Finding} | {row.why for row in load_caution_list()}
    names = {
        member.value
        for kind in (ModeName, EngineState, Device, TextSource, Awaited)
        for member in kind
    }
    names |= {status.name.lower() for status in Status}
    names |= {caution.value for caution in Caution}
    names |= {row.program for row in load_neighbours() if row.program.startswith("a ")}
    return ours | boards | names | {os.strerror(number) for number in SYSTEM_ERRORS}


@cache
def found_texts() -> tuple[Found, ...]:
    """Every text in the code, with its place."""
    trees = {
        str(file.relative_to(ROOT)): ast.parse(file.read_text(encoding="utf-8"))
        for package in PACKAGES
        for file in sorted((ROOT / package).rglob("*.py"))
        if not str(file.relative_to(ROOT)).startswith(UNSEEN_FOLDERS)
    }
    errors = {
        node.name
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name.endswith("Error")
    } - UNSEEN_ERRORS
    return tuple(
        Found(f"{name}:{node.lineno}", _said(node))
        for name, tree in trees.items()
        for node in _shown_in(tree, name, errors)
    )


def _shown_in(tree: ast.AST, name: str, errors: set[str]) -> Iterator[ast.Constant | ast.JoinedStr]:
    """The strings of one file that a person may be told, constants and f-strings."""
    named = _assigned(tree)
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        maker = (
            call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        )
        if maker == "error" and not name.startswith(("engine/formats/", "engine/tokenizer/")):
            continue
        if maker not in MAKERS and maker not in errors:
            continue
        if maker in ("ModelFileError", "UnsupportedModelError"):
            yield from _words(call.args[1])
        for number, argument in enumerate(call.args):
            if number < MAKERS.get(maker, 0) or (maker in ("Text", "say") and number):
                continue
            yield from _strings(argument)
            if maker not in ("Text", "say") and isinstance(argument, ast.Name):
                for value in named.get(argument.id, ()):
                    yield from _strings(value)


def _strings(node: ast.expr) -> Iterator[ast.Constant | ast.JoinedStr]:
    match node:
        case ast.Constant(value=str(text)) if text:
            yield node
        case ast.JoinedStr():
            yield node
        case ast.IfExp():
            yield from _strings(node.body)
            yield from _strings(node.orelse)
        case ast.BoolOp():
            for value in node.values:
                yield from _strings(value)


def _words(place: ast.expr) -> Iterator[ast.Constant]:
    """The place in a model file, where it is said in words and not by its name in there."""
    match place:
        case ast.Constant(value=str(text)) if not re.search(r"[._*]", text):
            yield place


def _assigned(tree: ast.AST) -> dict[str, list[ast.expr]]:
    """What is assigned to names, anywhere in the file."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found.setdefault(node.targets[0].id, []).append(node.value)
    return found


def _said(node: ast.Constant | ast.JoinedStr) -> str | None:
    return str(node.value) if isinstance(node, ast.Constant) else None
