# SPDX-License-Identifier: Apache-2.0
"""The window's connections end with it: no thread is left, nobody is told anything, nothing is asked twice."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.config.store import SettingsStore
from app.ipc.messages import Answer, GetReply, Request
from app.settings_window.companion_link import CompanionLink
from app.settings_window.ports import CompanionView, Presence, SettingsRefusedError
from tests.helpers.running_host import RunningHost
from tests.helpers.waiting import wait_until


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningHost]:
    with RunningHost(tmp_path) as host:
        yield host


@pytest.fixture
def link(tmp_path: Path) -> Iterator[CompanionLink]:
    link = CompanionLink(tmp_path, SettingsStore(tmp_path / "settings.toml"))
    yield link
    link.close()
    assert threads() == []


def threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("settings-")]


def test_without_a_companion_the_thread_that_looks_for_one_ends(link: CompanionLink) -> None:
    link.start()
    assert threads() == ["settings-link"]
    link.close()
    assert threads() == []


def test_after_the_end_nobody_is_told_anything(running: RunningHost, link: CompanionLink) -> None:
    told: list[CompanionView] = []
    link.watch_state(told.append)
    link.start()
    wait_until(lambda: bool(told) and told[-1].presence is Presence.HERE)
    link.watch_preview(lambda _preview: None)
    link.capture_key(lambda _key: None)
    assert len(threads()) == 3
    link.close()
    count = len(told)
    running.host.next_mode()
    running.server.close()
    assert len(told) == count, "not even that the companion is gone"
    link.watch_preview(lambda _preview: None)
    assert threads() == []


def test_a_request_under_way_is_left_and_not_asked_again(
    running: RunningHost, link: CompanionLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Request] = []
    goes_on = threading.Event()
    answer = running.service.answer

    def slow(request: Request) -> Answer:
        if isinstance(request, GetReply):
            asked.append(request)
            assert goes_on.wait(60)
        return answer(request)

    monkeypatch.setattr(running.service, "answer", slow)
    with ThreadPoolExecutor(1) as pool:
        reply = pool.submit(link.reply)
        wait_until(lambda: asked)
        link.close()
        assert reply.result(30) == ""
        goes_on.set()
    with pytest.raises(SettingsRefusedError, match="closed"):
        link.change({"chat": {"max_tokens": 5}})
    assert len(asked) == 1
