# SPDX-License-Identifier: Apache-2.0
"""Framed JSON between the companion and the engine child.

One message per frame of `multiprocessing.connection`, which adds a length in front and knows Unix
sockets and Windows named pipes. Only `send_bytes` and `recv_bytes` are used: `send` and `recv` would
unpickle, and unpickling runs code that the other side chose.
"""

from __future__ import annotations

import json
import threading
from multiprocessing.connection import Connection
from typing import Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from engine.errors import EngineError
from engine.messages import MAX_MESSAGE_BYTES, PROTOCOL_VERSION, Command, Event
from engine.texts import Text

# The key that both sides prove to hold, handed to the child through its stdin.
AUTHKEY_BYTES = 32

Incoming = TypeVar("Incoming")


class ChannelError(EngineError):
    """The other side broke the protocol; the connection is of no further use."""

    code = "channel"


class ChannelClosedError(ChannelError):
    """The other side is gone, perhaps in the middle of a message."""

    code = "channel-closed"


class MessageTooLargeError(ChannelError):
    """A message is over the limit of one frame; nothing of it was sent."""

    code = "message-too-large"


class ProtocolVersionError(ChannelError):
    """The other side speaks another version of the messages."""

    code = "protocol-version"


def encode(message: Command | Event) -> bytes:
    """The frame of one message.

    Raises:
        MessageTooLargeError: over MAX_MESSAGE_BYTES.
    """
    frame = message.model_dump_json().encode()
    if len(frame) > MAX_MESSAGE_BYTES:
        raise MessageTooLargeError(
            Text(
                "a {type} message has {frame} bytes, the limit is {max_message_bytes}: send less text",
                type=message.type,
                frame=len(frame),
                max_message_bytes=MAX_MESSAGE_BYTES,
            )
        )
    return frame


class Channel(Generic[Incoming]):
    """One end of a connection. Any thread may send, and one receives."""

    def __init__(self, connection: Connection, incoming: TypeAdapter[Incoming]) -> None:
        self._connection = connection
        self._sending = threading.Lock()
        self._incoming = incoming

    def send_frame(self, frame: bytes) -> None:
        """Write what `encode` made. Blocks while the other side does not read.

        Raises:
            ChannelClosedError: the other side is gone.
        """
        try:
            with self._sending:
                self._connection.send_bytes(frame)
        except (OSError, ValueError) as error:
            raise ChannelClosedError("the other side closed the connection") from error

    def send(self, message: Command | Event) -> None:
        """Encode and write one message.

        Raises:
            ChannelClosedError, MessageTooLargeError.
        """
        self.send_frame(encode(message))

    def receive(self) -> Incoming:
        """Wait for the next message.

        Raises:
            ChannelClosedError: the other side is gone.
            ChannelError: what came is not a message that this side takes.
        """
        frame = self._receive_frame()
        try:
            return self._incoming.validate_json(frame)
        except ValidationError as error:
            # Names of our own fields only: `loc` of a surplus field, `input` and `ctx` hold what was sent.
            kinds = ", ".join(
                sorted({detail["type"] for detail in error.errors(include_url=False)})
            )
            reason = Text(
                "a frame of {frame} bytes is not a valid message ({kinds})",
                frame=len(frame),
                kinds=kinds,
            )
        # Raised out here so that no ValidationError, which holds the input, rides along as __context__.
        raise ChannelError(reason)

    def poll(self, limit_s: float) -> bool:
        """True if something came, or the other side is gone, within `limit_s` seconds."""
        try:
            return self._connection.poll(limit_s)
        except (OSError, EOFError):
            return True  # `receive` tells what is wrong

    def receive_hello(self) -> None:
        """Wait for the child's first frame and check its version.

        Looks at `type` and `protocol` only, because a Hello of another version may look otherwise.

        Raises:
            ProtocolVersionError: the child speaks another version.
            ChannelError: no Hello, or the child is gone.
        """
        frame = self._receive_frame()
        try:
            hello = json.loads(frame)
        except (ValueError, RecursionError):
            hello = None
        if not isinstance(hello, dict) or hello.get("type") != "hello":
            raise ChannelError("the engine's first message is no hello")
        protocol = hello.get("protocol")
        if not isinstance(protocol, int):
            raise ChannelError("the engine's hello lacks its protocol version")
        if protocol != PROTOCOL_VERSION:
            raise ProtocolVersionError(
                Text(
                    "the engine speaks message version {protocol}, this program {protocol_version}: "
                    "install both from the same release",
                    protocol=protocol,
                    protocol_version=PROTOCOL_VERSION,
                )
            )

    def close(self) -> None:
        """Close this end. Safe to call twice."""
        self._connection.close()

    def _receive_frame(self) -> bytes:
        try:
            return self._connection.recv_bytes(MAX_MESSAGE_BYTES)
        except EOFError as error:
            raise ChannelClosedError("the other side closed the connection") from error
        except (OSError, ValueError) as error:
            # recv_bytes says the same OSError for an oversized frame and for one cut short by an end.
            raise ChannelClosedError(
                "the connection broke, or a frame is over the limit"
            ) from error
