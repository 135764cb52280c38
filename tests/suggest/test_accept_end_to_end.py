# SPDX-License-Identifier: Apache-2.0
"""The accept key through the firmware core, the link, the companion and an engine child with a script."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.companion.core import Companion, Mailbox
from app.settings import Settings, SuggestSettings
from engine.client import FAKE_ENGINE, EngineClient, EngineState
from firmware_bridge.keys.layout import load_layout
from firmware_bridge.keys.typist import keys_for
from firmware_bridge.link import Link
from firmware_bridge.link_state import LinkState
from firmware_bridge.transport.virtual import VirtualKeyboard, VirtualTransport
from tests.helpers.waiting import wait_until

US = load_layout("us")
ACCEPT = 4
LONG_S = 30.0


class Chain:
    """A keyboard, the companion behind it, and what the computer gets: keys and accepted text."""

    def __init__(self, script: Path, settings: Settings) -> None:
        mailbox = Mailbox()
        self.keyboard = VirtualKeyboard()
        self.link = Link(lambda: VirtualTransport(self.keyboard), mailbox.post)
        self.engine = EngineClient(mailbox.post, mailbox.engine_changed, argv=FAKE_ENGINE)
        self.companion = Companion(mailbox, self.link, self.engine, settings)
        self.companion.start()
        self.link.start()
        assert self.link.wait_for(LinkState.READY, LONG_S)
        self.engine.start(script)
        wait_until(lambda: self.companion.state.engine is EngineState.READY, timeout_s=LONG_S)

    def stop(self) -> None:
        self.companion.stop()
        self.link.stop()
        self.engine.stop()

    @property
    def context(self) -> str:
        return self.companion._machine._desk.context.text

    def type(self, text: str) -> None:
        for stroke in keys_for(text, US):
            for usage, is_down in stroke.actions():
                assert (self.keyboard.press if is_down else self.keyboard.release)(usage)
            time.sleep(0.03)

    def until_shown(self, text: str) -> None:
        wait_until(lambda: text in self.rows, timeout_s=LONG_S)

    @property
    def rows(self) -> str:
        return "\n".join(getattr(self.companion.state.frame, "rows", ()))

    def accept(self) -> str:
        """Press the key until it types: the offer follows the picture by some milliseconds."""
        before = len(self.keyboard.typed)
        wait_until(
            lambda: self.keyboard.macro(ACCEPT) and len(self.keyboard.typed) > before,
            timeout_s=LONG_S,
        )
        return self.keyboard.typed[before:]

    def until_known(self, text: str) -> None:
        """Until the companion holds `text`."""
        wait_until(lambda: self.context == text, timeout_s=LONG_S)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.json"
    path.write_text(json.dumps({"words": ["soundly", "then", "there"], "token_ms": 5}))
    return path


@pytest.fixture
def chain(script: Path, request: pytest.FixtureRequest) -> Iterator[Chain]:
    chain = Chain(script, Settings(suggest=request.param))
    yield chain
    chain.stop()


@pytest.mark.parametrize("chain", [SuggestSettings(accept=True)], indirect=True)
def test_the_key_types_exactly_what_is_shown_and_the_text_goes_on_with_it(chain: Chain) -> None:
    chain.type("it sleeps ")
    chain.until_shown(">soundly then")  # a phrase, without the word that has no room
    first = chain.accept()
    # The panel may still have shown the word alone.
    assert first in ("soundly", "soundly then")
    chain.until_known(f"it sleeps {first}")
    chain.type(" th")
    chain.until_shown("th_\n>then")
    time.sleep(0.5)  # until the panel has it too
    second = chain.accept()
    assert second in ("en", "en there")
    chain.until_known(f"it sleeps {first} th{second}")


@pytest.mark.parametrize("chain", [SuggestSettings(accept=False)], indirect=True)
def test_turned_off_it_types_nothing_and_says_so(chain: Chain) -> None:
    chain.type("it sleeps ")
    chain.until_shown("soundly")
    for _ in range(5):
        chain.keyboard.macro(ACCEPT)
        time.sleep(0.05)
    chain.until_shown("accept key is off")
    assert chain.keyboard.typed == ""
    assert chain.context == "it sleeps "
