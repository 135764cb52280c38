# SPDX-License-Identifier: Apache-2.0
"""Two Thocks and one keyboard: the second one is told, and comes in when the first has gone."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from firmware_bridge.device_lock import LockedTransport
from firmware_bridge.errors import DeviceBusyError, DeviceGoneError
from firmware_bridge.transport.base import DeviceIdentity
from tests.helpers.transports import ScriptedTransport

BOARD = DeviceIdentity("hid", 0xFEED, 1, "secret-serial", "usb-1")


def board(folder: Path, identity: DeviceIdentity = BOARD) -> LockedTransport:
    inner = ScriptedTransport(lambda report: [report])
    inner.identity = identity
    return LockedTransport(inner, folder)


def test_the_second_is_told_and_comes_in_later(tmp_path: Path) -> None:
    first, second = board(tmp_path), board(tmp_path)
    first.open()
    first.open()
    with pytest.raises(DeviceBusyError, match="Another Thock") as caught:
        second.open()
    assert caught.value.advice
    second.close()
    first.close()
    first.close()
    second.open()
    second.write(b"\1")
    assert second.read(1) == b"\1"
    second.close()


def test_another_board_is_another_lock(tmp_path: Path) -> None:
    first = board(tmp_path)
    twin = board(tmp_path, replace(BOARD, location="usb-2"))
    first.open()
    twin.open()
    first.close()
    twin.close()
    assert not any("secret" in path.name for path in tmp_path.iterdir())


def test_a_keyboard_that_cannot_be_opened_is_free_after_close(tmp_path: Path) -> None:
    inner = ScriptedTransport(lambda report: [])
    inner.identity = BOARD
    inner.open_error = DeviceGoneError("gone")
    transport = LockedTransport(inner, tmp_path)
    with pytest.raises(DeviceGoneError):
        transport.open()
    transport.close()
    other = board(tmp_path)
    other.open()
    other.close()


def test_a_killed_process_leaves_no_lock(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from tests.bridge.test_device_lock import board;"
        "t = board(Path(sys.argv[1])); t.open(); print(flush=True); time.sleep(60)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    with process, process.stdout:
        process.stdout.readline()
        with pytest.raises(DeviceBusyError):
            board(tmp_path).open()
        process.kill()
        process.wait(10)
    transport = board(tmp_path)
    transport.open()
    transport.close()


@pytest.mark.expected_log("no lock on the keyboard")
def test_without_a_place_for_locks_the_keyboard_works(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    transport = board(tmp_path / "file")
    transport.open()
    transport.close()
