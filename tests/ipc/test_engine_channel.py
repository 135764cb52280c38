# SPDX-License-Identifier: Apache-2.0
"""Frames between companion and engine: only valid messages pass, and refusals quote nothing."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Iterator
from contextlib import closing
from multiprocessing import Pipe
from multiprocessing.connection import Connection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.channel import (
    Channel,
    ChannelClosedError,
    ChannelError,
    MessageTooLargeError,
    ProtocolVersionError,
    encode,
)
from engine.messages import (
    COMMANDS,
    MAX_MESSAGE_BYTES,
    MAX_TEXT,
    PROTOCOL_VERSION,
    Chat,
    Choose,
    Command,
    Hello,
    Suggest,
    Turn,
)

_CANARY = "zyzzyva"


@pytest.fixture
def ends() -> Iterator[tuple[Connection, Channel[Command]]]:
    """A raw connection, and the channel that reads commands at its other end."""
    left, right = Pipe()
    with closing(left), closing(Channel(right, COMMANDS)) as channel:
        yield left, channel


_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=50)
_turns = st.lists(
    st.builds(Turn, role=st.sampled_from(["system", "user", "assistant"]), content=_texts),
    max_size=3,
)
_commands = st.one_of(
    st.builds(Suggest, request=st.integers(), text=_texts, count=st.integers(1, 8)),
    st.builds(Chat, request=st.integers(), turns=_turns, max_tokens=st.integers(1, 4096)),
    st.builds(
        Choose, request=st.integers(), turns=_turns, labels=st.lists(_texts, min_size=2, max_size=4)
    ),
)


@given(_commands)
def test_every_command_arrives_as_it_was_sent(command: Command) -> None:
    left, right = Pipe()
    with closing(Channel(left, COMMANDS)) as sender, closing(Channel(right, COMMANDS)) as receiver:
        sender.send(command)
        assert receiver.receive() == command


@given(st.binary(max_size=200))
def test_random_bytes_are_refused(frame: bytes) -> None:
    left, right = Pipe()
    with closing(left), closing(Channel(right, COMMANDS)) as channel:
        left.send_bytes(frame)
        with pytest.raises(ChannelError, match=f"a frame of {len(frame)} bytes"):
            channel.receive()


@pytest.mark.parametrize(
    "message",
    [
        {"type": _CANARY},
        {"type": "suggest", "request": 1, "text": _CANARY, _CANARY: 1},
        {"type": "suggest", "request": _CANARY, "text": "x"},
        {"type": "suggest", "request": 1, "text": _CANARY * (MAX_TEXT // 7 + 1)},
        {"type": "chat", "request": 1, "turns": [{"role": _CANARY, "content": _CANARY}]},
        {"type": "hello", "protocol": 1, "pid": 1},
        [_CANARY],
        _CANARY,
    ],
)
def test_a_refusal_holds_nothing_of_the_frame(
    ends: tuple[Connection, Channel[Command]], message: object
) -> None:
    ends[0].send_bytes(json.dumps(message).encode())
    with pytest.raises(ChannelError) as refused:
        ends[1].receive()
    assert _CANARY not in str(refused.value)
    assert refused.value.__context__ is None  # a ValidationError would carry the input


def test_pickled_data_is_not_loaded(ends: tuple[Connection, Channel[Command]]) -> None:
    ends[0].send(
        print
    )  # as an attacker would, with the unpickling method of the other side in mind
    with pytest.raises(ChannelError, match="not a valid message"):
        ends[1].receive()


def test_an_oversized_frame_is_refused_unread(ends: tuple[Connection, Channel[Command]]) -> None:
    ends[0]._send(struct.pack("!i", MAX_MESSAGE_BYTES + 1))  # type: ignore[attr-defined]
    with pytest.raises(ChannelClosedError, match="over the limit"):
        ends[1].receive()


def test_a_cut_off_frame_is_the_end() -> None:
    left, right = socket.socketpair()
    with closing(Channel(Connection(right.detach()), COMMANDS)) as channel:
        with left:
            left.sendall(struct.pack("!i", 100) + b"{}")
        with pytest.raises(ChannelClosedError):
            channel.receive()


def test_the_end_is_told_to_both_directions(ends: tuple[Connection, Channel[Command]]) -> None:
    ends[0].close()
    with pytest.raises(ChannelClosedError):
        ends[1].receive()
    with pytest.raises(ChannelClosedError):
        ends[1].send(Hello(protocol=1, pid=1))


def test_a_message_over_the_limit_is_not_sent() -> None:
    turns = [Turn(role="user", content=_CANARY * 4000)] * 40
    with pytest.raises(MessageTooLargeError) as refused:
        encode(Chat(request=1, turns=turns))
    assert _CANARY not in str(refused.value)


def test_hello_of_this_version_is_taken(ends: tuple[Connection, Channel[Command]]) -> None:
    ends[0].send_bytes(encode(Hello(protocol=PROTOCOL_VERSION, pid=77)))
    ends[0].send_bytes(encode(Suggest(request=5, text="")))
    ends[1].receive_hello()
    assert ends[1].receive() == Suggest(request=5, text="")


def test_a_hello_of_a_later_version_is_named_as_such(
    ends: tuple[Connection, Channel[Command]],
) -> None:
    later = {"type": "hello", "protocol": PROTOCOL_VERSION + 1, "pid": 1, "news": True}
    ends[0].send_bytes(json.dumps(later).encode())
    with pytest.raises(ProtocolVersionError, match=f"version {PROTOCOL_VERSION + 1}"):
        ends[1].receive_hello()


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\xff",
        b"[]",
        b"1",
        b'{"type":"hello"}',
        b'{"type":"forgotten","request":1}',
        b"[" * 9999,
    ],
)
def test_anything_else_is_no_hello(ends: tuple[Connection, Channel[Command]], frame: bytes) -> None:
    ends[0].send_bytes(frame)
    with pytest.raises(ChannelError, match="hello"):
        ends[1].receive_hello()
