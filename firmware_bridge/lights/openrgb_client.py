# SPDX-License-Identifier: Apache-2.0
"""Lights of other vendors through a running OpenRGB (SDK protocol, Documentation/OpenRGBSDK.md of OpenRGB).

The protocol is spoken by the library openrgb-python, which is installed on wish (extra "openrgb"). It waits
up to 10 s for a server, reads for ever from one that closed the connection, and loses its place after a
packet that it does not know. So it gets its bytes from a socket that hands on whole packets of the kinds
that it knows, and ends the connection at a deadline.
"""

from __future__ import annotations

import copy
import importlib
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from firmware_bridge.errors import BridgeError
from firmware_bridge.lights.overlay import Rgb

ADDRESS = "127.0.0.1"
PORT = 6742
PROTOCOL_CLAMP = 4  # the newest version that openrgb-python can read
CLIENT_NAME = "Thock"

_HEADER = struct.Struct("<4sIII")
_MAGIC = b"ORGB"
_COUNT, _DATA, _VERSION, _LIST_UPDATED = 0, 1, 40, 100
_MAX_PACKET = 1 << 20  # bytes; a controller with 1,000 LEDs takes 40 KB
_MAX_CONTROLLERS = 64
# MODE_FLAG_AUTOMATIC_SAVE in OpenRGB's RGBController.h: the device writes such a mode to its flash.
_AUTOMATIC_SAVE = 1 << 9
_MODES = ("direct", "custom", "static")  # the best first


class OpenRgbError(BridgeError):
    """OpenRGB cannot be used now."""


class OpenRgbMissingError(OpenRgbError):
    """The library openrgb-python is not installed."""

    def __init__(self) -> None:
        super().__init__("The lights of OpenRGB need a library: pip install 'thock[openrgb]'.")


