# SPDX-License-Identifier: Apache-2.0
"""Asks an unknown device what it is, in requests that no known firmware can misunderstand.

First VIA's question for its protocol version (01), and only where the usage and 32-byte reports say that
the device is such a keyboard; whoever answers it with anything but VIA is not asked further. Then our
HELLO, whose answer must be computed: other firmware returns unknown requests as they are, or marked FF.
VIA that marks it may have the module behind its custom values (Keychron boards), so it is asked there: a
"get" (08) of a channel that no other firmware is known to have.
No other request is ever sent here: not 05, 06, 09, 0A, 0B, 0F or 10 of VIA (keymaps, EEPROM, bootloader).
"""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from firmware_bridge.discovery.candidates import SERIAL, is_vial
from firmware_bridge.errors import DeviceBusyError, FrameError
from firmware_bridge.link_state import SessionIdSource, random_session_ids
from firmware_bridge.neighbours import UNKNOWN_PROGRAM, Others, QuietTimes
from firmware_bridge.protocol.capabilities import Capabilities
from firmware_bridge.protocol.frames import (
    MAGIC,
    PROTOCOL_VERSION,
    Frame,
    FrameType,
    decode,
    encode,
)
from firmware_bridge.protocol.messages import NONCE_TRANSFORM, Caps, Hello, Nak
from firmware_bridge.texts import Text, as_text
from firmware_bridge.transport.base import Transport
from firmware_bridge.via.channel import ViaChannelTransport
from firmware_bridge.via.protocol import CHANNELS_SINCE, UNHANDLED, VIA_VERSIONS, Command

_VIA_REPORT_BYTES = 32

_ANSWER_S = 0.25  # ChibiOS boards answer in 1 ms, V-USB boards in 10 ms
_HELLO_TRIES = 3
_DRAIN_REPORTS = 64  # what a system keeps per handle


class Tier(enum.Enum):
    """What can be done with a device."""

    MODULE = "A"  # the Thock module in a HID keyboard: keys, display, lights
    LIGHTS = "B"  # VIA or Vial without the module: lights of the whole board at most
    SERIAL = "C"  # the Thock module behind a serial port
    NONE = "none"


class Finding(enum.Enum):
    """Why a device is in its tier."""

    MODULE = "it has the Thock module"
    NO_MODULE = "its firmware has no Thock module"
    ECHO = "it returns every request unchanged"
    FOREIGN = "its firmware speaks another language on this interface"
    SILENT = "it does not answer"
    NOT_ASKED = "it is on the caution list, so it was not asked for the Thock module"


@dataclass(frozen=True, slots=True)
class Verdict:
    """`via_version` is None where VIA did not answer or was not asked.

    `capabilities` is None where the module did not answer, or speaks another version of the protocol.
    """

    tier: Tier
    finding: Finding
    via_version: int | None = None
    is_vial: bool = False
    capabilities: Capabilities | None = None
    via_channel: bool = False  # the module is behind VIA's custom values: use `ViaChannelTransport`

    @property
    def reason(self) -> str:
        """For the person."""
        if self.via_version is None or self.finding is Finding.MODULE:
            return as_text(self.finding.value)
        name = "Vial" if self.is_vial else "VIA"
        return Text(
            "{finding} ({name}, protocol {via_version})",
            finding=as_text(self.finding.value),
            name=name,
            via_version=self.via_version,
        )

    @property
    def is_final(self) -> bool:
        """False where the same device may answer differently a moment later, without being plugged anew.

        Vial echoes everything while it is being unlocked; a controller that starts up is silent.
        """
        return self.finding not in (Finding.SILENT, Finding.ECHO)


