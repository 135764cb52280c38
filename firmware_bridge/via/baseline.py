# SPDX-License-Identifier: Apache-2.0
"""What the person's lights were before we set any, kept in a file so that a crash loses nothing.

Written before the first change. After a crash the next start reads it and sets back what is still as we
left it; whatever differs by then is the person's wish, or the keyboard lost its power and is itself again.
"""

from __future__ import annotations

import json
import logging
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from firmware_bridge.transport.base import DeviceIdentity
from firmware_bridge.via.board import Settings

_log = logging.getLogger(__name__)

_FORMAT = 1
_MOODS_KEPT = 16


@dataclass(frozen=True, slots=True)
class Record:
    """Of one keyboard. `baseline` is the first snapshot: reading and setting brightness again and again
    rounds it down step by step, so it is replaced only when the person has changed something.

    `settled` is what `read` gave after our last write; None while a write is under way. `restored` is what
    it gave after we had set the baseline again. `moods` are the last settings of ours.
    """

    baseline: Mapping[str, int]
    active: bool = False
    settled: Mapping[str, int] | None = None
    restored: Mapping[str, int] | None = None
    moods: tuple[Mapping[str, int], ...] = field(default=())

    def about_to_write(self) -> Record:
        return replace(self, active=True, settled=None)

    def written(self, now: Settings) -> Record:
        others = tuple(mood for mood in self.moods if mood != now)
        return replace(self, settled=dict(now), moods=(*others, dict(now))[-_MOODS_KEPT:])

    def given_back(self, settings: Settings, now: Settings) -> Record:
        """`settings` were set back; all else in `now` is the person's and part of the baseline."""
        baseline = {**now, **settings}
        return replace(self, baseline=baseline, active=False, settled=None, restored=dict(now))

    def to_restore(self, now: Settings) -> dict[str, int]:
        """The part of the baseline to set when the keyboard has `now`: what is still as we left it."""
        if not self.active or now.keys() != self.baseline.keys():
            return {}
        left = self.settled
        if left is None:  # we do not know how far the last write went
            return dict(self.baseline)
        return {k: v for k, v in self.baseline.items() if now[k] == left.get(k) and now[k] != v}


def baseline_for(record: Record | None, now: Settings) -> Record:
    """The record to go on with before our first change of a keyboard that has the settings `now`.

    They are the person's, unless they are one of our moods (left behind by a crash of another computer, or
    saved by a key of the keyboard's own); then the baseline that is known stays.
    """
    if record is None or now.keys() != record.baseline.keys():
        return Record(dict(now))
    if now == record.restored or now in record.moods:
        return record
    return Record(dict(now), moods=record.moods)


class BaselineStore:
    """Records by keyboard in one JSON file, readable by its owner only. It holds numbers of lights, no keys.

    A file that cannot be read counts as empty; one that cannot be written is said once in the log. Neither
    stops the lights.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._warned = False

    def get(self, identity: DeviceIdentity) -> Record | None:
        """What is known of the keyboard."""
        entry = self._load().get(_key(identity))
        try:
            return None if entry is None else _parsed(entry)
        except (KeyError, TypeError, ValueError, AttributeError):
            _log.warning("%s: an entry is damaged and not used", self._path.name)
            return None

    def put(self, identity: DeviceIdentity, record: Record) -> None:
        """Keep `record` before this returns."""
        boards = self._load()
        boards[_key(identity)] = asdict(record)
        text = json.dumps({"format": _FORMAT, "boards": boards}, indent=1, sort_keys=True)
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._replace(text)
        except OSError as error:
            if not self._warned:
                self._warned = True
                _log.warning("the lights before ours cannot be kept: %s", error.strerror)

    def _replace(self, text: str) -> None:
        """All or nothing. mkstemp makes the file with mode 0600."""
        handle, name = tempfile.mkstemp(dir=self._path.parent, prefix=self._path.name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(name, self._path)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise

    def _load(self) -> dict[str, Any]:
        try:
            content = json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError):
            _log.warning("%s cannot be read; it is begun anew", self._path.name)
            return {}
        boards = content.get("boards") if isinstance(content, dict) else None
        return boards if isinstance(boards, dict) and content.get("format") == _FORMAT else {}


def _key(identity: DeviceIdentity) -> str:
    ids = f"{identity.vendor_id:04x}:{identity.product_id:04x}"
    return f"{identity.transport} {ids} {identity.serial} {identity.location}"


def _parsed(entry: Mapping[str, Any]) -> Record:
    settled, restored = entry["settled"], entry["restored"]
    return Record(
        baseline=_numbers(entry["baseline"]),
        active=entry["active"] is True,
        settled=None if settled is None else _numbers(settled),
        restored=None if restored is None else _numbers(restored),
        moods=tuple(_numbers(mood) for mood in entry["moods"]),
    )


def _numbers(content: Mapping[str, Any]) -> dict[str, int]:
    """Raises ValueError if a value is no setting."""
    for value in content.values():
        if type(value) is not int or not 0 <= value <= 0xFFFF:
            raise ValueError("not a setting")
    return dict(content)
