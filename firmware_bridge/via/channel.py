# SPDX-License-Identifier: Apache-2.0
"""Our frames inside VIA's custom values, for boards whose makers own the other way in (Keychron).

A frame's second byte is the number of our channel, so only the first byte differs: VIA's "get" instead of
E7. The CRC is that of the frame. VIA answers each request with one report and sends none by itself; key
events are fetched with POLL.
"""

from __future__ import annotations

from firmware_bridge.protocol.frames import MAGIC
from firmware_bridge.transport.wrapped import WrappedTransport
from firmware_bridge.via.protocol import THOCK_CHANNEL, Command, check_request

_COMMANDS = (Command.GET_VALUE, Command.SET_VALUE)


class ViaChannelTransport(WrappedTransport):
    """Another transport's reports, with frames put into the channel and taken out of it."""

    def read(self, timeout_s: float) -> bytes | None:
        report = self._inner.read(timeout_s)
        if report is not None and report[0] in _COMMANDS and report[1] == THOCK_CHANNEL:
            return MAGIC[:1] + report[1:]
        return report

    def write(self, report: bytes) -> None:
        """See `Transport.write`; `report` must be a frame of ours.

        Raises:
            ForbiddenRequestError: it is none.
        """
        if report.startswith(MAGIC):
            report = bytes((Command.GET_VALUE,)) + report[1:]
        check_request(report)
        self._inner.write(report)
