# SPDX-License-Identifier: Apache-2.0
"""The firmware core as boards have it that send events as answers only (THOCK_ENABLE_POLL).

The core of the virtual keyboard is built without that; what it sends by itself waits here until it is
asked for, which is what thock_take_events does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace

from firmware_bridge.errors import FrameError
from firmware_bridge.firmware.virtual_core import BoardConfig, FirmwareCore
from firmware_bridge.protocol.capabilities import Feature
from firmware_bridge.protocol.frames import Frame, FrameType, decode, encode
from firmware_bridge.protocol.messages import Ack, Caps


class PolledCore:
    def __init__(self, config: BoardConfig, send: Callable[[bytes], bool]) -> None:
        self.core = FirmwareCore(config, self._take)
        self._length = config.report_length
        self._send = send
        self._waiting: deque[Frame] = deque()

    def receive(self, report: bytes, now_ms: int) -> bool:
        """As `FirmwareCore.receive`."""
        try:
            frame = decode(report)
        except FrameError:
            return False
        self.core.task(now_ms)
        if not self.core.subscribed:
            self._waiting.clear()  # the ring is that of a subscription
        if frame.type is not FrameType.POLL or not self.core.subscribed:
            return self.core.receive(report, now_ms)
        if self._waiting:
            answer = replace(self._waiting.popleft(), seq=frame.seq)
        else:
            answer = Frame(FrameType.ACK, frame.client, frame.seq, Ack(FrameType.POLL).pack())
        return self._send(encode(answer, self._length))

    def _take(self, report: bytes) -> bool:
        frame = decode(report)
        if frame.type is FrameType.KEY:
            self._waiting.append(frame)
            return True
        if frame.type is FrameType.CAPS and len(frame.payload) == 24:
            caps = Caps.unpack(frame.payload)
            board = replace(caps.capabilities, features=caps.capabilities.features | Feature.POLL)
            frame = replace(frame, payload=Caps(caps.proof, board).pack())
        return self._send(encode(frame, self._length))
