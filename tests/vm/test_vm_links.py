# SPDX-License-Identifier: Apache-2.0
"""Links on the kernel's hidraw and USB drivers: everything that happens to a keyboard on a desk."""

from __future__ import annotations

import time

import pytest

from firmware_bridge.discovery.system import system_opener
from firmware_bridge.discovery.watch import DeviceWatch
from firmware_bridge.display.frame import BitmapFrame, TextFrame
from firmware_bridge.events import BridgeEvent, KeyPressed, KeyReleased, LinkLost
from firmware_bridge.lights.overlay import LightOverlay, Rgb
from firmware_bridge.link import Link
from firmware_bridge.link_state import LinkProblem, LinkState
from firmware_bridge.transport.hid_library import HidLibrary
from tests.helpers.waiting import wait_until
from tests.vm.boards import Board
from tests.vm.conftest import MakeBoard
from tests.vm.desk import LONG_S, OPTIONS, running_link, wait_for_boards, wait_for_port
from tests.vm.ports import UsbNames

LIT = BitmapFrame(128, 32, b"\x3c" * 512)
RED = Rgb(200, 0, 0)


@pytest.mark.parametrize("udc", [None, 0], ids=["uhid", "usb"])
def test_unplugged_in_the_middle_of_a_picture_and_plugged_in_elsewhere(
    udc: int | None, make_board: MakeBoard, watch: DeviceWatch, library: HidLibrary
) -> None:
    board = make_board(UsbNames(serial="mid-frame"))
    board.udc = udc
    board.plug()
    [first] = wait_for_boards(watch, 1)
    events: list[BridgeEvent] = []
    with running_link(library, watch, events.append, first.identity) as link:
        board.press(0x04)
        wait_until(lambda: any(isinstance(event, KeyPressed) for event in events))
        board.unplug_at(5)  # a picture of 512 bytes takes 24 reports
        link.show(LIT)
        wait_until(lambda: any(isinstance(event, LinkLost) for event in events[-1:]))
        assert isinstance(events[-2], KeyReleased)
        assert events[-2].keycode == 0x04
        wait_for_boards(watch, 0)
        # another device takes the old path, and the board comes back at another place
        blocker = make_board(UsbNames(vendor=0x1234, serial="blocker"))
        blocker.plug()
        wait_until(lambda: any(c.path == first.path for c in watch.candidates()))
        if udc is None:
            board.place = "usb-test-2"
        else:
            board.udc = 1
        board.plug()
        assert link.wait_for(LinkState.READY, LONG_S)
        wait_until(lambda: board.panel() == LIT)
        [second] = [c for c in wait_for_boards(watch, 2) if c.identity.serial == "mid-frame"]
        assert second.path != first.path
        assert second.identity.location != first.identity.location


def test_a_port_reset_with_loss_of_state_is_survived(
    usb_board: Board, watch: DeviceWatch, library: HidLibrary
) -> None:
    """What a suspend does to a keyboard that loses its power meanwhile: the node stays, the firmware forgets.

    The wall clock is set meanwhile, which must not matter. Whether the link loses the keyboard depends on how
    long the reset takes.
    """
    wait_for_boards(watch, 1)
    events: list[BridgeEvent] = []
    with running_link(library, watch, events.append) as link:
        link.show(LIT)
        link.set_lights(LightOverlay(leds={3: RED}))
        wait_until(lambda: usb_board.panel() == LIT and usb_board.leds()[3] == RED)
        usb_board.press(0x04)
        wait_until(lambda: any(isinstance(event, KeyPressed) for event in events))
        usb_board.restart()
        usb_board.usb_reset()
        time.clock_settime(time.CLOCK_REALTIME, time.time() + 60)
        wait_until(lambda: any(isinstance(event, KeyReleased) for event in events))
        wait_until(lambda: usb_board.panel() == LIT and usb_board.leds()[3] == RED, LONG_S)
        lost = {event.reason for event in events if isinstance(event, LinkLost)}
        # GONE: a request was under way just then.
        assert lost <= {LinkProblem.SILENT, LinkProblem.GONE}
        usb_board.press(0x05)
        wait_until(lambda: sum(isinstance(event, KeyPressed) for event in events) == 2)
        assert link.state is LinkState.READY


def test_two_identical_boards_are_told_apart_by_their_place(
    make_board: MakeBoard, watch: DeviceWatch, library: HidLibrary
) -> None:
    boards = [make_board(UsbNames(serial="0")) for _ in range(2)]
    for udc, board in enumerate(boards):
        board.udc = udc
        board.plug()
    found = sorted(wait_for_boards(watch, 2), key=lambda c: c.identity.location)
    assert found[0].identity != found[1].identity
    with (
        running_link(library, watch, lambda event: None, found[0].identity) as left,
        running_link(library, watch, lambda event: None, found[1].identity) as right,
    ):
        left.show(TextFrame(("left",)))
        right.show(LIT)
        wait_until(lambda: boards[1].panel() == LIT and boards[0].display_taken)
        assert boards[0].panel() != LIT
        boards[0].unplug()
        wait_until(lambda: left.problem is LinkProblem.NO_DEVICE)
        time.sleep(0.5)  # the other board is there, and must not be taken for the lost one
        assert left.state is LinkState.SEARCHING
        assert right.state is LinkState.READY
        boards[0].plug()
        assert left.wait_for(LinkState.READY, LONG_S)
        wait_until(lambda: boards[0].display_taken)


def test_a_serial_port_has_one_owner_at_a_time(
    usb_board: Board, watch: DeviceWatch, library: HidLibrary
) -> None:
    port = wait_for_port(watch).identity
    other = Link(system_opener(library, watch, port), lambda event: None, options=OPTIONS)
    with running_link(library, watch, lambda event: None, port) as link:
        other.start()
        wait_until(lambda: other.problem is LinkProblem.DEVICE_BUSY)
        assert link.state is LinkState.READY
    assert other.wait_for(LinkState.READY, LONG_S)
    assert other.stop(10)


def test_a_serial_board_comes_back_under_another_path(
    make_board: MakeBoard, watch: DeviceWatch, library: HidLibrary
) -> None:
    """Two boards swap the order in which they are plugged in, and with it /dev/ttyACM0 and 1."""
    board, other = (make_board(UsbNames(serial=serial)) for serial in ("first", "second"))
    board.udc, other.udc = 0, 1
    board.plug()
    port = wait_for_port(watch)
    with running_link(library, watch, lambda event: None, port.identity) as link:
        link.show(LIT)
        wait_until(lambda: board.panel() == LIT)
        board.unplug()
        wait_until(lambda: link.problem is LinkProblem.NO_DEVICE, LONG_S)
        other.plug()
        wait_until(lambda: any(c.path == port.path for c in watch.candidates()), LONG_S)
        board.plug()
        assert link.wait_for(LinkState.READY, LONG_S)
        wait_until(lambda: board.panel() == LIT)
        assert not other.display_taken
        paths = {
            c.identity.serial: c.path for c in watch.candidates() if c.path.startswith("/dev/tty")
        }
    assert paths["second"] == port.path != paths["first"]
