# SPDX-License-Identifier: Apache-2.0
"""Serial ports -> candidates. Only data ports of CircuitPython boards match by themselves.

USB ids say nothing here: unrelated boards share those of their makers. CircuitPython names its ports
(shared-module/usb_cdc/__init__.c): "CircuitPython CDC ..." is the console, "CircuitPython CDC2 ..." data.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable, Iterable
from typing import Protocol

from serial.tools import list_ports

from firmware_bridge.discovery.candidates import SERIAL, Candidate
from firmware_bridge.transport.base import DeviceIdentity

_log = logging.getLogger(__name__)

_CONSOLE = "CircuitPython CDC "
_DATA = "CircuitPython CDC2 "
_TRIES = 5


class PortInfo(Protocol):
    """What pyserial tells of a port; everything but `device` may be None."""

    device: str
    vid: int | None
    pid: int | None
    serial_number: str | None
    location: str | None
    product: str | None
    interface: str | None


def list_serial_ports() -> Iterable[PortInfo]:
    """All ports of the system.

    pyserial 3.5 tells no interface names on Windows and one for all ports on macOS
    (pyserial pull request 566); adafruit-board-toolkit does, where it is installed.
    """
    if not sys.platform.startswith("linux"):
        try:
            from adafruit_board_toolkit import (  # type: ignore[import-not-found,unused-ignore]
                circuitpython_serial,
            )
        except ImportError:
            _log.debug("adafruit-board-toolkit is not installed: CircuitPython ports have no names")
        else:
            named = {port.device: port for port in circuitpython_serial.comports()}
            return [named.get(port.device, port) for port in _comports()]
    return _comports()


def _comports() -> list[PortInfo]:
    for _ in range(_TRIES):
        # pyserial 3.5 turns what it could not read of a port that just vanished into a number
        with contextlib.suppress(TypeError):
            return list(list_ports.comports())
    return []


class SerialScan:
    """Makes candidates of what pyserial lists. Ports without USB are left out."""

    def __init__(self, ports: Callable[[], Iterable[PortInfo]] = list_serial_ports) -> None:
        self._ports = ports

    def __call__(self) -> list[Candidate]:
        return [_candidate(port) for port in self._ports() if port.vid is not None]


def _candidate(port: PortInfo) -> Candidate:
    # "1-1.2:1.2": the USB place and, after the last dot, the interface, in which the ports of one board differ
    location = port.location or ""
    interface = location.partition(":")[2].rpartition(".")[2]
    number = int(interface) if interface.isdigit() else -1
    identity = DeviceIdentity(
        SERIAL, port.vid or 0, port.pid or 0, port.serial_number or "", location, port.product or ""
    )
    name = port.interface or ""
    if name.startswith(_DATA):
        return Candidate(port.device, identity, True, "data port of a CircuitPython board", number)
    if name.startswith(_CONSOLE):
        reason = "console of a CircuitPython board; Thock needs its data port (usb_cdc.enable)"
    else:
        reason = "a serial port that does not say what it is; choose it if it is a Thock board"
    return Candidate(port.device, identity, False, reason, number)
