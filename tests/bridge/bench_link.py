# SPDX-License-Identifier: Apache-2.0
"""How soon output goes out on the virtual keyboard: `python -m tests.bridge.bench_link`.

`woken` is the virtual transport; `polled` cannot be woken, like hidapi, and is measured right after a
key, when a trigger comes. Every update follows 60 ms of rest, so caches are cold as in real use.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from firmware_bridge.display.frame import TextFrame
from firmware_bridge.link import Link
from firmware_bridge.link_state import LinkState
from firmware_bridge.transport.base import Transport
from firmware_bridge.transport.virtual import VirtualKeyboard, VirtualTransport
from tests.helpers.transports import DeafTransport

UPDATES = 300
REST_S = 0.06
IDLE_S = 3.0


def measure(name: str, keyboard: VirtualKeyboard, open_transport: Callable[[], Transport]) -> None:
    link = Link(open_transport, lambda event: None)
    link.start()
    link.wait_for(LinkState.READY, 5)
    firsts, wholes = [], []
    for i in range(UPDATES):
        time.sleep(REST_S)
        keyboard.press(4)
        time.sleep(0.002)
        link.show(TextFrame((f"update {i}", "of two rows")))
        time.sleep(0.02)
        firsts.append(link.stats.first_report_s * 1e6)
        wholes.append(link.stats.shown_s * 1e6)
    time.sleep(3.0)
    cpu, start = time.process_time(), time.monotonic()
    time.sleep(IDLE_S)
    idle = (time.process_time() - cpu) / (time.monotonic() - start)
    link.stop()
    for what, samples in (("first report", firsts), ("whole update", wholes)):
        cuts = statistics.quantiles(samples, n=100)
        print(
            f"{name:<8}{what:<14}p50 {cuts[49]:6.0f} us  p90 {cuts[89]:6.0f}  p99 {cuts[98]:6.0f}"
        )
    print(f"{name:<8}idle          {idle:.2%} of one processor")


def main() -> None:
    keyboard = VirtualKeyboard()
    measure("woken", keyboard, lambda: VirtualTransport(keyboard))
    measure("polled", keyboard, lambda: DeafTransport(VirtualTransport(keyboard)))


if __name__ == "__main__":
    main()
