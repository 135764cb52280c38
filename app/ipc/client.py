# SPDX-License-Identifier: Apache-2.0
"""The visitor's end: plain JSON objects, checked by the companion. Imports no pydantic."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client
from pathlib import Path
from types import TracebackType
from typing import Any

from app.config.paths import runtime_folder
from app.ipc.protocol import (
    MAX_ANSWER_BYTES,
    MAX_REQUEST_BYTES,
    PROTOCOL_VERSION,
    DoorPlate,
    IpcError,
    NotRunningError,
    RefusedError,
)
from engine.texts import Text, revived
from engine.wire import Wire

_ANSWER_LIMIT_S = 10.0

Json = dict[str, Any]


class IpcClient:
    """One connection. Requests come from one thread at a time; `end` from any thread ends `events`."""

    def __init__(self, folder: Path | None = None, client: str = "command") -> None:
        """Connect to the companion whose runtime folder this is (None: this user's).

        Raises:
            NotRunningError: there is no companion.
            RefusedError: it is of another version.
            IpcError: it is there and does not answer, or its folder cannot be used.
        """
        try:
            plate = DoorPlate.read(folder or runtime_folder())
        except OSError as error:
            raise IpcError(str(error)) from error
        try:
            self._wire = Wire(Client(plate.address, authkey=plate.key))
        except AuthenticationError as error:
            raise IpcError("the running companion has another key: restart it.") from error
        except (OSError, EOFError) as error:
            raise NotRunningError("Thock does not run: start it with `thock`.") from error
        self._numbers = itertools.count(1)
        self._early: list[Json] = []
        try:
            self.request("hello", protocol=PROTOCOL_VERSION, client=client)
        except IpcError:
            self.close()
            raise

    def __enter__(self) -> IpcClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def request(self, type_: str, **fields: Any) -> Json:
        """Ask for `type_` (app/ipc/messages.py) and wait for the answer, 10 s at most.

        Raises:
            RefusedError: nothing was done; it may be too long to be asked.
            IpcError: the companion is gone or does not answer.
        """
        number = next(self._numbers)
        frame = json.dumps({"type": type_, "id": number, **fields}).encode()
        if len(frame) > MAX_REQUEST_BYTES:
            limit = MAX_REQUEST_BYTES // 1024
            raise RefusedError(
                "too-long",
                Text("this is too long: Thock takes {limit} KiB at a time.", limit=limit),
            )
        try:
            self._wire.send_bytes(frame)
        except (OSError, ValueError) as error:
            raise IpcError("the companion ended.") from error
        while True:
            if not self._connection_poll():
                raise IpcError("the companion does not answer.")
            message = self._receive()
            if message is None:
                raise IpcError("the companion ended.")
            if "id" not in message:
                self._early.append(message)
            elif message["type"] == "refused":
                problems = tuple((place, text) for place, text in message["problems"])
                raise RefusedError(message["code"], message["reason"], problems)
            elif message["id"] == number:
                return message

    def events(self, *topics: str) -> Iterator[Json]:
        """Subscribe, then wait for event after event until the companion ends or `end` is called.

        Raises:
            IpcError: as `request`.
        """
        self.request("subscribe", topics=topics)
        while True:
            while self._early:
                yield self._early.pop(0)
            message = self._receive()
            if message is None:
                return
            yield message

    def close(self) -> None:
        """End the connection and let go of it. From any thread, safe to call twice."""
        self._wire.close()

    def end(self) -> None:
        """Wake the thread that waits for an answer or an event, and can go on to `close`."""
        self._wire.end()

    def _connection_poll(self) -> bool:
        try:
            return self._wire.poll(_ANSWER_LIMIT_S)
        except (OSError, EOFError):
            return True  # `_receive` finds the end

    def _receive(self) -> Json | None:
        try:
            message: Json = json.loads(self._wire.recv_bytes(MAX_ANSWER_BYTES), object_hook=revived)
        except (OSError, EOFError):
            return None
        return message
