# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
# mypy: ignore-errors
"""Frames and serial packets of docs/PROTOCOL.md, for CircuitPython: little memory, nothing imported."""

REPORT_BYTES = 32
HEAD_BYTES = 6
PAYLOAD_BYTES = REPORT_BYTES - HEAD_BYTES - 2

_START = 0xAB
_ESCAPE = 0xAC
_END = 0xAD
_TOGGLE = 0x20
_BODY_BYTES = REPORT_BYTES + 2


def crc16(data, count, crc=0xFFFF):
    """CRC-16/CCITT-FALSE over the first `count` bytes; `crc` continues an earlier one."""
    for i in range(count):
        x = (crc >> 8) ^ data[i]
        x ^= x >> 4
        crc = ((crc << 8) ^ (x << 12) ^ (x << 5) ^ x) & 0xFFFF
    return crc


def make_report(kind, client, seq, payload):
    """A frame of its own (first and last of its group) from the keyboard."""
    report = bytearray(REPORT_BYTES)
    report[0] = 0xE7
    report[1] = 0x4C
    report[2] = 0x10 | kind
    report[3] = client
    report[4] = seq
    report[5] = 0xC0 | len(payload)
    report[HEAD_BYTES : HEAD_BYTES + len(payload)] = payload
    crc = crc16(report, REPORT_BYTES - 2)
    report[REPORT_BYTES - 2] = crc & 0xFF
    report[REPORT_BYTES - 1] = crc >> 8
    return report


def is_frame(report):
    """Magic, length and checksum are right."""
    if report[0] != 0xE7 or report[1] != 0x4C or report[5] & 0x3F > PAYLOAD_BYTES:
        return False
    crc = report[REPORT_BYTES - 2] | report[REPORT_BYTES - 1] << 8
    return crc16(report, REPORT_BYTES - 2) == crc


def make_packet(report):
    """The bytes that carry a report over the serial port."""
    crc = crc16(report, REPORT_BYTES)
    packet = bytearray((_START,))
    for byte in bytes(report) + bytes((crc & 0xFF, crc >> 8)):
        if byte in (_START, _ESCAPE, _END):
            packet.append(_ESCAPE)
            byte ^= _TOGGLE
        packet.append(byte)
    packet.append(_END)
    return packet


class PacketReader:
    """Finds reports among the bytes of a port; whatever else comes is skipped."""

    def __init__(self):
        self.body = bytearray(_BODY_BYTES)
        self.reset()

    def reset(self):
        self._count = -1  # -1: between packets
        self._escaped = False

    def take(self, byte):
        """True: `body` begins with a whole report, until the next byte comes."""
        if byte == _START:
            self._count = 0
            self._escaped = False
        elif self._count < 0:
            pass
        elif byte == _END:
            whole = self._count == _BODY_BYTES and not self._escaped
            self._count = -1
            body = self.body
            crc = body[REPORT_BYTES] | body[REPORT_BYTES + 1] << 8
            return whole and crc16(body, REPORT_BYTES) == crc
        elif self._escaped:
            if byte ^ _TOGGLE in (_START, _ESCAPE, _END):
                self._put(byte ^ _TOGGLE)
            else:
                self._count = -1
        elif byte == _ESCAPE:
            self._escaped = True
        else:
            self._put(byte)
        return False

    def _put(self, byte):
        if self._count == _BODY_BYTES:
            self._count = -1
            return
        self.body[self._count] = byte
        self._count += 1
        self._escaped = False
