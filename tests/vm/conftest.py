# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of this folder inside the test machine, by a pytest there; their reports come back here.

One machine serves all tests that were selected. Where it cannot run they are skipped, with the reason, or
fail if THOCK_REQUIRE_VM is set.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from firmware_bridge.discovery import detect
from firmware_bridge.discovery.system import system_watch
from firmware_bridge.discovery.watch import DeviceWatch
from firmware_bridge.firmware.virtual_core import BoardConfig
from firmware_bridge.transport import serial_port
from firmware_bridge.transport.hid_library import HidLibrary, load_hid_library
from tests.vm.image import ImageError, why_impossible
from tests.vm.machine import Machine

if os.name == "posix":
    from tests.vm.boards import Board, BoardServer
    from tests.vm.ports import UsbNames
else:  # the files need modules that exist on POSIX only
    collect_ignore_glob = ["test_*.py"]

EMULATED_S = 60.0  # what an emulated processor that others use too does in a moment
FOLDER = Path(__file__).parent
_INSIDE = "THOCK_INSIDE_VM"
_IS_REQUIRED = bool(os.environ.get("THOCK_REQUIRE_VM"))
_TEST_S = 600
_MARK = "@report "  # before a report on the standard output of the inner pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    reason = "" if _INSIDE in os.environ else why_impossible()
    if _INSIDE not in os.environ:
        for item in items:
            if _is_ours(
                item
            ):  # the first one waits for the machine; the pytest in there has limits of its own
                item.add_marker(pytest.mark.timeout(0))
    if reason and _IS_REQUIRED:
        raise pytest.UsageError(reason)
    if reason:
        for item in items:
            if _is_ours(item):
                item.add_marker(pytest.mark.skip(reason=reason))


def _is_ours(item: pytest.Item) -> bool:
    return item.path.is_relative_to(FOLDER)


if _INSIDE in os.environ:

    class _Reporter:
        def __init__(self, config: pytest.Config) -> None:
            self._config = config

        @pytest.hookimpl(trylast=True)
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            content = self._config.hook.pytest_report_to_serializable(
                config=self._config, report=report
            )
            # the terminal's own line may not be at its end
            print(f"\n{_MARK}{json.dumps(content)}", file=sys.__stdout__, flush=True)

    def pytest_configure(config: pytest.Config) -> None:
        config.pluginmanager.register(_Reporter(config))

else:

    class _Outside:
        """The reports of the machine, in the order in which the tests were collected."""

        def __init__(self, items: list[pytest.Item]) -> None:
            self._config = items[0].config
            command = [
                *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", ""),
                f"--timeout={_TEST_S}",
                *(item.nodeid for item in items),
            ]
            environment = {**os.environ, _INSIDE: "1"}
            self.machine = Machine(command, self._config.rootpath, environment)
            # more than pytest-timeout grants one test in there
            is_slow = any(item.get_closest_marker("slow") for item in items)
            self._silence_s = 2000.0 if is_slow else _TEST_S + 100.0
            self._lines: Iterator[str] = iter(())
            self._printed: list[str] = []

        def start(self) -> None:
            self.machine.__enter__()
            self._lines = self.machine.lines(self._silence_s)

        def reports(self, nodeid: str) -> Iterator[pytest.TestReport]:
            """Those of one test; ends with that of its teardown."""
            for line in self._lines:
                if not line.startswith(_MARK):
                    self._printed.append(line)
                    continue
                content = json.loads(line.removeprefix(_MARK))
                report = self._config.hook.pytest_report_from_serializable(
                    config=self._config, data=content
                )
                assert isinstance(report, pytest.TestReport)
                assert report.nodeid == nodeid
                if isinstance(report.longrepr, list):  # of a skipped test; JSON has no tuples
                    report.longrepr = tuple(report.longrepr)
                yield report
                if report.when == "teardown":
                    return
            raise RuntimeError(
                f"the test machine ended early (status {self.machine.finish()})\n"
                + "\n".join(self._printed[-40:]) + "\n" + self.machine.messages()
            )  # fmt: skip

    _outside = pytest.StashKey[_Outside]()
    _impossible = pytest.StashKey[ImageError]()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        if not _is_ours(item) or item.get_closest_marker("skip") is not None:
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        try:
            for report in _machine_of(item.session).reports(item.nodeid):
                item.ihook.pytest_runtest_logreport(report=report)
        except (RuntimeError, ImageError) as error:
            item.ihook.pytest_runtest_logreport(report=_failure(item, error))
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def _machine_of(session: pytest.Session) -> _Outside:
        if _impossible in session.stash:  # not to be tried for each test
            raise session.stash[_impossible]
        outside = session.stash.get(_outside, None)
        if outside is None:
            outside = _Outside([item for item in session.items if _is_ours(item)])
            try:
                outside.start()
            except ImageError as error:
                session.stash[_impossible] = error
                raise
            session.stash[_outside] = outside
        return outside

    def _failure(item: pytest.Item, error: Exception) -> pytest.TestReport:
        is_skipped = isinstance(error, ImageError) and not _IS_REQUIRED
        outcome = "skipped" if is_skipped else "failed"
        reason = f"test machine: {error}"
        return pytest.TestReport(
            item.nodeid, item.location, {}, outcome,  # type: ignore[arg-type]
            (str(item.path), 0, f"Skipped: {reason}") if outcome == "skipped" else reason,
            when="call",
        )  # fmt: skip

    def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
        """What the tests measured (`record_property`)."""
        for report in terminalreporter.getreports("passed"):
            if report.when == "call" and report.nodeid.startswith("tests/vm/"):
                for name, value in report.user_properties:
                    terminalreporter.write_line(f"{name}: {value}")

    def pytest_sessionfinish(session: pytest.Session) -> None:
        outside = session.stash.get(_outside, None)
        if outside is not None:
            outside.machine.__exit__(None, None, None)


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits of the program that mean a broken device on a real processor, and nothing on an emulated one."""
    monkeypatch.setattr(detect, "_ANSWER_S", 3.0)
    monkeypatch.setattr(serial_port, "_WRITE_LIMIT_S", EMULATED_S)
    monkeypatch.setattr(serial_port, "_CLOSE_LIMIT_S", EMULATED_S)


@pytest.fixture(scope="session")
def server() -> Iterator[BoardServer]:
    boards = BoardServer()
    yield boards
    boards.stop()


MakeBoard = Callable[..., Board]


@pytest.fixture
def make_board(server: BoardServer) -> Iterator[MakeBoard]:
    """Boards by `BoardServer.board`'s arguments, not plugged in; all are gone after the test."""
    boards: list[Board] = []

    def make(names: UsbNames | None = None, config: BoardConfig | None = None) -> Board:
        boards.append(server.board(names, config))
        return boards[-1]

    yield make
    for board in boards:
        board.forget()


@pytest.fixture
def board(make_board: MakeBoard) -> Board:
    """A board of the kernel's uhid, plugged in."""
    board = make_board()
    board.plug()
    return board


@pytest.fixture
def usb_board(make_board: MakeBoard) -> Board:
    """A USB board at the first port, plugged in."""
    board = make_board(UsbNames(serial="usb0001"))
    board.udc = 0
    board.plug()
    return board


@pytest.fixture(scope="session")
def library() -> HidLibrary:
    return load_hid_library()


@pytest.fixture
def watch(library: HidLibrary) -> Iterator[DeviceWatch]:
    watch = system_watch(library)
    watch._limit_s = EMULATED_S
    watch.start()
    yield watch
    watch.stop()
