# SPDX-License-Identifier: Apache-2.0
"""The transport contract on hidraw (uhid and a composite USB device) and on the CDC-ACM port of the latter."""

from __future__ import annotations

import pytest

from firmware_bridge.discovery.watch import DeviceWatch
from firmware_bridge.transport.hid_library import HidLibrary
from tests.contract.test_transport_contract import *  # noqa: F403
from tests.contract.test_transport_contract import Rig
from tests.vm.conftest import MakeBoard
from tests.vm.desk import hid_transport, serial_transport, wait_for_boards, wait_for_port
from tests.vm.ports import UsbNames


@pytest.fixture(params=["uhid", "usb", "serial"])  # type: ignore[no-redef]
def rig(
    request: pytest.FixtureRequest, make_board: MakeBoard, watch: DeviceWatch, library: HidLibrary
) -> Rig:
    board = make_board(UsbNames(serial=f"contract {request.param}"))
    board.udc = None if request.param == "uhid" else 0
    board.plug()
    if request.param == "serial":
        return Rig(serial_transport(wait_for_port(watch)), board.unplug)
    return Rig(hid_transport(library, wait_for_boards(watch, 1)[0]), board.unplug)
