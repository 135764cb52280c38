# SPDX-License-Identifier: Apache-2.0
"""Who may connect as the engine child: only the holder of the key, whatever strangers do meanwhile."""

from __future__ import annotations

import os
import socket
import stat
import sys
import tempfile
import threading
from collections.abc import Iterator
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client
from pathlib import Path

import pytest

from engine import door as door_module
from engine.channel import AUTHKEY_BYTES
from engine.door import Door

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="looks at Unix sockets")


@pytest.fixture
def door(monkeypatch: pytest.MonkeyPatch) -> Iterator[Door]:
    monkeypatch.setattr(door_module, "_HANDSHAKE_LIMIT_S", 0.3)
    made = Door()
    yield made
    made.close()
    assert not Path(made.address).parent.exists()
    assert not [t for t in threading.enumerate() if t.name == "engine-door"]


def _child_gets_in(door: Door) -> None:
    seen: list[bytes] = []

    def child() -> None:
        with Client(door.address, authkey=door.key) as connection:
            connection.send_bytes(b"it is me")
            seen.append(connection.recv_bytes())

    thread = threading.Thread(target=child)
    thread.start()
    connection = door.admitted(10)
    assert connection is not None
    with connection:
        assert connection.recv_bytes() == b"it is me"
        connection.send_bytes(b"welcome")
    thread.join()
    assert seen == [b"welcome"]


def _knock(door: Door, sent: bytes) -> socket.socket:
    stranger = socket.socket(socket.AF_UNIX)
    stranger.connect(door.address)
    stranger.sendall(sent)
    return stranger


def test_the_address_is_private(door: Door) -> None:
    folder = Path(door.address).parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert folder.stat().st_uid == os.getuid()
    assert len(door.key) == AUTHKEY_BYTES


def test_no_two_doors_share_address_or_key(door: Door) -> None:
    other = Door()
    other.close()
    assert (other.address, other.key) != (door.address, door.key)
    assert other.address != door.address
    assert other.key != door.key


def test_the_holder_of_the_key_gets_in(door: Door) -> None:
    _child_gets_in(door)


def test_nobody_comes(door: Door) -> None:
    assert door.admitted(0.05) is None


@pytest.mark.expected_log("refused a stranger")
def test_a_wrong_key_is_refused(door: Door) -> None:
    with pytest.raises(AuthenticationError):
        Client(door.address, authkey=bytes(AUTHKEY_BYTES))
    _child_gets_in(door)


@pytest.mark.expected_log("refused a stranger")
@pytest.mark.parametrize(
    "sent", [b"", b"\x00", b"\xff" * 64, b"\x7f\xff\xff\xff", b"\x00\x00\x00\x14" + b"x" * 20]
)
def test_bytes_of_a_stranger_do_not_matter(door: Door, sent: bytes) -> None:
    _knock(door, sent).close()
    _child_gets_in(door)


@pytest.mark.expected_log("refused a stranger")
def test_a_silent_stranger_does_not_keep_the_child_out(door: Door) -> None:
    with _knock(door, b""):
        _child_gets_in(door)


def test_close_does_not_wait_for_a_silent_stranger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door_module, "_HANDSHAKE_LIMIT_S", 60.0)
    door = Door()
    with _knock(door, b"") as stranger:
        assert stranger.recv(4)  # the challenge: the handshake is under way
        door.close()


def test_an_admitted_visitor_whom_nobody_wants_is_let_go() -> None:
    door = Door()
    with Client(door.address, authkey=door.key) as connection:
        while door._admitted.empty():
            pass
        door.close()
        with pytest.raises(EOFError):
            connection.recv_bytes()


def test_a_long_temporary_folder_is_avoided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("d" * 120)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    door = Door()
    _child_gets_in(door)
    door.close()
    assert not list(long.iterdir())
