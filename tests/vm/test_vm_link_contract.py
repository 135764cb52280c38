# SPDX-License-Identifier: Apache-2.0
"""The link contract on hidraw and on CDC-ACM, found and opened by discovery."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

import tests.contract.test_link_contract as contract
from firmware_bridge.discovery.system import system_opener
from firmware_bridge.discovery.watch import DeviceWatch
from firmware_bridge.transport.hid_library import HidLibrary
from tests.contract.test_link_contract import *  # noqa: F403
from tests.contract.test_link_contract import Desk
from tests.vm.conftest import MakeBoard
from tests.vm.desk import LONG_S, OPTIONS, wait_for_port
from tests.vm.ports import UsbNames


@pytest.fixture(autouse=True)
def _time_to_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    options = replace(contract.OPTIONS, answer_timeout_s=OPTIONS.answer_timeout_s)
    monkeypatch.setattr(contract, "OPTIONS", options)


@pytest.fixture(params=["uhid", "serial"])  # type: ignore[no-redef]
def desk(
    request: pytest.FixtureRequest, make_board: MakeBoard, watch: DeviceWatch, library: HidLibrary
) -> Iterator[Desk]:
    if request.param == "serial" and "second_program" in request.node.name:
        pytest.skip("a serial port has one owner: tests/vm/test_vm_links.py")
    board = make_board(UsbNames(serial=f"link {request.param}"))
    board.udc = None if request.param == "uhid" else 0
    board.plug()
    selected = wait_for_port(watch).identity if request.param == "serial" else None
    desk = Desk(board, system_opener(library, watch, selected))  # type: ignore[arg-type]
    yield desk
    assert desk.link.stop(LONG_S)
