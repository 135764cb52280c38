# SPDX-License-Identifier: Apache-2.0
"""Wrong key, wrong version, too large, cut short, at random: refused, and nothing happens to the companion."""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
from collections.abc import Iterator
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.ipc.protocol import MAX_REQUEST_BYTES, DoorPlate, IpcError, RefusedError
from app.ipc.server import IpcServer, Strangers
from tests.helpers.running_host import RunningHost

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="raw Unix sockets")
REFUSED = "refused a visitor without the key"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningHost]:
    with RunningHost(tmp_path_factory.mktemp("h")) as host:
        assert host.wait(lambda: host.companion.state.keyboard is not None)
        yield host


@pytest.fixture(autouse=True)
def _unharmed(running: RunningHost) -> Iterator[None]:
    """After each test the companion is as before and answers; nobody is left inside."""
    before = running.companion.state
    running.server._strangers = Strangers()  # each test is told of its own
    yield
    assert running.wait(lambda: not running.server._sessions)
    with running.visitor() as visitor:
        assert visitor.request("status")["state"]["engine"] == "ready"
    assert running.companion.state == before
    assert (running.pages, running.quits) == ([], 0)
    assert not running.store.path.exists()


def known(running: RunningHost) -> Connection:
    """A visitor with the key that has said nothing yet."""
    plate = DoorPlate.read(running.folder)
    connection: Connection = Client(plate.address, authkey=plate.key)
    return connection


def greeted(running: RunningHost) -> Connection:
    """One that has said hello."""
    connection = known(running)
    say(connection, {"type": "hello", "id": 0, "protocol": 1, "client": "command"})
    assert hear(connection) == {"type": "done", "id": 0}
    return connection


def say(connection: Connection, message: object) -> None:
    connection.send_bytes(json.dumps(message).encode())


def hear(connection: Connection) -> dict[str, object]:
    assert connection.poll(5)
    message: dict[str, object] = json.loads(connection.recv_bytes())
    return message


def is_shown_out(connection: Connection) -> bool:
    """The companion closes within 5 s, perhaps after a refusal."""
    try:
        while connection.poll(5):
            connection.recv_bytes()
    except (EOFError, OSError):
        return True
    return False


@pytest.mark.expected_log(REFUSED)
def test_a_wrong_key_stays_out(running: RunningHost) -> None:
    plate = DoorPlate.read(running.folder)
    with pytest.raises(AuthenticationError):
        Client(plate.address, authkey=b"x" * 32)


@pytest.mark.expected_log(REFUSED)
def test_a_client_with_an_old_key_says_so(running: RunningHost, tmp_path: Path) -> None:
    from app.ipc.client import IpcClient

    plate = DoorPlate.read(running.folder)
    DoorPlate(plate.address, plate.pid, b"y" * 32).write(tmp_path)
    with pytest.raises(IpcError, match="another key"):
        IpcClient(tmp_path)


@pytest.mark.parametrize("protocol", [0, 2, 99])
def test_another_version_is_told_and_shown_out(running: RunningHost, protocol: int) -> None:
    connection = known(running)
    say(connection, {"type": "hello", "id": 3, "protocol": protocol, "anything": "else"})
    answer = hear(connection)
    assert (answer["type"], answer["code"], answer["id"]) == ("refused", "version", 3)
    assert is_shown_out(connection)


