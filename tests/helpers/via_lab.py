# SPDX-License-Identifier: Apache-2.0
"""Conversations with scripted keyboards, without waiting."""

from __future__ import annotations

from dataclasses import dataclass, field

from firmware_bridge.transport.base import DeviceIdentity
from firmware_bridge.via.conversation import Conversation
from firmware_bridge.via.find_board import FoundBoard, find_board
from tests.helpers.transports import ScriptedTransport
from tests.helpers.via_peers import Peer

ANSWER_S = 0.02  # scripted keyboards answer at once or never


class PromptTransport(ScriptedTransport):
    """Its answers are there at once, so that looking for old reports need not take time."""

    def read(self, timeout_s: float) -> bytes | None:
        if timeout_s <= 0.001 and not self._queue:
            return None
        return super().read(timeout_s)


def transport_of(peer: Peer, location: str = "usb-1") -> ScriptedTransport:
    transport = PromptTransport(peer)
    transport.identity = DeviceIdentity("hid", 0xFEED, 1, peer.serial, location)
    return transport


@dataclass
class ViaLab:
    """One keyboard and our end of the talk; `slept` are the waits that the code asked for, in seconds."""

    peer: Peer
    slept: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.transport = transport_of(self.peer)
        self.conversation = Conversation(self.transport, answer_s=ANSWER_S)

    def find(self) -> FoundBoard:
        return find_board(self.conversation, self.transport.identity, self.slept.append)

    @property
    def requests(self) -> list[bytes]:
        return self.peer.writes
