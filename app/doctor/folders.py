# SPDX-License-Identifier: Apache-2.0
"""The checks of Thock's own files: its folders can be written, and all of its settings can be used."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from app.choices import settings_store
from app.config.paths import (
    UnsafeFolderError,
    history_file,
    log_folder,
    runtime_folder,
    settings_file,
    state_folder,
    why_not_writable,
)
from app.config.store import SettingsStore
from app.doctor.report import CheckStatus, Finding
from engine.texts import Text, listed


def own_folders() -> Mapping[Text, Path]:
    """What Thock writes, and where."""
    return {
        Text("settings"): settings_file().parent,
        Text("state"): state_folder(),
        Text("data"): history_file().parent,
        Text("log"): log_folder(),
    }


def check_folders(folders: Mapping[Text, Path] | None = None) -> Finding:
    """Every folder can be written, and the one of the socket is the person's own."""
    problems = [
        Text("{folder} ({use}) cannot be written: {reason}", folder=folder, use=use, reason=reason)
        for use, folder in (own_folders() if folders is None else folders).items()
        if (reason := why_not_writable(folder)) is not None
    ]
    try:
        runtime_folder()
    except UnsafeFolderError as error:
        problems.append(Text("{error}", error=error))
    if problems:
        return Finding(
            "folders",
            CheckStatus.ERROR,
            listed(problems),
            "Make them folders that you can write (ls -ld shows whose they are).",
        )
    return Finding("folders", CheckStatus.OK, "all of them can be written")


def check_settings(store: SettingsStore | None = None) -> Finding:
    """Nothing in the settings file had to be left out, and what it names is there."""
    loaded = (store or settings_store()).load()
    if not loaded.problems:
        return Finding("settings", CheckStatus.OK, "all of them can be used")
    return Finding(
        "settings",
        CheckStatus.WARNING,
        listed([problem.told for problem in loaded.problems]),
        "Change them with `thock settings`, or reset them: `thock settings reset NAME`.",
    )


FOLDER_CHECKS = (check_folders, check_settings)
