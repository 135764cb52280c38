# SPDX-License-Identifier: Apache-2.0
"""A Chinese reply from the engine's child to the panel's memory: companion, link, transport, core."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from app.companion.core import Companion, Mailbox
from app.i18n import Language
from app.settings import ModeName, Settings
from engine.client import FAKE_ENGINE, EngineClient, EngineState
from firmware_bridge.display.frame import BitmapFrame, DisplayFrame
from firmware_bridge.firmware.virtual_core import BoardConfig
from firmware_bridge.keys.typist import keys_for
from firmware_bridge.link import Link
from firmware_bridge.link_state import LinkState
from firmware_bridge.protocol.messages import Status
from firmware_bridge.transport.virtual import VirtualKeyboard, VirtualTransport
from tests.helpers.companion import US
from tests.helpers.golden import pixels
from tests.helpers.waiting import wait_until

REPLY = "天空是蓝色的，因为阳光里的蓝光被空气散射得最多 (Rayleigh scattering)。"
LONG_S = 30.0


@dataclass
class Chain:
    keyboard: VirtualKeyboard
    link: Link
    companion: Companion

    def type(self, text: str) -> None:
        for stroke in keys_for(text, US):
            for usage, is_down in stroke.actions():
                assert (self.keyboard.press if is_down else self.keyboard.release)(usage)
            time.sleep(0.01)

    def shows(self, frame: DisplayFrame) -> bool:
        """Whether the panel holds `frame`, but for the firmware's own sign in the corner."""
        assert isinstance(frame, BitmapFrame)
        panel = pixels(self.keyboard.panel())
        panel[:8, 120:126] = False
        return bool(np.array_equal(panel, pixels(frame)))


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[Chain]:
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"words": ["天空"], "replies": [REPLY], "token_ms": 10}))
    mailbox = Mailbox()
    keyboard = VirtualKeyboard(BoardConfig(panel_height=64))
    link = Link(lambda: VirtualTransport(keyboard), mailbox.post)
    engine = EngineClient(mailbox.post, mailbox.engine_changed, argv=FAKE_ENGINE)
    settings = Settings(mode=ModeName.CHAT, language=Language.ZH_CN)
    companion = Companion(mailbox, link, engine, settings)
    companion.start()
    link.start()
    try:
        assert link.wait_for(LinkState.READY, LONG_S)
        engine.start(script)
        wait_until(lambda: companion.state.engine is EngineState.READY, timeout_s=LONG_S)
        yield Chain(keyboard, link, companion)
    finally:
        companion.stop()
        link.stop()
        engine.stop()


def test_a_chinese_reply_lies_in_the_panel_bit_for_bit_and_an_idle_display_costs_nothing(
    chain: Chain,
) -> None:
    chain.type("why?\n")
    wait_until(lambda: chain.companion.state.reply == REPLY, timeout_s=LONG_S)
    wait_until(lambda: chain.companion.state.status is Status.LISTENING, timeout_s=LONG_S)
    wait_until(lambda: not chain.companion.state.is_busy, timeout_s=LONG_S)
    wait_until(lambda: chain.shows(chain.companion.state.frame), timeout_s=LONG_S)
    assert "".join(chain.companion.state.lines).startswith("天空是蓝色的，因为阳光")
    assert chain.link.stats.naks == 0
    time.sleep(1.5)  # a light that had to wait may follow
    sent, start = new_reports(chain.link), time.monotonic()
    time.sleep(3.0)
    keepalives = (time.monotonic() - start) / 1.0 + 1
    assert new_reports(chain.link) - sent <= keepalives


def new_reports(link: Link) -> int:
    """Without those that were sent again, because the answer was late."""
    return link.stats.reports_out - link.stats.retries
