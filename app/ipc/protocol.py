# SPDX-License-Identifier: Apache-2.0
"""What both ends agree on before the first message: version, limits, and where the companion is found.

One JSON object per frame of `multiprocessing.connection`, which adds a length in front and knows Unix
sockets and Windows named pipes. Only its `send_bytes` and `recv_bytes` are used: `send` and `recv` would
unpickle, and unpickling runs code that the other side chose.

    visitor                              companion
      | <- challenges, both ways (HMAC) ->  |     both hold the key
      | hello {protocol, client}         -> |
      | <- done, or refused and the end     |
      | request {id, type, ...}          -> |
      | <- done | refused | an answer {id}  |     in the order of the requests
      | <- events, once subscribed          |     without an id; of each topic the newest

The commands import this module and `client`, and neither imports pydantic: a command answers at once.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from app.config.atomic import write_atomically
from engine.texts import as_text

PROTOCOL_VERSION = 1
KEY_BYTES = 32
MAX_REQUEST_BYTES = 1 << 16
MAX_ANSWER_BYTES = 1 << 20

_DOOR_FILE = "companion.json"


class IpcError(Exception):
    """The companion cannot be reached, or the connection broke."""

    def __init__(self, reason: str) -> None:
        super().__init__(as_text(reason))


class NotRunningError(IpcError):
    """No companion runs."""


class RefusedError(IpcError):
    """The companion did not do it; `code` names the kind, the message is for the person."""

    def __init__(self, code: str, reason: str, problems: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(reason)
        self.code = code
        self.problems = problems
        """For settings: which one, and why."""


@dataclass(frozen=True, slots=True)
class DoorPlate:
    """Where the companion listens and the key that it wants; a file that only this user may read."""

    address: str
    pid: int
    key: bytes = field(repr=False)

    def write(self, folder: Path) -> None:
        """Put it into the runtime folder (mode 0600)."""
        plate = {"address": self.address, "pid": self.pid, "key": self.key.hex()}
        write_atomically(folder / _DOOR_FILE, json.dumps(plate).encode())

    @staticmethod
    def remove(folder: Path) -> None:
        """The companion ends."""
        (folder / _DOOR_FILE).unlink(missing_ok=True)

    @staticmethod
    def read(folder: Path) -> DoorPlate:
        """What the companion left in the runtime folder.

        Raises:
            NotRunningError: nothing that is a door plate.
        """
        try:
            plate = json.loads((folder / _DOOR_FILE).read_bytes())
            return DoorPlate(str(plate["address"]), int(plate["pid"]), bytes.fromhex(plate["key"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise NotRunningError("Thock does not run: start it with `thock`.") from error
