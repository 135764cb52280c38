# SPDX-License-Identifier: Apache-2.0
"""Linux tells who opens the keyboard: files stand in for device nodes, other processes for other programs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from firmware_bridge.discovery.linux_hid import device_names
from firmware_bridge.discovery.watch import NameSource, OwnLooks
from firmware_bridge.neighbours import Sign, load_configurators
from firmware_bridge.node_watch import NodeWatch, WatchedTransport
from firmware_bridge.processes import ProcessTable
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


NOBODY_CONFIGURES = ProcessTable(configurators=())  # whatever runs on this machine


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
        self._process.communicate(timeout=60)

    @property
    def name(self) -> str:
        return Path(f"/proc/{self._process.pid}/comm").read_text().strip()


@pytest.fixture
def node(tmp_path: Path) -> Path:
    (tmp_path / "sys/class/hidraw/hidraw7").mkdir(parents=True)
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
    watch = NodeWatch(processes=NOBODY_CONFIGURES, sysfs=tmp_path / "sys")
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


def test_the_processes_are_looked_through_once_while_nothing_is_told(
    node: Path, tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []
    monkeypatch.setattr(NOBODY_CONFIGURES, "who_has_open", lambda path: looks.append(path))
    watch = NodeWatch(processes=NOBODY_CONFIGURES, sysfs=tmp_path / "sys")
    watch.start(str(node))
    assert watch.present() is watch.present() is None
    assert len(looks) == 1
    program.do("open")
    assert watch.present() == "another program"
    program.do("close")
    assert watch.present() is None
    assert len(looks) == 3
    watch.stop()


def test_one_that_this_user_may_not_look_into_is_noticed_too(
    node: Path, tmp_path: Path, program: Program
) -> None:
    watch = NodeWatch(processes=ProcessTable(tmp_path / "no-proc"), sysfs=tmp_path / "sys")
    watch.start(str(node))
    program.do("open")
    assert watch.present() == "another program"
    program.do("close")
    assert watch.present() is None
    watch.stop()


def test_whoever_lists_the_keyboards_is_noticed_and_we_are_not(node: Path, tmp_path: Path) -> None:
    looks = OwnLooks()
    watch = NodeWatch(lambda: looks.count, processes=NOBODY_CONFIGURES, sysfs=tmp_path / "sys")
    watch.start(str(node))
    device_names(tmp_path / "sys")
    assert watch.sign() is Sign.LISTED
    with looks:
        device_names(tmp_path / "sys")
        assert watch.sign() is None
        device_names(tmp_path / "sys")
        assert watch.sign() is None
        device_names(tmp_path / "sys")
    assert watch.sign() is None
    assert not NameSource(lambda: device_names(tmp_path / "sys"), looks).wait(0.001)
    watch.sign()  # of the source's first look, which it takes before we count
    device_names(tmp_path / "sys")
    node.read_bytes()
    assert watch.sign() is Sign.OPENED  # the stronger one
    watch.stop()


def test_a_look_of_ours_that_is_told_late_is_still_ours(node: Path, tmp_path: Path) -> None:
    """It was done between the two things that `sign` looks at."""
    counted = 0

    def own_looks() -> int:
        nonlocal counted
        counted += 1
        if counted == 2:
            device_names(tmp_path / "sys")
        return 0 if counted < 2 else 2

    watch = NodeWatch(own_looks, processes=NOBODY_CONFIGURES, sysfs=tmp_path / "sys")
    watch.start(str(node))
    for _ in range(4):
        assert watch.sign() is None
    device_names(tmp_path / "sys")
    assert watch.sign() is Sign.LISTED
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
        assert ProcessTable().who_has_open(str(node)) is None


def test_where_nobody_tells_nobody_is_there(tmp_path: Path) -> None:
    table = ProcessTable(tmp_path / "no-proc")
    assert table.who_has_open("/dev/hidraw0") is None
    assert table.who_configures() is None
    assert not table.has_news()


def fake_process(proc: Path, number: int, name: str) -> None:
    folder = proc / str(number)
    folder.mkdir(parents=True)
    (folder / "comm").write_text(f"{name}\n")


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("vial", True),
        ("Vial", True),
        ("Vial-v0.7.5-x86", True),
        ("vialect", False),
        ("bash", False),
    ],
)
def test_a_program_that_will_open_the_keyboard_is_noticed_while_it_starts(
    node: Path, tmp_path: Path, name: str, is_one: bool
) -> None:
    now = 10.0
    proc = tmp_path / "proc"
    fake_process(proc, 1, "init")
    watch = NodeWatch(processes=ProcessTable(proc), sysfs=tmp_path / "sys", clock=lambda: now)
    watch.start(str(node))
    now += 1
    assert watch.sign() is None
    fake_process(proc, 77, name)
    now += 0.2
    assert watch.sign() is None  # not yet looked
    now += 0.1
    assert watch.sign() is (Sign.STARTED if is_one else None)
    now += 1
    assert watch.sign() is None
    assert watch.present() == ("Vial" if is_one else None)
    shutil.rmtree(proc / "77")
    assert watch.present() is None
    watch.stop()


def test_a_process_that_gets_its_name_a_moment_later_is_noticed_too(tmp_path: Path) -> None:
    fake_process(tmp_path, 1, "init")
    table = ProcessTable(tmp_path)
    assert not table.has_news()
    fake_process(tmp_path, 50, "bash")  # forked, and not yet what it will be
    assert not table.has_news()
    (tmp_path / "50/comm").write_text("Vial\n")
    assert table.has_news()
    assert not table.has_news()
    assert table.who_configures() == "Vial"


def test_every_configurator_has_a_source() -> None:
    for row in load_configurators():
        assert row.name == row.name.lower()
        assert row.source