def test_a_client_of_another_version_gets_the_reason(
    running: RunningHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.ipc.client.PROTOCOL_VERSION", 2)
    with pytest.raises(RefusedError, match="speaks version 1"):
        running.visitor()


@pytest.mark.parametrize(
    "first",
    [
        {"type": "quit", "id": 1},
        {"type": "hello", "id": 1},
        {"type": "hello", "id": 1, "protocol": "1", "client": "command"},
        {"type": "hello", "id": 1, "protocol": 1, "client": "stranger"},
        [],
        7,
    ],
)
def test_nothing_is_done_before_hello(running: RunningHost, first: object) -> None:
    connection = known(running)
    say(connection, first)
    assert hear(connection)["code"] == "protocol"
    assert is_shown_out(connection)


def test_a_frame_over_the_limit_ends_the_visit(running: RunningHost) -> None:
    connection = greeted(running)
    os.write(connection.fileno(), struct.pack("!i", MAX_REQUEST_BYTES + 1) + b"{")
    assert is_shown_out(connection)
    connection = greeted(running)
    os.write(connection.fileno(), struct.pack("!i", -1) + struct.pack("!Q", 1 << 40))
    assert is_shown_out(connection)


def test_a_frame_cut_short_is_no_request(running: RunningHost) -> None:
    connection = greeted(running)
    frame = json.dumps({"type": "quit", "id": 1}).encode()
    os.write(connection.fileno(), struct.pack("!i", len(frame)) + frame[:-1])
    connection.close()


@pytest.mark.parametrize(
    "message",
    [
        {"type": "quit"},
        {"type": "quit", "id": "1"},
        {"type": "quit", "id": -1},
        {"type": "quit", "id": 1, "now": True},
        {"type": "pause", "id": 1, "minutes": -5},
        {"type": "pause", "id": 1, "minutes": float("nan")},
        {"type": "set-mode", "id": 1, "mode": "explode"},
        {"type": "show", "id": 1, "page": "../../etc"},
        {"type": "show", "id": 1, "page": "--help; rm"},
        {"type": "ask", "id": 1, "text": ""},
        {"type": "ask", "id": 1, "text": "   "},
        {"type": "ask", "id": 1, "text": "x" * 4001},
        {"type": "subscribe", "id": 1, "topics": ["everything"]},
        {"type": "change-settings", "id": 1, "changes": {"suggest": {"count": 99}}},
        {"type": "change-settings", "id": 1, "changes": {"a": {"b": {"c": {"d": None}}}, "e": 1}},
        {"type": "change-settings", "id": 1, "changes": {"layout": "us\x00"}},
        {"type": "hello", "id": 1, "protocol": 1, "client": "command"},
    ],
)
def test_a_request_that_is_none_is_refused_without_effect(
    running: RunningHost, message: dict[str, object]
) -> None:
    connection = greeted(running)
    say(connection, message)
    assert hear(connection)["type"] == "refused"
    connection.close()


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    frames=st.lists(
        st.one_of(
            st.binary(max_size=200),
            st.recursive(
                st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
                lambda inner: (
                    st.lists(inner, max_size=3)
                    | st.dictionaries(st.sampled_from(["type", "id", "a"]), inner, max_size=3)
                ),
                max_leaves=8,
            ).map(lambda value: json.dumps(value).encode()),
        ),
        max_size=6,
    )
)
def test_random_messages_have_no_effect(running: RunningHost, frames: list[bytes]) -> None:
    connection = greeted(running)
    try:
        for frame in frames:
            connection.send_bytes(frame)
    except OSError:
        pass  # shown out at an earlier one
    connection.close()


@pytest.mark.expected_log(REFUSED)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(min_size=1, max_size=100))
def test_random_bytes_do_not_pass_the_door(running: RunningHost, data: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as raw:
        raw.connect(DoorPlate.read(running.folder).address)
        raw.sendall(data)


@pytest.mark.expected_log(REFUSED)
def test_one_that_says_nothing_keeps_nobody_out_and_is_shown_out(running: RunningHost) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.connect(DoorPlate.read(running.folder).address)
        with running.visitor() as visitor:
            visitor.request("status")
        silent.settimeout(10)
        while silent.recv(100):
            pass


def test_too_many_visitors_are_turned_away_and_there_is_room_again(running: RunningHost) -> None:
    inside = [greeted(running) for _ in range(16)]
    with pytest.raises((IpcError, OSError, EOFError)):
        running.visitor()
    for connection in inside:
        connection.close()
    assert running.wait(lambda: not running.server._sessions)


def test_a_socket_left_by_a_killed_companion_is_no_obstacle(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as old:
        old.bind(str(tmp_path / "companion.sock"))
    DoorPlate(str(tmp_path / "companion.sock"), os.getpid(), b"z" * 32).write(tmp_path)
    with RunningHost(tmp_path) as running, running.visitor() as visitor:
        assert running.wait(lambda: running.companion.state.keyboard is not None)
        assert visitor.request("status")["type"] == "status"


def test_a_path_too_long_for_a_socket_is_explained(running: RunningHost, tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 100)
    folder.mkdir()
    with pytest.raises(IpcError, match="too long for a socket"):
        IpcServer(folder, running.service)


@pytest.mark.expected_log(REFUSED)
def test_strangers_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    strangers = Strangers(clock=lambda: now)
    for _ in range(100):
        strangers.refused("EOFError")
        now += 1.0
    assert len(caplog.records) == 2
    assert "(59 more before)" in caplog.text
