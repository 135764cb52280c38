# SPDX-License-Identifier: Apache-2.0
"""Linux tells who opens the keyboard: files stand in for device nodes, other processes for other programs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from firmware_bridge.neighbours import Sign
from firmware_bridge.node_watch import NodeWatch, WatchedTransport, who_has_open
from tests.helpers.transports import ScriptedTransport

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="inotify and /proc")

# A program that opens and closes a file as it is told to, and says when it is done.
SCRIPT = """
import sys
files = []
for order in sys.stdin:
    files.append(open(sys.argv[1])) if order == "open\\n" else files.pop().close()
    print(flush=True)
"""


class Program:
    """Another process."""

    def __init__(self, node: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(node)], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def do(self, order: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(order, file=self._process.stdin, flush=True)
        self._process.stdout.readline()

    def end(self) -> None:
        self._process.communicate(timeout=10)

    @property
    def name(self) -> str:
        return Path(f"/proc/{self._process.pid}/comm").read_text().strip()


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """Of a keyboard whose descriptor is where the kernel shows it."""
    device = tmp_path / "sys/class/hidraw/hidraw7/device"
    device.mkdir(parents=True)
    (device / "report_descriptor").write_bytes(b"")
    path = tmp_path / "hidraw7"
    path.touch()
    return path


@pytest.fixture
def program(node: Path) -> Iterator[Program]:
    program = Program(node)
    yield program
    program.end()


@pytest.fixture
def watch(node: Path, tmp_path: Path) -> Iterator[NodeWatch]:
    watch = NodeWatch(sysfs=tmp_path / "sys")
    yield watch
    watch.stop()


def test_an_open_is_told_before_the_program_can_write(
    watch: NodeWatch, node: Path, program: Program
) -> None:
    watch.start(str(node))
    assert watch.sign() is None
    assert watch.present() is None
    program.do("open")
    assert watch.sign() is Sign.OPENED
    assert watch.sign() is None
    assert watch.present() == program.name
    program.do("close")
    assert watch.sign() is None
    assert watch.present() is None


def test_a_program_that_was_there_before_is_found(
    watch: NodeWatch, node: Path, program: Program
) -> None:
    program.do("open")
    watch.start(str(node))
    assert watch.sign() is None
    assert watch.present() == program.name
    program.do("close")
    assert watch.present() is None
    program.do("open")
    assert watch.sign() is Sign.OPENED


def test_one_that_this_user_may_not_look_into_is_noticed_too(
    node: Path, tmp_path: Path, program: Program
) -> None:
    watch = NodeWatch(proc=tmp_path / "no-proc", sysfs=tmp_path / "sys")
    watch.start(str(node))
    program.do("open")
    assert watch.present() == "another program"
    program.do("close")
    assert watch.present() is None
    watch.stop()


def test_whoever_lists_the_keyboards_is_noticed_and_we_are_not(node: Path, tmp_path: Path) -> None:
    scans = 0
    watch = NodeWatch(lambda: scans, sysfs=tmp_path / "sys")
    watch.start(str(node))
    descriptor = tmp_path / "sys/class/hidraw/hidraw7/device/report_descriptor"
    descriptor.read_bytes()
    assert watch.sign() is Sign.LISTED
    scans = 1
    descriptor.read_bytes()
    assert watch.sign() is None
    descriptor.read_bytes()
    assert watch.sign() is None
    descriptor.read_bytes()
    scans = 2
    assert watch.sign() is None
    descriptor.read_bytes()
    node.read_bytes()
    assert watch.sign() is Sign.OPENED  # the stronger one
    watch.stop()


def test_the_node_is_watched_while_the_transport_is_open(node: Path, watch: NodeWatch) -> None:
    inner = ScriptedTransport(lambda report: [])
    transport = WatchedTransport(inner, str(node), watch)
    node.read_bytes()
    transport.open()
    assert watch.sign() is None
    node.read_bytes()
    assert watch.sign() is Sign.OPENED
    node.read_bytes()
    transport.close()
    assert inner.closed == 1
    assert watch.sign() is None
    assert watch.present() is None


def test_nothing_stays_open(node: Path, watch: NodeWatch) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        watch.start(str(node))
        watch.start(str(node))
        watch.stop()
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.expected_log("other programs are noticed late")
def test_without_inotify_the_table_of_processes_is_left(
    node: Path, watch: NodeWatch, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("firmware_bridge.node_watch._inotify", refuse)
    watch.start(str(node))
    program.do("open")
    assert watch.sign() is None
    assert watch.present() == program.name


def test_our_own_handle_does_not_count(node: Path) -> None:
    with node.open():
        assert who_has_open(str(node)) is None


def test_where_nobody_tells_nobody_is_there(tmp_path: Path) -> None:
    assert who_has_open("/dev/hidraw0", tmp_path / "no-proc") is None
