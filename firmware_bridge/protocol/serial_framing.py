# SPDX-License-Identifier: Apache-2.0
"""Reports in a byte stream (docs/PROTOCOL.md, "Serial").

A packet is AB, the report and its CRC with AB, AC and AD escaped, then AD. AB stands nowhere else, so a
reader is back in step at the next packet, whatever came before: boot messages, an interpreter's output,
half a packet.
"""

from __future__ import annotations

from firmware_bridge.protocol.frames import checksum

START = 0xAB
ESCAPE = 0xAC
END = 0xAD
_TOGGLE = 0x20
_SPECIAL = frozenset((START, ESCAPE, END))
_CRC_BYTES = 2


def encode_report(report: bytes) -> bytes:
    """The packet of a report, at most 2 * (length + 2) + 2 bytes."""
    packet = bytearray((START,))
    for byte in report + checksum(report).to_bytes(_CRC_BYTES, "little"):
        if byte in _SPECIAL:
            packet += bytes((ESCAPE, byte ^ _TOGGLE))
        else:
            packet.append(byte)
    packet.append(END)
    return bytes(packet)


class FrameReader:
    """Finds the reports in a stream that comes in pieces. Keeps at most one report in memory.

    A packet that holds another number of bytes than `report_length`, a wrong CRC or a wrong escape
    is skipped and counted in `skipped`.
    """

    def __init__(self, report_length: int) -> None:
        self._length = report_length
        self._body: bytearray | None = None  # None: between packets
        self._escaped = False
        self.skipped = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The reports that are complete with these bytes, in order."""
        reports = []
        for byte in data:
            report = self._take(byte)
            if report is not None:
                reports.append(report)
        return reports

    def _take(self, byte: int) -> bytes | None:
        if byte == START:
            if self._body is not None:
                self.skipped += 1
            self._body = bytearray()
            self._escaped = False
        elif self._body is None:
            pass
        elif byte == END:
            return self._finish()
        elif self._escaped and byte ^ _TOGGLE not in _SPECIAL:
            self._skip()
        elif byte == ESCAPE:
            self._escaped = True
        elif len(self._body) == self._length + _CRC_BYTES:
            self._skip()
        else:
            self._body.append(byte ^ _TOGGLE if self._escaped else byte)
            self._escaped = False
        return None

    def _finish(self) -> bytes | None:
        body = bytes(self._body or b"")
        report, crc = body[:-_CRC_BYTES], body[-_CRC_BYTES:]
        whole = not self._escaped and len(body) == self._length + _CRC_BYTES
        if not whole or int.from_bytes(crc, "little") != checksum(report):
            self._skip()
            return None
        self._body = None
        return report

    def _skip(self) -> None:
        self._body = None
        self.skipped += 1
