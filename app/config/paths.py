# SPDX-License-Identifier: Apache-2.0
"""Where Thock keeps its files on this platform. Nothing is created here but the runtime folder."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from pathlib import Path

from platformdirs import PlatformDirs

from engine.texts import Text, system_reason

_DIRS = PlatformDirs("thock", appauthor=False)


class UnsafeFolderError(OSError):
    """The runtime folder belongs to somebody else, is none, or cannot be written."""


def settings_file() -> Path:
    """The file that the person may edit."""
    return Path(_DIRS.user_config_dir) / "settings.toml"


def state_folder() -> Path:
    """What Thock remembers of this computer and the person did not write."""
    return Path(_DIRS.user_state_dir)


def lights_file() -> Path:
    """What the lights of keyboards without the Thock module were before ours."""
    return state_folder() / "lights.json"


def words_file() -> Path:
    """The words that the person had Thock learn and keep."""
    return Path(_DIRS.user_data_dir) / "words.txt"


def history_file() -> Path:
    """The chat, if the person wants it kept."""
    return Path(_DIRS.user_data_dir) / "chat.json"


def personas_folder() -> Path:
    """The person's own personas, one TOML file each."""
    return Path(_DIRS.user_config_dir) / "personas"


def moods_file() -> Path:
    """The person's own moods, in place of the shipped ones."""
    return Path(_DIRS.user_config_dir) / "moods.toml"


def log_folder() -> Path:
    """Logs; on Linux below the state folder of the XDG base directories."""
    return Path(_DIRS.user_log_dir)


def runtime_folder() -> Path:
    """Socket, key and lock of the running companion: only this user may enter (mode 0700).

    Without XDG_RUNTIME_DIR (a plain SSH login, macOS) it lies in the folder for temporary files, under a
    name that holds the user's number; somebody else may have made it first, so its owner is checked.

    Raises:
        UnsafeFolderError: it is not ours, or not to be had; the message says what to do.
    """
    if sys.platform == "win32":
        folder = Path(_DIRS.user_runtime_dir)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unusable(folder, error) from error
        return folder
    session = os.environ.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(session) and os.path.isdir(session):
        folder = Path(session) / "thock"
    else:
        folder = Path(tempfile.gettempdir()) / f"thock-{os.getuid()}"
    try:
        return _private(folder)
    except UnsafeFolderError:
        raise
    except OSError as error:
        raise _unusable(folder, error) from error


def why_not_writable(folder: Path) -> Text | None:
    """Why no file can be made in `folder`, which need not be there yet; None: one can. Leaves nothing there."""
    place = next(p for p in (folder, *folder.parents) if p.exists())
    try:
        with tempfile.TemporaryFile(dir=place):
            return None
    except OSError as error:
        return system_reason(error)


def _private(folder: Path) -> Path:
    if not folder.is_symlink():  # one of somebody else's making
        folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise UnsafeFolderError(
            Text("{folder} is not a folder of yours: remove it and try again.", folder=folder)
        )
    if stat.S_IMODE(found.st_mode) != 0o700:
        folder.chmod(0o700)
    with tempfile.TemporaryFile(dir=folder):
        return folder


def _unusable(folder: Path, error: OSError) -> UnsafeFolderError:
    return UnsafeFolderError(
        Text(
            "{folder} cannot be used for the socket of Thock: {reason}. Make it a folder that you can write, "
            "or set XDG_RUNTIME_DIR to one.",
            folder=folder,
            reason=system_reason(error),
        )
    )