def detect(
    transport: Transport,
    *,
    via_first: bool = True,
    hello_allowed: bool = True,
    insist: bool = False,
    ids: SessionIdSource | None = None,
    others: Others | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Verdict:
    """What the device behind `transport` (open) is. Takes 0.01 s where it answers, 1 s at most.

    `via_first` may be left out only for a board that had the module before. `insist`: the person chose the
    device, so ask for the module also if VIA's question is answered in another language. `others` tells of
    programs that have it open; nothing is asked while they do, and no further question when they come.

    Raises:
        DeviceBusyError: another program has it open, or talks to it.
        DeviceGoneError: it went away.
    """
    quiet = QuietTimes(others=others)
    interview = _Interview(transport, ids or random_session_ids(), quiet, clock)
    return interview.hold(via_first, hello_allowed, insist)


class _Interview:
    def __init__(
        self,
        transport: Transport,
        ids: SessionIdSource,
        quiet: QuietTimes,
        clock: Callable[[], float],
    ) -> None:
        self._transport = transport
        self._ids = ids()
        self._quiet = quiet
        self._clock = clock
        self._is_vial = is_vial(transport.identity)
        self._is_foreign = False  # its answers to us are not to be told from answers to others

    def hold(self, via_first: bool, hello_allowed: bool, insist: bool) -> Verdict:
        transport = self._transport
        for _ in range(_DRAIN_REPORTS):
            if (report := transport.read(0.001)) is None:
                break
            self._overhear(report)
        is_serial = transport.identity.transport == SERIAL
        version: int | None = None
        if via_first and not is_serial and transport.report_length == _VIA_REPORT_BYTES:
            answer = self._ask_via()
            if isinstance(answer, Finding):
                self._is_foreign = answer is Finding.FOREIGN
                if answer is not Finding.SILENT and not (self._is_foreign and insist):
                    return Verdict(Tier.NONE, answer, is_vial=self._is_vial)
            else:
                version = answer
        without = Tier.NONE if version is None else Tier.LIGHTS
        if not hello_allowed:
            return Verdict(without, Finding.NOT_ASKED, version, self._is_vial)
        found, capabilities = self._say_hello(transport)
        has_channels = version >= CHANNELS_SINCE if version is not None else not via_first
        is_via = not is_serial and transport.report_length == _VIA_REPORT_BYTES
        if found is Finding.NO_MODULE and has_channels and is_via:
            found, capabilities = self._say_hello(ViaChannelTransport(transport))
            if found is Finding.MODULE:
                return Verdict(Tier.MODULE, found, version, self._is_vial, capabilities, True)
            found = Finding.NO_MODULE
        if found is Finding.MODULE:
            tier = Tier.SERIAL if is_serial else Tier.MODULE
            return Verdict(tier, found, version, self._is_vial, capabilities)
        if version is not None:  # whatever came back, it is VIA that did not know our request
            found = Finding.NO_MODULE
        return Verdict(
            without, Finding.FOREIGN if self._is_foreign else found, version, self._is_vial
        )

    def _ask_via(self) -> int | Finding:
        """VIA's protocol version, or what came instead.

        Answers to other programs come here too, so the right one may be preceded by any others.
        """
        request = bytes((Command.GET_VERSION,)).ljust(_VIA_REPORT_BYTES, b"\0")
        finding = Finding.SILENT
        self._write(self._transport, request)
        for report in self._answers(self._transport):
            if report[0] == Command.GET_VERSION:
                version = int.from_bytes(report[1:3], "big")
                if version in VIA_VERSIONS:
                    return version
                finding = Finding.ECHO if report == request else Finding.FOREIGN
            else:
                if report[:2] != MAGIC and finding is Finding.SILENT:
                    finding = Finding.FOREIGN
                self._overhear(report)
        return finding

    def _say_hello(self, transport: Transport) -> tuple[Finding, Capabilities | None]:
        for seq in range(_HELLO_TRIES):
            hello = Hello(self._ids.nonce, PROTOCOL_VERSION, PROTOCOL_VERSION)
            frame = Frame(FrameType.HELLO, self._ids.client, seq, hello.pack())
            request = encode(frame, transport.report_length)
            self._write(transport, request)
            is_echo = False
            for report in self._answers(transport):
                if report == request:
                    is_echo = True  # of a device that may still answer, if the link echoes
                elif report[0] == UNHANDLED and report[1:] == request[1:]:
                    return Finding.NO_MODULE, None
                elif (answer := self._answer_in(report)) is not None:
                    return Finding.MODULE, answer.capabilities if isinstance(answer, Caps) else None
                else:
                    self._overhear(report)
            if is_echo:
                return Finding.ECHO, None
        return Finding.SILENT, None

    def _write(self, transport: Transport, request: bytes) -> None:
        """Write as soon as it disturbs nobody."""
        while True:
            if self._quiet.look(self._clock()):
                raise self._in_use()
            wait_s = self._quiet.silent_until - self._clock()
            if wait_s <= 0:
                break
            if (report := transport.read(wait_s)) is not None:
                self._overhear(report)
        transport.write(request)

    def _overhear(self, report: bytes) -> None:
        """A report that answers no question of ours."""
        if not self._is_foreign and self._quiet.notice(report, self._clock()):
            raise self._in_use()

    def _in_use(self) -> DeviceBusyError:
        program = self._quiet.program or UNKNOWN_PROGRAM
        return DeviceBusyError(
            Text("{program} is using the keyboard.", program=program),
            "Close it: answers to Thock would reach it too. Thock looks again by itself.",
        )

    def _answer_in(self, report: bytes) -> Caps | Nak | None:
        """The module's answer to our HELLO, if `report` is one. NAK: we have no version in common."""
        try:
            frame = decode(report)
            if frame.client != self._ids.client:
                return None
            if frame.type is FrameType.NAK:
                nak = Nak.unpack(frame.payload)
                return nak if nak.refused == FrameType.HELLO else None
            caps = Caps.unpack(frame.payload) if frame.type is FrameType.CAPS else None
        except FrameError:
            return None
        return caps if caps and caps.proof == self._ids.nonce ^ NONCE_TRANSFORM else None

    def _answers(self, transport: Transport) -> Iterator[bytes]:
        """Every report that comes within the time for an answer."""
        end = self._clock() + _ANSWER_S
        while (left_s := end - self._clock()) > 0:
            report = transport.read(left_s)
            if report is not None:
                yield report
