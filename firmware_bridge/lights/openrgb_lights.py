# SPDX-License-Identifier: Apache-2.0
"""Moods on lights of other vendors, as an option: the light side of `Link`'s port over OpenRGB.

OpenRGB is another program on this computer and may hang, so only this thread ever waits for it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from firmware_bridge.io_thread import IoThread
from firmware_bridge.lights.openrgb_client import OpenRgbClient, OpenRgbError, OpenRgbMissingError
from firmware_bridge.lights.overlay import LightOverlay, Rgb
from firmware_bridge.link_state import LinkProblem, LinkState, described

_log = logging.getLogger(__name__)

_MOOD_INTERVAL_S = 1.0  # as on keyboards: no mood can flash
_RETRY_S = 10.0  # OpenRGB may be started at any time
_CHECK_S = 1.0  # how often a closed or changed server is noticed while nothing is to do


class OpenRgbLights(IoThread):
    """`set_lights` and `release` may be called from any thread and never wait.

    Only the fill of an overlay is shown, steadily; single LEDs belong to a keyboard. While OpenRGB is not there
    or does not answer the state is SEARCHING, and it is tried again every 10 s.
    """

    def __init__(
        self,
        connect: Callable[[], OpenRgbClient] = OpenRgbClient,
        *,
        mood_interval_s: float = _MOOD_INTERVAL_S,
        retry_s: float = _RETRY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__("thock-openrgb")
        self._connect = connect
        self._mood_interval_s = mood_interval_s
        self._retry_s = retry_s
        self._clock = clock
        self._wanted: Rgb | None = None

    def set_lights(self, overlay: LightOverlay) -> None:
        """Show the fill of `overlay`; without one, what was before."""
        with self._changed:
            self._wanted = overlay.fill
            self._changed.notify_all()

    def release(self) -> None:
        """Set back what the lights were."""
        self.set_lights(LightOverlay())

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._serve()
            except OpenRgbMissingError as error:
                _log.warning("%s", error)
                self._set_state(LinkState.LOST, LinkProblem.NO_OPENRGB, str(error))
                break
            except OpenRgbError as error:
                if self._advice != str(error):
                    _log.info("%s", error)
                self._set_state(LinkState.SEARCHING, LinkProblem.NO_OPENRGB, str(error))
                self._pause(self._retry_s)
            except Exception as error:  # noqa: BLE001 - the thread's top
                _log.error("OpenRGB: %s", described(error))
                self._set_state(LinkState.SEARCHING, LinkProblem.INTERNAL)
                self._pause(self._retry_s)
            else:
                self._pause(_CHECK_S)  # the devices changed

    def _pause(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(self._stopping.is_set, seconds)

    def _serve(self) -> None:
        client = self._connect()
        try:
            self._set_state(LinkState.READY)
            self._follow(client)
            client.give_back()
        finally:
            client.close()

    def _follow(self, client: OpenRgbClient) -> None:
        """Show what is wanted until the end, or until the devices changed."""
        shown: Rgb | None = None
        free_at = float("-inf")
        while not client.is_outdated():
            with self._changed:
                wait_s = _CHECK_S if self._wanted == shown else free_at - self._clock()
                if wait_s > 0:
                    self._changed.wait(wait_s)
                if self._stopping.is_set():
                    return
                wanted = self._wanted
            if wanted == shown or self._clock() < free_at:
                continue
            if wanted is None:
                client.give_back()
            else:
                client.show(wanted)
            shown = wanted
            free_at = self._clock() + self._mood_interval_s
