# SPDX-License-Identifier: Apache-2.0
"""The running companion over `app.ipc`; the settings file itself while none runs.

One connection asks, and one tells of state and settings; it is opened again whenever a companion comes. What
may hold content (display, reply, the next key) has a connection of its own, open while it is looked at.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from app.choices import settings_store
from app.config.problems import Problem, SettingsError
from app.config.store import Changes, Loaded, SettingsStore
from app.ipc.client import IpcClient, Json
from app.ipc.messages import (
    EVENTS,
    Event,
    KeySeen,
    PageWanted,
    ReplyChanged,
    ScreenChanged,
    SettingsChanged,
    StateChanged,
    Topic,
)
from app.ipc.protocol import IpcError, NotRunningError, RefusedError
from app.settings import ModeName, Settings
from app.settings_window.ports import (
    Answer,
    CompanionView,
    PressedKey,
    Preview,
    SettingsRefusedError,
)
from app.settings_window.wire import key_of, preview_of, view_of
from engine.failures import name_of_error
from engine.texts import as_text, listed

_LOOK_AGAIN_S = 1.0  # for a companion, while there is none
_CLOSE_LIMIT_S = 2.0  # for threads that wait for a companion that does not answer

_log = logging.getLogger(__name__)

E = TypeVar("E", KeySeen, ReplyChanged, ScreenChanged)
Hear = Callable[[Event], None]


# The companion sends the pages that are wanted to whoever calls itself so: to one connection of ours.
WINDOW, SIDE = "settings", "command"


class Subscription:
    """Events of some topics on the thread that calls `run`, until `close` or the end of the companion."""

    def __init__(
        self, folder: Path | None, name: str, topics: tuple[Topic, ...], hear: Hear
    ) -> None:
        """Raises IpcError when no companion answers."""
        self._client = connect(folder, name)
        self._topics = topics
        self._hear = hear
        self._is_closed = False

    def run(self) -> None:
        """Hear every event; returns at the end."""
        try:
            for event in self._client.events(*self._topics):
                if self._is_closed:
                    return
                self._hear(EVENTS.validate_python(event))
        except IpcError as error:
            if not self._is_closed:
                _log.info("the companion is gone: %s", error)
        except Exception as error:  # noqa: BLE001  the thread's top; an event may hold content
            _log.error("events of the companion are lost after %s", name_of_error(error))
        finally:
            self._client.close()

    def close(self) -> None:
        """No event is heard any more, but one that is being heard."""
        self._is_closed = True
        self._client.end()


def connect(folder: Path | None, name: str) -> IpcClient:
    """A connection to the companion.

    Raises:
        IpcError: there is none, or its folder is not safe to use.
    """
    try:
        return IpcClient(folder, name)
    except OSError as error:
        raise IpcError(str(error)) from error


class CompanionLink:
    """A SettingsPort and a CompanionPort. `folder` is the companion's runtime folder (None: this user's)."""

    def __init__(self, folder: Path | None = None, store: SettingsStore | None = None) -> None:
        self._folder = folder
        self._store = store or settings_store()
        self._client: IpcClient | None = None
        self._closing = threading.Event()
        self._asking = threading.Lock()  # a request waits for its answer
        self._lock = threading.Lock()  # guards the two below
        self._open: dict[Topic, Subscription] = {}
        self._threads: tuple[threading.Thread, ...] = ()
        self._on_state: Callable[[CompanionView], None] = lambda _: None
        self._on_settings: Callable[[Settings], None] = lambda _: None
        self._on_page: Callable[[str], None] = lambda _: None

    def start(self) -> None:
        """Look for the companion from now on. Call it after all `watch_…`."""
        self._start_thread(self._attend, "settings-link")

    def close(self) -> None:
        """End every connection and every thread: no listener is called any more, nothing is asked."""
        end = time.monotonic() + _CLOSE_LIMIT_S
        self._closing.set()
        with self._lock:
            topics, threads = tuple(self._open), self._threads
        for topic in topics:
            self._end(topic)
        client = self._client
        if client is not None:
            client.end()  # a request may be waiting for its answer
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join(max(end - time.monotonic(), 0.0))
        if self._asking.acquire(timeout=max(end - time.monotonic(), 0.0)):
            if self._client is not None:
                self._client.close()
                self._client = None
            self._asking.release()

    # ---------------------------------------------------------------- settings

    def load(self) -> Loaded:
        try:
            answer = self._request("get-settings")
        except NotRunningError:
            return self._store.load()
        except IpcError as error:
            raise SettingsRefusedError(str(error)) from error
        problems = tuple(Problem(place, text) for place, text in answer["problems"])
        return Loaded(Settings.model_validate(answer["values"]), problems)

    def change(self, changes: Changes) -> Settings:
        try:
            answer = self._request("change-settings", changes=changes)
            return Settings.model_validate(answer["values"])
        except NotRunningError:
            return self._change_file(changes)
        except RefusedError as error:
            texts = [as_text(text) for _, text in error.problems] or [as_text(str(error))]
            raise SettingsRefusedError(listed(texts)) from error
        except IpcError as error:
            raise SettingsRefusedError(str(error)) from error

    def watch_settings(self, listener: Callable[[Settings], None]) -> None:
        self._on_settings = listener

    def _change_file(self, changes: Changes) -> Settings:
        try:
            return self._store.change(changes)
        except SettingsError as error:
            texts = [as_text(problem.text) for problem in error.problems]
            raise SettingsRefusedError(listed(texts)) from error

    # ---------------------------------------------------------------- companion

    def watch_state(self, listener: Callable[[CompanionView], None]) -> None:
        self._on_state = listener
        listener(CompanionView())

    def watch_pages(self, listener: Callable[[str], None]) -> None:
        self._on_page = listener

    def watch_preview(self, listener: Callable[[Preview], None] | None) -> None:
        self._end(Topic.SCREEN)
        if listener is not None:
            self._begin(Topic.SCREEN, ScreenChanged, lambda event: listener(preview_of(event)))

    def capture_key(self, listener: Callable[[PressedKey], None] | None) -> None:
        self._end(Topic.KEY)
        if listener is not None:
            self._begin(Topic.KEY, KeySeen, lambda event: listener(key_of(event)))

    def ask(self, text: str, listener: Callable[[Answer], None]) -> None:
        def send() -> int | None:
            try:
                return int(self._request("ask", text=text)["question"])
            except IpcError as error:
                listener(Answer("", is_finished=True, trouble=str(error)))
                return None

        self._end(Topic.REPLY)
        if not self._begin(Topic.REPLY, ReplyChanged, _ReplyHearing(listener, send)):
            listener(Answer("", is_finished=True, trouble="Thock does not run."))

    def stop_asking(self) -> None:
        self._end(Topic.REPLY)

    def cancel(self) -> None:
        self._command("cancel")

    def pause(self, minutes: float | None = None) -> None:
        self._command("pause", minutes=minutes)

    def resume(self) -> None:
        self._command("resume")

    def set_mode(self, mode: ModeName) -> None:
        self._command("set-mode", mode=mode.value)

    def reply(self) -> str:
        try:
            return str(self._request("reply")["text"])
        except IpcError as error:
            _log.info("the last answer is not to be had: %s", error)
            return ""

    def forget(self) -> None:
        self._command("forget")

    def load_model(self) -> None:
        self._command("load-model")

    def unload_model(self) -> None:
        self._command("unload-model")

    def _command(self, type_: str, **fields: Any) -> None:
        try:
            self._request(type_, **fields)
        except IpcError as error:
            _log.info("%s was not done: %s", type_, error)

    # ---------------------------------------------------------------- connections

    def _request(self, type_: str, **fields: Any) -> Json:
        """Ask the companion; once more if it was started anew since the last time."""
        with self._asking:
            if self._closing.is_set():
                raise IpcError("the window is being closed.")
            is_fresh = self._client is None
            if self._client is None:
                self._client = connect(self._folder, SIDE)
            try:
                return self._client.request(type_, **fields)
            except RefusedError:
                raise
            except IpcError:
                self._client.close()
                self._client = None
                if is_fresh or self._closing.is_set():
                    raise
        return self._request(type_, **fields)

    def _attend(self) -> None:
        while not self._closing.is_set():
            try:
                told = Subscription(self._folder, WINDOW, (Topic.STATE, Topic.SETTINGS), self._hear)
            except IpcError:
                self._closing.wait(_LOOK_AGAIN_S)
                continue
            with self._lock:
                self._open[Topic.STATE] = told
            if self._closing.is_set():
                told.close()
            told.run()
            if not self._closing.is_set():
                self._on_state(CompanionView())

    def _hear(self, event: Event) -> None:
        match event:
            case StateChanged(state=state):
                self._on_state(view_of(state))
            case SettingsChanged(values=values):
                self._on_settings(Settings.model_validate(values))
            case PageWanted(page=page):
                self._on_page(page)
            case _:
                pass  # not asked for

    def _begin(self, topic: Topic, kind: type[E], hear: Callable[[E], None]) -> bool:
        def of_kind(event: Event) -> None:
            if isinstance(event, kind):
                hear(event)

        try:
            subscription = Subscription(self._folder, SIDE, (topic,), of_kind)
        except IpcError as error:
            _log.info("the companion does not tell its %s: %s", topic.value, error)
            return False
        with self._lock:
            self._open[topic] = subscription
        self._start_thread(subscription.run, "settings-events")
        if self._closing.is_set():
            self._end(topic)
        return True

    def _start_thread(self, work: Callable[[], None], name: str) -> None:
        thread = threading.Thread(target=work, name=name, daemon=True)
        with self._lock:
            self._threads = (*(t for t in self._threads if t.is_alive()), thread)
            thread.start()

    def _end(self, topic: Topic) -> None:
        with self._lock:
            subscription = self._open.pop(topic, None)
        if subscription is not None:
            subscription.close()


class _ReplyHearing:
    """From ReplyChanged to Answer. The question is sent at the first event, which tells of one before it."""

    def __init__(self, listener: Callable[[Answer], None], send: Callable[[], int | None]) -> None:
        """`send` gives the number of the question; None: it was not asked."""
        self._listener = listener
        self._send = send
        self._is_sent = False
        self._question: int | None = None

    def __call__(self, event: ReplyChanged) -> None:
        if not self._is_sent:
            self._is_sent = True
            self._question = self._send()
        elif self._question is not None and event.question == self._question:
            self._listener(Answer(event.text, event.end is not None, trouble=event.reason))
        elif self._question is not None and event.question > self._question:
            self._listener(Answer("", is_finished=True))  # another question took its place
