# SPDX-License-Identifier: Apache-2.0
"""The VIA app (the-via/app 077304f) in a browser, in the invented time of `shared_bus`.

What it does with reports (src/shims/node-hid.ts, src/utils/keyboard-api.ts): it takes the first report for
its answer that reaches the page in the millisecond of its write or later, and waits for ever. A report that
does not begin with the bytes of the request is an error; of the first answer, which must be that to
GET_PROTOCOL_VERSION, it reads bytes 1 and 2. What comes when it waits for nothing is forgotten with the next
write. Its function for reports that nobody asked for (16 01) is there only once the keyboard is selected, so
not at the beginning.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from dataclasses import dataclass
from random import Random

from firmware_bridge.neighbours import Sign
from tests.helpers.shared_bus import Answer, Program, Script

# Seconds, not measured. Each is a few messages between the page, the browser's process for devices and a thread
# of that. Slow browsers make the moments longer in which a report of ours can be taken.
OPENED_S = (0.0002, 0.02)  # from the open to the page that waits for it, and then writes at once
WRITES_S = (0.0001, 0.004)  # from the page's write to the kernel, and back
READS_S = (0.0001, 0.006)  # from the kernel to the page
# From the first answer to the next question: it knows the keyboard's definition, or fetches it first.
KNOWS_IT_S = (0.00005, 0.02)
FETCHES_IT_S = (0.02, 1.5)
ASKS_ON_S = (0.00005, 0.003)


@dataclass
class ViaApp(Program):
    """See the module. `wrong`: answers that were none, or said something else than the keyboard would have."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._seen: deque[tuple[int, Answer]] = deque()
        self._answer: Answer | None = None
        self._is_waiting = False
        self._page_at = 0.0

    def _run(self) -> Generator[None, None, None]:
        self.handle.open()
        self.opened_at = self.bus.now
        self.others.program, self.others.come = "chrome", Sign.OPENED
        yield from self._wait(self.bus.dice.uniform(*OPENED_S))
        for think_s, request in self.script:
            yield from self._wait(think_s)
            written_ms = int(self.bus.now * 1000)
            yield from self._wait(self.bus.dice.uniform(*WRITES_S))
            self._asked_at = self.bus.now
            self.bus.write(self, request)
            yield from self._wait(self.bus.dice.uniform(*WRITES_S))
            while self._seen and self._seen[0][0] < written_ms:
                self._seen.popleft()
            if self._seen:
                self._answer = self._seen.popleft()[1]
            self._is_waiting = self._answer is None
            while self._answer is None:
                yield
            answer, self._answer = self._answer, None
            self._judge(request, answer)
        self.handle.close()
        self.others.program = None

    def _came(self) -> None:
        """The kernel has a report; the page gets them in this order, later."""
        _, answer = self.handle.queue.popleft()
        self._page_at = max(self._page_at, self.bus.now + self.bus.dice.uniform(*READS_S))

        def see() -> None:
            if self._is_waiting:
                self._is_waiting, self._answer = False, answer
                self._advance()
            else:
                self._seen.append((int(self.bus.now * 1000), answer))

        self.bus.at(self._page_at, see)


def via_app(dice: Random, busy_s: float = 20.0) -> Script:
    """Connect and load all (src/store/devicesThunks.ts, selectConnectedDevice), then what a person does."""

    def ask(*first: bytes) -> Script:
        for request in first:
            yield dice.uniform(*ASKS_ON_S), request

    yield 0.0, b"\x01"
    yield dice.uniform(*(KNOWS_IT_S if dice.random() < 0.7 else FETCHES_IT_S)), b"\x0d"
    yield from ask(*(bytes((0x0E, 0, offset, 28)) for offset in range(0, 140, 28)))
    yield from ask(b"\x0d", b"\x0c", b"\x02\x02", b"\x02\x04")
    yield from ask(*(bytes((0x08, 3, value)) for value in range(1, 5)))
    yield from ask(b"\x01", b"\x11")
    yield from ask(*(bytes((0x12, at >> 8, at & 255, 28)) for at in range(0, 280, 28)))
    spent_s = 0.0
    while spent_s < busy_s:
        think_s = dice.choice((0.02, 0.3, dice.uniform(1, 12)))
        spent_s += think_s
        yield think_s, bytes((0x07, 3, 1, dice.randrange(256)))
        yield from ask(b"\x08\x03\x01")
        yield 0.2, b"\x02\x03"
