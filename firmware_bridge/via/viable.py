# SPDX-License-Identifier: Apache-2.0
"""Client ids of Viable boards: every answer says to whom it goes (CLIENT_ID_PROTOCOL.md of viable-kb/qmk).

No clock is kept: an id is used until the board calls it invalid, then a new one is asked for.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

from firmware_bridge.errors import BridgeError
from firmware_bridge.transport.base import DeviceIdentity
from firmware_bridge.via.protocol import (
    VIABLE_BOOTSTRAP,
    VIABLE_ERROR,
    VIABLE_HEAD,
    VIABLE_VIA,
    Command,
)

_SERIAL = "viable:"
_NONCE_BYTES = 20
_NO_ID = 0xFFFFFFFF
_INVALID_ID = 1


def is_viable(identity: DeviceIdentity) -> bool:
    """Whether the serial number says that the firmware is Viable."""
    return identity.serial.startswith(_SERIAL)


class ClientIdInvalidError(BridgeError):
    """The board does not know our client id any more."""


class ViableError(BridgeError):
    """The board refused: no id is left, or it does not pass VIA on."""


class ClientId:
    """Our id on one board: puts requests into its frame and takes answers out of it."""

    def __init__(self, random_bytes: Callable[[int], bytes] = secrets.token_bytes) -> None:
        self._random_bytes = random_bytes
        self._nonce = b""
        self._id: bytes | None = None

    @property
    def is_known(self) -> bool:
        return self._id is not None

    def bootstrap(self) -> bytes:
        """The request for a new id."""
        self._id = None
        self._nonce = self._random_bytes(_NONCE_BYTES)
        return VIABLE_BOOTSTRAP + self._nonce

    def is_answer_to_bootstrap(self, report: bytes) -> bool:
        return report.startswith(VIABLE_BOOTSTRAP + self._nonce)

    def take(self, report: bytes) -> None:
        """Keep the id that an answer to `bootstrap` brings.

        Raises:
            ViableError: there is none, or the board only echoes.
        """
        start = len(VIABLE_BOOTSTRAP) + _NONCE_BYTES
        number = report[start : start + 4]
        if int.from_bytes(number, "little") in (0, _NO_ID):
            raise ViableError("the keyboard gave no client id")
        self._id = number

    def wrap(self, request: bytes, report_length: int) -> bytes:
        """The report that carries `request`.

        Raises:
            ValueError: it has more than 26 bytes (in a report of 32).
        """
        assert self._id is not None
        report = bytes((Command.CLIENT,)) + self._id + bytes((VIABLE_VIA,)) + request
        if len(report) > report_length:
            raise ValueError(f"a request of {len(request)} bytes does not fit")
        return report

    def unwrap(self, report: bytes) -> bytes | None:
        """VIA's answer in `report`, filled up with zeros; None if it is for somebody else.

        Raises:
            ClientIdInvalidError: ask for a new id and repeat the request.
            ViableError: the board does not pass VIA on.
        """
        if self._id is None or report[:5] != bytes((Command.CLIENT,)) + self._id:
            return None
        if report[5] == VIABLE_ERROR:
            if report[6] == _INVALID_ID:
                raise ClientIdInvalidError("the client id has run out")
            raise ViableError(f"the keyboard refused with error {report[6]}")
        return report[VIABLE_HEAD:].ljust(len(report), b"\0")