class PacketSocket:
    """What openrgb-python needs of a socket. Every call ends within `timeout_s`."""

    def __init__(
        self,
        connection: socket.socket,
        timeout_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connection = connection
        self._timeout_s = timeout_s
        self._clock = clock
        self._body = b""
        self.list_changed = False
        """The server said that devices came or went."""

    def send(self, data: bytes, flags: int = 0) -> int:
        """All of `data`, or an exception."""
        self._connection.settimeout(self._timeout_s)
        self._connection.sendall(data, flags)
        return len(data)

    def recv_into(self, header: bytearray) -> int:
        """The header of the next packet that the library knows.

        Raises:
            TimeoutError, ConnectionResetError: none came in time, or what came is no packet of this protocol.
        """
        deadline = self._clock() + self._timeout_s
        while True:
            head, kind = self._packet(deadline)
            if kind == _DATA or (kind in (_COUNT, _VERSION) and len(self._body) == 4):
                header[:] = head
                return len(head)

    def recv(self, size: int) -> bytes:
        """The next `size` bytes of that packet."""
        if len(self._body) < size:
            raise ConnectionResetError("the packet is shorter")
        data, self._body = self._body[:size], self._body[size:]
        return data

    def close(self) -> None:
        self._connection.close()

    def check(self) -> None:
        """Take what the server sent unasked.

        Raises:
            TimeoutError, ConnectionResetError: as `recv_into`; also if the server closed the connection.
        """
        self._connection.settimeout(0)
        try:
            ended = not self._connection.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return
        if ended:
            raise ConnectionResetError("OpenRGB closed the connection")
        self._packet(self._clock() + self._timeout_s)

    def _packet(self, deadline: float) -> tuple[bytes, int]:
        """Header and kind of the next packet, whose body waits for `recv`."""
        head = self._exactly(_HEADER.size, deadline)
        magic, _, kind, size = _HEADER.unpack(head)
        if magic != _MAGIC or size > _MAX_PACKET:
            raise ConnectionResetError("not a packet of OpenRGB's")
        self._body = self._exactly(size, deadline)
        self.list_changed |= kind == _LIST_UPDATED
        return head, kind

    def _exactly(self, size: int, deadline: float) -> bytes:
        data = bytearray()
        while len(data) < size:
            left_s = deadline - self._clock()
            if left_s <= 0:
                raise TimeoutError("OpenRGB is too slow")
            self._connection.settimeout(left_s)
            chunk = self._connection.recv(min(size - len(data), 1 << 16))
            if not chunk:
                raise ConnectionResetError("OpenRGB closed the connection")
            data += chunk
        return bytes(data)


@dataclass
class _Light:
    """One device of OpenRGB's. `before` and `mode_before` are what it showed before our first change."""

    device: Any
    mode: Any
    before: list[Any]
    mode_before: Any
    ours: bool = False


class OpenRgbClient:
    """One connection. Every method may take a few times `timeout_s`, and ends with OpenRgbError then."""

    def __init__(self, address: str = ADDRESS, port: int = PORT, timeout_s: float = 2.0) -> None:
        """Connect and learn what there is.

        Raises:
            OpenRgbMissingError, OpenRgbError: see there.
        """
        self._utils, self._orgb, network = _library()
        self._lights: list[_Light] = []
        self._comms = self._guarded(_connect, network, address, port, timeout_s, self._received)
        self._count = 0
        self._data: dict[int, Any] = {}
        try:
            self._guarded(self._learn)
        except OpenRgbError:
            self.close()
            raise

    @property
    def names(self) -> list[str]:
        """Of the devices that can show a mood."""
        return [light.device.name for light in self._lights]

    @property
    def protocol(self) -> int:
        """The version that both sides speak, 1 to 4."""
        version: int = self._comms._protocol_version
        return version

    def is_outdated(self) -> bool:
        """Whether devices came or went since; then connect anew. Does not wait."""
        if self._comms.sock is None:
            raise OpenRgbError("The connection to OpenRGB ended.")
        self._guarded(self._comms.sock.check)
        changed: bool = self._comms.sock.list_changed
        return changed

    def show(self, colour: Rgb) -> None:
        """Show `colour` on all devices."""
        for light in self._lights:
            self._guarded(self._show, light, colour)

    def give_back(self) -> None:
        """Set back what the devices showed before."""
        for light in self._lights:
            if light.ours:
                self._guarded(self._restore, light)

    def close(self) -> None:
        self._comms.stop_connection()

    def _received(self, device: int, kind: int, data: Any) -> None:
        """The library's callback."""
        if kind == _COUNT:
            self._count = data
        elif kind == _DATA:
            self._data[device] = data

    def _learn(self) -> None:
        self._comms.requestDeviceNum()
        if self._count > _MAX_CONTROLLERS:
            raise OpenRgbError(f"OpenRGB tells of {self._count} devices.")
        for number in range(self._count):
            self._comms.requestDeviceData(number)
        for number, data in sorted(self._data.items()):
            mode = self._mode_for_moods(data)
            if mode is None or not data.leds:
                continue
            device = self._orgb.Device(data, number, self._comms)
            before = copy.deepcopy(data.modes[data.active_mode])
            self._lights.append(_Light(device, mode, list(data.colors), before))

    def _mode_for_moods(self, data: Any) -> Any | None:
        """A mode that takes a colour and is not written to the device's flash."""
        colour_modes = (self._utils.ModeColors.PER_LED, self._utils.ModeColors.MODE_SPECIFIC)
        by_name = {
            mode.name.lower(): mode
            for mode in data.modes
            if mode.color_mode in colour_modes and not mode.flags & _AUTOMATIC_SAVE
        }
        return next((by_name[name] for name in _MODES if name in by_name), None)

    def _show(self, light: _Light, colour: Rgb) -> None:
        rgb = self._utils.RGBColor(colour.red, colour.green, colour.blue)
        light.ours = True
        if light.mode.color_mode == self._utils.ModeColors.MODE_SPECIFIC:
            light.mode.colors = [rgb] * max(light.mode.colors_min or 1, 1)
            self._set_mode(light.device, light.mode)
            return
        if light.device.active_mode != light.mode.id:
            self._set_mode(light.device, light.mode)
        light.device.set_color(rgb, fast=True)

    def _restore(self, light: _Light) -> None:
        self._set_mode(light.device, light.mode_before)
        if light.mode_before.color_mode == self._utils.ModeColors.PER_LED:
            light.device.set_colors(light.before, fast=True)
        light.ours = False

    def _set_mode(self, device: Any, mode: Any) -> None:
        """As `Device.set_mode` of the library, without its five questions whether it was done."""
        data = mode.pack(self._comms._protocol_version)
        kind = self._utils.PacketType.RGBCONTROLLER_UPDATEMODE
        self._comms.send_header(device.id, kind, len(data))
        self._comms.send_data(data)
        device.active_mode = mode.id

    def _guarded(self, work: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return work(*arguments)
        except OpenRgbError:
            raise
        except ConnectionRefusedError:
            raise OpenRgbError("OpenRGB is not running, or its SDK server is off.") from None
        except Exception as error:  # the library's border: bad data make it raise anything
            raise OpenRgbError(f"OpenRGB cannot be used: {type(error).__name__}.") from error


def _library() -> tuple[Any, Any, Any]:
    try:
        return (
            importlib.import_module("openrgb.utils"),
            importlib.import_module("openrgb.orgb"),
            importlib.import_module("openrgb.network"),
        )
    except ImportError:
        raise OpenRgbMissingError from None


def _connect(
    network: Any, address: str, port: int, timeout_s: float, received: Callable[..., None]
) -> Any:
    """openrgb-python's connection on a PacketSocket, after the handshake."""

    class Client(network.NetworkClient):  # type: ignore[misc]
        def start_connection(self) -> None:
            kinds = network.utils.PacketType
            connection = socket.create_connection((self.address, self.port), timeout_s)
            self.sock = PacketSocket(connection, timeout_s)
            try:
                self.send_header(0, kinds.REQUEST_PROTOCOL_VERSION, 4)
                self.send_data(struct.pack("<I", self._protocol_version), False)
                self.read()
                name = CLIENT_NAME.encode("ascii") + b"\0"
                self.send_header(0, kinds.SET_CLIENT_NAME, len(name))
                self.send_data(name)
            except BaseException:
                connection.close()
                raise

    return Client(received, address, port, CLIENT_NAME, PROTOCOL_CLAMP)
