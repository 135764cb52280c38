# SPDX-License-Identifier: Apache-2.0
"""A word that is typed in every mode is nowhere afterwards: on no disk, in no log, with no visitor."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.ipc.messages import EVENTS
from app.settings import ModeName
from engine.messages import Chat, ReplyFinished, ReplyGrew
from firmware_bridge.events import KeyPressed, KeyReleased
from firmware_bridge.keys.layout import load_layout
from firmware_bridge.keys.typist import keys_for
from tests.helpers.running_host import RunningHost

CANARY = "zanarxq"
HOMES = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "TMPDIR")
SCRIPT = f"""
speed 600
mode suggest
type my {CANARY} is
wait suggestion 20
mode chat
type {CANARY} what?
key enter
wait reply 30
type {CANARY} again
kill engine
wait idle 20
mode react
type so {CANARY}
key enter
wait mood 20
press pause
type {CANARY} in a pause
press pause
wait idle 10
"""


def files_with(folder: Path, word: str) -> list[str]:
    """Files below `folder` that hold `word`, as bytes of UTF-8 or UTF-16."""
    needles = [word.encode(), word.encode("utf-16-le")]
    found = [file for file in folder.rglob("*") if file.is_file()]
    return [str(f) for f in found if any(needle in f.read_bytes() for needle in needles)]


def test_the_search_finds_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "file").write_bytes(b"\0" + CANARY.encode("utf-16-le"))
    assert files_with(tmp_path, CANARY) == [str(tmp_path / "deep" / "file")]


def test_no_process_of_ours_leaves_it_on_disk_or_in_what_it_says(tmp_path: Path) -> None:
    script, home = tmp_path / "script.thock", tmp_path / "home"
    script.write_text(SCRIPT)
    home.mkdir()
    environment = {**os.environ, **dict.fromkeys(HOMES, str(home)), "PYTHONFAULTHANDLER": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "app", "demo", "--engine", "fake", "--script", str(script)],
        env=environment, cwd=home, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert "0 failed" in done.stdout, done.stdout + done.stderr
    assert CANARY not in done.stderr
    assert files_with(home, CANARY) == []


def typed(host: RunningHost, text: str) -> None:
    for stroke in keys_for(text, load_layout("us")):
        for usage, is_down in stroke.actions():
            event = KeyPressed if is_down else KeyReleased
            host.hear(event(usage, usage >> 4, usage & 15, device_ms=0, host_s=0.0))


@pytest.mark.parametrize("mode", ModeName)
def test_visitors_hear_nothing_of_it_after_a_wipe(
    mode: ModeName, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG), RunningHost(tmp_path) as host:
        host.host.set_mode(mode)
        assert host.wait(lambda: host.companion.state.mode is mode)
        typed(host, f"a {CANARY} b")
        if mode is ModeName.CHAT:
            typed(host, "\n")
            assert host.wait(lambda: any(isinstance(c, Chat) for c in host.engine.commands))
            number = next(c.request for c in host.engine.commands if isinstance(c, Chat))
            host.mailbox.post(ReplyGrew(request=number, text=f"Yes, {CANARY}."))
            host.mailbox.post(
                ReplyFinished(
                    request=number, reason="stop", tokens=2, first_token_ms=1, milliseconds=1
                )
            )
            assert host.wait(lambda: CANARY in host.companion.state.reply)
        if mode is not ModeName.REACT:
            assert host.wait(lambda: CANARY in "".join(host.companion.state.lines))
        host.host.forget()
        assert host.wait(lambda: CANARY not in "".join(host.companion.state.lines))
        with host.visitor() as visitor:
            answers = [str(visitor.request(kind)) for kind in ("status", "reply", "get-settings")]
        with host.visitor() as visitor:
            events = visitor.events("state", "screen", "reply", "settings")
            answers += [str(EVENTS.validate_python(next(events))) for _ in range(4)]
        assert CANARY not in "".join(answers)
        assert CANARY not in repr(host.companion.state)
    assert CANARY not in caplog.text
    assert files_with(tmp_path, CANARY) == []
