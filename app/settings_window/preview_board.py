# SPDX-License-Identifier: Apache-2.0
"""What the connected keyboard shows, drawn by the firmware's own code.

A board with the shape of the real one gets the same frames over the same protocol, so its panel holds the
same bits as the real one's. It has no device, no thread and no clock but the one that is counted here.
"""

from __future__ import annotations

import itertools

from app.settings_window.ports import BoardShape, Preview
from firmware_bridge.display.frame import BitmapFrame
from firmware_bridge.firmware.virtual_core import BoardConfig, FirmwareCore
from firmware_bridge.lights.overlay import Rgb
from firmware_bridge.link_output import Output
from firmware_bridge.link_session import Session
from firmware_bridge.link_state import LinkOptions, LinkStats, SessionIds

_REPORT_LENGTH = 64  # the longest, so that a picture takes the fewest frames
_OPTIONS = LinkOptions(
    text_interval_s=0, bitmap_interval_s=0, lights_interval_s=0, status_interval_s=0
)


class PreviewBoard:
    """A panel and LEDs to look at. Owned by one thread; no method waits.

    Raises (by the constructor):
        ValueError: the panel or the number of LEDs is larger than the firmware core allows.
    """

    def __init__(self, shape: BoardShape) -> None:
        self.shape = shape
        self._answers: list[bytes] = []
        self._core = FirmwareCore(
            BoardConfig(
                report_length=_REPORT_LENGTH,
                panel_width=shape.width,
                panel_height=shape.height,
                led_count=shape.led_count,
            ),
            self._answer,
        )
        self._output = Output(_OPTIONS)
        self._now = 0.0
        self._session = Session(
            _REPORT_LENGTH, SessionIds(client=1, nonce=0), itertools.count(), self._output,
            _OPTIONS, LinkStats(), lambda: self._now,
        )  # fmt: skip
        self._exchange()

    def show(self, preview: Preview) -> None:
        """Take over what the real keyboard was given.

        Raises:
            ValueError: a picture for a board of another shape.
        """
        if preview.board != self.shape:
            raise ValueError("the preview is of a keyboard of another shape")
        self._output.show(preview.display, self._now)
        self._output.status.want(preview.status, self._now)
        self._output.lights.want(preview.lights, self._now)
        self._exchange()

    def picture(self) -> BitmapFrame:
        """The panel."""
        return self._core.picture()

    def leds(self, now_ms: int) -> tuple[Rgb | None, ...]:
        """The LEDs at a time of the firmware's clock; None where the board's own lighting shows."""
        return self._core.led_colors(now_ms)

    def _exchange(self) -> None:
        """Let both ends talk until nothing is left to say."""
        while True:
            report = self._session.next_report(self._now)
            if report is None and self._session.ready:
                return
            if report is not None:
                self._core.receive(report, int(self._now * 1000))
                self._session.written(self._now)
            while self._answers:
                self._session.take(self._answers.pop(0), self._now)

    def _answer(self, report: bytes) -> bool:
        self._answers.append(report)
        return True
