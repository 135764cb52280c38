# SPDX-License-Identifier: Apache-2.0
"""One visitor: who it is, what it asks, what it wants to be told of."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from typing import Protocol, cast

from pydantic import BaseModel, ValidationError

from app.ipc.messages import (
    HELLO,
    REQUESTS,
    Answer,
    Done,
    Event,
    Refused,
    Request,
    Subscribe,
    Topic,
)
from app.ipc.protocol import MAX_REQUEST_BYTES, PROTOCOL_VERSION
from engine.failures import name_of_error
from engine.texts import Text
from engine.wire import Wire

# A visitor that knows the key answers at once; one that says nothing is shown out.
_HANDSHAKE_LIMIT_S = 2.0

_log = logging.getLogger(__name__)


class Host(Protocol):
    """What a session needs of the companion. Called on the sessions' threads."""

    def answer(self, request: Request) -> Answer:
        """Do what is asked; returns soon."""
        ...

    def present(self, topic: Topic) -> Event | None:
        """The present value of a topic; None if it has none."""
        ...


class Session:
    """Lives on a thread of its own; another one sends events, from the first subscription on."""

    def __init__(
        self, connection: Connection, key: bytes, host: Host, refused: Callable[[str], None]
    ) -> None:
        """`refused` is told, by the kind of its failure, of a visitor that does not hold the key."""
        self._wire = Wire(connection)
        self._refused = refused
        self._key = key
        self._host = host
        self._send_lock = threading.Lock()
        # The condition guards what follows.
        self._changed = threading.Condition()
        self._topics: frozenset[Topic] = frozenset()
        self._waiting: dict[str, Event] = {}
        self._writer: threading.Thread | None = None
        self._is_over = False
        self.client = ""

    def run(self, on_end: Callable[[Session], None]) -> None:
        """The thread: let the visitor in, answer until it goes."""
        try:
            if self._holds_key() and self._says_hello():
                while self._answer_one():
                    pass
        except (OSError, EOFError):
            pass  # it is gone, in the middle of a message or after one
        except Exception as error:  # noqa: BLE001  the thread's top
            _log.error("a visitor is shown out after %s", name_of_error(error))
        finally:
            self.end()
            on_end(self)
            if self._writer is not None:
                self._writer.join()
            self._wire.close()

    def end(self) -> None:
        """Show the visitor out; from any thread."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()
        self._wire.end()

    def wants(self, topic: Topic) -> bool:
        """Whether the visitor is to be told of `topic`."""
        return topic in self._topics

    def tell(self, event: Event, topic: Topic | None) -> None:
        """Send `event` soon. Never waits; of each kind that was not sent yet, the newest is sent."""
        with self._changed:
            if self.client and (topic is None or topic in self._topics):
                if topic is Topic.KEY:
                    self._topics -= {Topic.KEY}
                self._waiting[event.type] = event
                self._start_writer()
                self._changed.notify_all()

    def _holds_key(self) -> bool:
        watchdog = threading.Timer(_HANDSHAKE_LIMIT_S, self._wire.end)
        watchdog.start()
        try:
            deliver_challenge(cast(Connection, self._wire), self._key)
            answer_challenge(cast(Connection, self._wire), self._key)
        except (AuthenticationError, AssertionError, EOFError, OSError, ValueError) as error:
            # AssertionError: how Python 3.11 refuses a challenge that is none.
            self._refused(type(error).__name__)
            return False
        finally:
            watchdog.cancel()
        return True

    def _says_hello(self) -> bool:
        frame = self._wire.recv_bytes(MAX_REQUEST_BYTES)
        fields = _fields(frame)
        number = fields.get("id")
        number = number if type(number) is int else None
        if fields.get("type") != "hello" or type(fields.get("protocol")) is not int:
            self._send(
                Refused(id=number, code="protocol", reason=Text("the first message is no hello"))
            )
            return False
        if fields["protocol"] != PROTOCOL_VERSION:
            reason = Text(
                "this companion speaks version {version}: restart it and try again.",
                version=PROTOCOL_VERSION,
            )
            self._send(Refused(id=number, code="version", reason=reason))
            return False
        try:
            hello = HELLO.validate_json(frame)
        except ValidationError:
            self._send(Refused(id=number, code="protocol", reason=Text("this hello is malformed")))
            return False
        self.client = hello.client
        self._send(Done(id=hello.id))
        return True

    def _answer_one(self) -> bool:
        """Take one request; False when the connection is of no further use."""
        frame = self._wire.recv_bytes(MAX_REQUEST_BYTES)
        try:
            request = REQUESTS.validate_json(frame)
        except ValidationError as error:
            number = _fields(frame).get("id")
            details = error.errors(include_url=False, include_input=False)
            kinds = sorted({detail["type"] for detail in details})
            reason = Text("this is no request: {kinds}", kinds=", ".join(kinds))
            if kinds == ["string_too_long"]:  # a text of a person, not a mistake of a program
                limit = details[0]["ctx"]["max_length"]
                reason = Text("At most {limit} characters fit.", limit=limit)
            self._send(
                Refused(id=number if type(number) is int else None, code="protocol", reason=reason)
            )
            return type(number) is int
        if isinstance(request, Subscribe):
            self._subscribe(request)
        else:
            self._send(self._answered(request))
        return True

    def _answered(self, request: Request) -> Answer:
        try:
            return self._host.answer(request)
        except Exception as error:  # noqa: BLE001  one request, not the visitor
            name = name_of_error(error)
            _log.error("a request of type %s failed: %s", request.type, name)
            return Refused(
                id=request.id, code="internal", reason=Text("it failed inside: {name}", name=name)
            )

    def _subscribe(self, request: Subscribe) -> None:
        self._send(Done(id=request.id))
        with self._changed:
            self._topics = request.topics
        for topic in sorted(request.topics):
            event = self._host.present(topic)
            if event is not None:
                self.tell(event, topic)

    def _start_writer(self) -> None:
        if self._writer is None and not self._is_over:
            self._writer = threading.Thread(target=self._write, name="ipc-events", daemon=True)
            self._writer.start()

    def _write(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._is_over)
                if self._is_over:
                    return
                events, self._waiting = list(self._waiting.values()), {}
            try:
                for event in events:
                    self._send(event)
            except OSError:
                return  # the reader finds the end too

    def _send(self, message: BaseModel) -> None:
        with self._send_lock:
            self._wire.send_bytes(message.model_dump_json().encode())


def _fields(frame: bytes) -> dict[str, object]:
    try:
        fields = json.loads(frame)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}
