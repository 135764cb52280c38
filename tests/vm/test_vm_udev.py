# SPDX-License-Identifier: Apache-2.0
"""The udev rules with a real udevd: the person at the screen may open the raw HID interface, not the keys."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from firmware_bridge.discovery.candidates import Candidate
from firmware_bridge.discovery.system import system_opener, system_watch
from firmware_bridge.discovery.udev_rules import FILE_NAME, RawInterface, render_udev_rules
from firmware_bridge.discovery.watch import OwnLooks, UdevSource, best_source
from firmware_bridge.transport.hid_library import HidLibrary
from tests.helpers.waiting import wait_until
from tests.vm.conftest import MakeBoard
from tests.vm.desk import LONG_S, matching, wait_for_boards
from tests.vm.image import cache_folder
from tests.vm.ports import UsbNames

SEAT_USER = 1000
OTHER_USER = 1001
NAMES = UsbNames(vendor=0xFEED, product=0x6062, serial="seat")


@contextmanager
def as_user(uid: int) -> Iterator[None]:
    groups = os.getgroups()
    os.setgroups([])
    os.setegid(uid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)


def _found(root: Path, name: str) -> Path:
    """In / or /usr, depending on how old the packages are."""
    return next(path for path in (root / name, root / "usr" / name) if path.exists())


@pytest.fixture
def udevd() -> Iterator[None]:
    """udevd with our rules and those of systemd that act on the tag `uaccess`.

    They ask systemd-logind's files for who sits at the seat, so those files are written here.
    """
    root = cache_folder() / "udev"
    rules, seats = Path("/run/udev/rules.d"), Path("/run/systemd/seats")
    rules.mkdir(parents=True)
    seats.mkdir(parents=True)
    seats.joinpath("seat0").write_text(f"IS_SEAT0=1\nACTIVE=1\nACTIVE_UID={SEAT_USER}\n")
    for name in ("70-uaccess.rules", "71-seat.rules", "73-seat-late.rules"):
        shutil.copy(_found(root, f"lib/udev/rules.d/{name}"), rules)
    text = render_udev_rules([RawInterface(NAMES.vendor, NAMES.product, 1, NAMES.name)])
    rules.joinpath(FILE_NAME).write_text(text)
    program = Path("/run/systemd-udevd")
    program.symlink_to(_found(root, "bin/udevadm"))
    libraries = ":".join(str(root / part / "lib/x86_64-linux-gnu") for part in ("", "usr"))
    process = subprocess.Popen(
        [str(program), "--resolve-names=never"],
        env={**os.environ, "LD_LIBRARY_PATH": libraries},
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    wait_until(Path("/run/udev/control").exists)
    yield
    process.terminate()
    _, said = process.communicate()
    assert not [line for line in said.decode().splitlines() if FILE_NAME in line], said
    shutil.rmtree("/run/udev")
    shutil.rmtree("/run/systemd")
    program.unlink()


def can_open(candidate: Candidate) -> bool:
    try:
        os.close(os.open(candidate.path, os.O_RDWR))
    except PermissionError:
        return False
    return True


def test_only_the_seat_user_and_only_the_raw_interface(
    udevd: None, make_board: MakeBoard, library: HidLibrary
) -> None:
    watch = system_watch(library)
    watch._limit_s = LONG_S
    watch.start()
    try:
        board = make_board(NAMES)
        board.udc = 0
        board.plug()
        wait_for_boards(watch, 1)
        wait_until(
            lambda: len([c for c in watch.candidates() if c.identity.transport == "hid"]) == 2
        )
        raw, keys = sorted(
            (c for c in watch.candidates() if c.identity.transport == "hid"),
            key=lambda c: -c.interface,
        )
        with as_user(SEAT_USER):
            wait_until(lambda: can_open(raw))
            assert not can_open(keys)
        with as_user(OTHER_USER):
            assert not can_open(raw)
            assert not can_open(keys)
        opener = system_opener(library, watch)
        with as_user(SEAT_USER):
            assert opener().identity == raw.identity
        other = make_board(UsbNames(product=0x6063, serial="other"))
        other.udc = 1
        other.plug()
        wait_for_boards(watch, 2)
        time.sleep(0.5)
        stranger = next(c for c in matching(watch) if c.identity.serial == "other")
        with as_user(SEAT_USER):
            assert not can_open(stranger)
    finally:
        watch.stop()


def test_with_udevd_a_device_is_listed_when_it_may_be_opened(
    udevd: None, make_board: MakeBoard, library: HidLibrary
) -> None:
    pytest.importorskip("pyudev")
    source = best_source(OwnLooks())
    assert isinstance(source, UdevSource)
    watch = system_watch(library)
    watch._limit_s = LONG_S
    assert isinstance(watch._source, UdevSource)
    watch.start()
    try:
        board = make_board(NAMES)
        board.udc = 0
        watch.candidates()
        board.plug()
        [candidate] = wait_for_boards(watch, 1)
        with as_user(SEAT_USER):
            wait_until(lambda: can_open(candidate))
        board.unplug()
        wait_for_boards(watch, 0)
    finally:
        watch.stop()
