# SPDX-License-Identifier: Apache-2.0
"""Requests to one server over HTTP, each of which can be left at any moment.

Nothing but the address that the person named is spoken to: redirects are not followed and no proxy is
taken from the environment, since http.client does neither.
"""

from __future__ import annotations

import contextlib
import json
import queue
import socket
import threading
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPSConnection
from typing import Any, Final
from urllib.parse import urlsplit

from engine.errors import OperationCancelledError
from engine.remote.errors import (
    RemoteAnswerError,
    RemoteError,
    RemoteRefusedError,
    RemoteSettingsError,
    RemoteUnreachableError,
)
from engine.serving import CancelCheck
from engine.texts import Text

CONNECT_S: Final = 5.0
# A long prompt is computed before the first byte comes.
SILENCE_S: Final = 120.0
MAX_LINE: Final = 1 << 18
MAX_ANSWER: Final = 1 << 22  # bytes
_LOOK_UP_S: Final = 0.02  # how often `cancelled` is asked while nothing comes


class Connection:
    """Where requests go. Every method opens a connection of its own and may be left by `cancelled`.

    Raises on creation:
        RemoteSettingsError: `url` is none that can be spoken to.
    """

    def __init__(
        self, url: str, key: str = "", *, silence_s: float = SILENCE_S, connect_s: float = CONNECT_S
    ) -> None:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise RemoteSettingsError(
                Text("the server's address is not valid: {error}", error=error)
            ) from error
        is_plain = parts.username is None and not parts.query and not parts.fragment
        if parts.scheme not in ("http", "https") or not parts.hostname or not is_plain:
            raise RemoteSettingsError(
                "the server's address must look like http://127.0.0.1:8080/v1"
            )
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self._path = parts.path.rstrip("/")
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        host = parts.hostname
        self._open: Callable[[], HTTPConnection] = lambda: kind(host, port, timeout=connect_s)
        self._silence_s = silence_s
        self._headers = {"Accept": "application/json, text/event-stream", "Connection": "close"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"

    def get(self, path: str, cancelled: CancelCheck) -> Any:
        """The JSON at `path`, such as `/models`.

        Raises:
            RemoteUnreachableError, RemoteRefusedError, RemoteAnswerError, OperationCancelledError.
        """
        return self._json(self._lines("GET", path, None, cancelled))

    def post(self, path: str, body: dict[str, Any], cancelled: CancelCheck) -> Any:
        """The JSON that answers `body`.

        Raises: as `get`.
        """
        return self._json(self._lines("POST", path, body, cancelled))

    def stream(
        self, path: str, body: dict[str, Any], cancelled: CancelCheck
    ) -> Iterator[dict[str, Any]]:
        """The objects of a stream of server-sent events (`data: {...}`), up to `data: [DONE]`.

        Raises: as `get`.
        """
        for line in self._lines("POST", path, body | {"stream": True}, cancelled):
            field, _, value = line.partition(b":")
            if field.strip() != b"data":
                continue  # comments, names of events, empty lines
            if value.strip() == b"[DONE]":
                return
            yield self._object(value)
        raise RemoteUnreachableError(
            Text("{origin} ended the answer in its middle", origin=self.origin)
        )

    def _json(self, lines: Iterator[bytes]) -> Any:
        body = bytearray()
        for line in lines:
            body += line
            if len(body) > MAX_ANSWER:
                raise RemoteAnswerError(
                    Text(
                        "{origin}: an answer of over {max_answer} bytes",
                        origin=self.origin,
                        max_answer=MAX_ANSWER,
                    )
                )
        return self._object(bytes(body))

    def _object(self, text: bytes) -> dict[str, Any]:
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None  # its message would quote the text
        if not isinstance(found, dict):
            raise RemoteAnswerError(
                Text("{origin} answered with something that is no JSON object", origin=self.origin)
            )
        if "error" in found:
            raise RemoteAnswerError(
                Text("{origin} told of an error in the middle of its answer", origin=self.origin)
            )
        return found

    def _lines(
        self, method: str, path: str, body: dict[str, Any] | None, cancelled: CancelCheck
    ) -> Iterator[bytes]:
        payload = None if body is None else json.dumps(body).encode()
        headers = self._headers | ({"Content-Type": "application/json"} if payload else {})
        exchange = _Exchange(self._open(), self._silence_s)
        exchange.start(method, self._path + path, payload, headers)
        try:
            while True:
                if cancelled():
                    raise OperationCancelledError("left the server's answer")
                try:
                    piece = exchange.pieces.get(timeout=_LOOK_UP_S)
                except queue.Empty:
                    continue
                match piece:
                    case None:
                        return
                    case bytes():
                        yield piece
                    case int():
                        raise RemoteRefusedError(self.origin, piece)
                    case RemoteError():
                        raise piece
                    case _:
                        reason = getattr(piece, "strerror", None) or type(piece).__name__
                        raise RemoteUnreachableError(
                            Text(
                                "{origin}: {reason}; does it run?",
                                origin=self.origin,
                                reason=reason,
                            )
                        )
        finally:
            exchange.leave()


class _Exchange:
    """One request on a thread of its own, which reads lines until the end or until it is left."""

    def __init__(self, connection: HTTPConnection, silence_s: float) -> None:
        self._connection = connection
        self._silence_s = silence_s
        # The gate guards what `leave` needs. The descriptor is our own, because http.client closes its
        # socket whenever an answer is at its end; another file may then have its number.
        self._gate = threading.Lock()
        self._twin: socket.socket | None = None
        self._left = False
        # Lines; then None at the end, the status of a refusal, or what went wrong.
        self.pieces: queue.Queue[bytes | int | Exception | None] = queue.Queue()

    def start(self, method: str, path: str, payload: bytes | None, headers: dict[str, str]) -> None:
        """Send the request; everything else comes through `pieces`."""
        threading.Thread(
            target=self._run, args=(method, path, payload, headers), name="remote", daemon=True
        ).start()

    def leave(self) -> None:
        """Close the connection, on which the server stops too. Safe at any time."""
        with self._gate:
            self._left = True
            if self._twin is not None:
                with contextlib.suppress(OSError):  # the server was first
                    self._twin.shutdown(socket.SHUT_RDWR)

    def _run(self, method: str, path: str, payload: bytes | None, headers: dict[str, str]) -> None:
        try:
            self.pieces.put(self._read(method, path, payload, headers))
        except Exception as error:  # noqa: BLE001  the thread's top; whoever waits raises it
            self.pieces.put(error)
        finally:
            self._connection.close()
            with self._gate:
                if self._twin is not None:
                    self._twin.close()
                    self._twin = None

    def _read(
        self, method: str, path: str, payload: bytes | None, headers: dict[str, str]
    ) -> int | None:
        connection = self._connection
        connection.connect()
        connection.sock.settimeout(self._silence_s)
        with self._gate:
            if self._left:
                return None
            opened = connection.sock
            self._twin = socket.fromfd(opened.fileno(), opened.family, opened.type)
        connection.request(method, path, payload, headers)
        response = connection.getresponse()
        if response.status != 200:
            return response.status
        while line := response.readline(MAX_LINE + 1):
            if len(line) > MAX_LINE:
                raise RemoteAnswerError(Text("a line of over {max_line} bytes", max_line=MAX_LINE))
            self.pieces.put(line)
        return None
