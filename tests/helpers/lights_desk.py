# SPDX-License-Identifier: Apache-2.0
"""Stock lights on a scripted keyboard that can be unplugged and overheard."""

from __future__ import annotations

from collections.abc import Callable

from firmware_bridge.errors import DeviceGoneError
from firmware_bridge.events import BridgeEvent
from firmware_bridge.neighbours import Others
from firmware_bridge.transport.base import Transport
from firmware_bridge.via.baseline import BaselineStore
from firmware_bridge.via.stock_lights import StockLights, StockLightsOptions
from tests.helpers.transports import ScriptedTransport
from tests.helpers.via_lab import ANSWER_S, transport_of
from tests.helpers.via_peers import Peer, ViaBoard

QUICK = StockLightsOptions(
    mood_interval_s=0.05, answer_s=ANSWER_S, unlock_check_s=0.03, search_s=0.02,
    backoff_first_s=0.02, backoff_limit_s=0.05,
)  # fmt: skip


class LightsDesk:
    """A keyboard that can be unplugged, and lights on it."""

    def __init__(self, peer: Peer, store: BaselineStore) -> None:
        self.peer = peer
        self.store = store
        self.plugged = True
        self.transports: list[ScriptedTransport] = []
        self.events: list[BridgeEvent] = []
        self.asleep = 0.0
        self.wrap: Callable[[ScriptedTransport], Transport] = lambda transport: transport
        self.all: list[StockLights] = []

    def lights(
        self,
        options: StockLightsOptions = QUICK,
        others: Others | None = None,
    ) -> StockLights:
        lights = StockLights(
            self._open, self.events.append, self.store, options=options, sleep=lambda seconds: None,
            sleep_clock=lambda: self.asleep, others=others,
        )  # fmt: skip
        self.all.append(lights)
        lights.start()
        return lights

    def overhear(self, *reports: bytes) -> None:
        """Answers to another program."""
        transport = self.transports[-1]
        with transport._changed:
            transport._queue.extend(report.ljust(32, b"\0") for report in reports)
            transport._changed.notify_all()

    def hue(self) -> int:
        assert isinstance(self.peer, ViaBoard)
        return self.peer.lights[3].hue

    def _open(self) -> Transport:
        if not self.plugged:
            raise DeviceGoneError("unplugged")
        transport = transport_of(self.peer)
        self.transports.append(transport)
        return self.wrap(transport)
