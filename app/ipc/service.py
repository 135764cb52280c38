# SPDX-License-Identifier: Apache-2.0
"""What the companion does for its visitors: requests become commands, states become events."""

from __future__ import annotations

from pathlib import Path

from app.companion.asked import is_blank
from app.config.problems import SettingsError
from app.ipc import messages as m
from app.ipc.reports import reply_changed, screen_changed, state_report
from app.ipc.server import IpcServer
from app.lifecycle.host import CompanionHost, HostState
from app.settings import Settings
from engine.texts import Text, as_text
from firmware_bridge.events import BridgeEvent, KeyPressed, MacroTriggered


class IpcService:
    """Ties the host to a server. `heard` and `changed` never wait."""

    def __init__(self, host: CompanionHost, settings_path: Path) -> None:
        self._host = host
        self._path = settings_path
        self._settings: Settings | None = None
        self.server: IpcServer | None = None

    def answer(self, request: m.Request) -> m.Answer:
        """Do what is asked."""
        host = self._host
        match request:
            case m.GetStatus():
                return self._status(request.id)
            case m.GetReply():
                return m.Reply(id=request.id, text=host.reply())
            case m.GetSettings():
                return self._values(request.id)
            case m.ChangeSettings(changes=changes):
                try:
                    host.change_settings(changes)
                except SettingsError as error:
                    return _refused_settings(request.id, error)
                return self._values(request.id)
            case m.Ask(text=text):
                if is_blank(text):
                    return _unavailable(request.id, "a question is more than blanks")
                return m.Asked(id=request.id, question=host.ask(text))
            case m.Show(page=page):
                host.show_page(page)
            case m.Cancel():
                host.cancel()
            case m.Pause(minutes=minutes):
                host.pauses.pause(minutes)
            case m.Resume():
                host.resume()
            case m.SetMode(mode=mode):
                host.set_mode(mode)
            case m.SetProfile(name=name):
                known = host.settings.profiles
                if name is not None and name not in known:
                    listed = ", ".join(known) or Text("none")
                    reason = Text(
                        "there is no profile {name}; there are: {known}",
                        name=repr(name),
                        known=listed,
                    )
                    return _unavailable(request.id, reason)
                host.choose_profile(name)
            case m.Forget():
                host.forget()
            case m.LoadModel():
                host.load_model()
            case m.UnloadModel():
                host.unload_model()
            case m.Quit():
                host.quit()
            case m.Subscribe():
                raise AssertionError("the session subscribes by itself")
        return m.Done(id=request.id)

    def present(self, topic: m.Topic) -> m.Event | None:
        """The present value of a topic."""
        state = self._host.state
        return None if state is None else _event(topic, state)

    def changed(self, state: HostState) -> None:
        """A listener of the host."""
        server = self.server
        if server is None:
            return
        for topic in (m.Topic.STATE, m.Topic.SCREEN, m.Topic.REPLY):
            self._publish(server, topic, state)
        if state.settings is not self._settings:
            self._settings = state.settings
            self._publish(server, m.Topic.SETTINGS, state)

    def heard(self, event: BridgeEvent) -> None:
        """A listener of the link: somebody may wait for the next key."""
        server = self.server
        if server is None or not server.wants(m.Topic.KEY):
            return
        match event:
            case KeyPressed(row=row, column=column, keycode=keycode):
                seen = m.KeySeen(row=row, column=column, keycode=keycode, macro=None)
            case MacroTriggered(number=number):
                seen = m.KeySeen(row=None, column=None, keycode=None, macro=number)
            case _:
                return
        server.publish(seen, m.Topic.KEY)

    def _publish(self, server: IpcServer, topic: m.Topic, state: HostState) -> None:
        if server.wants(topic):
            event = _event(topic, state)
            if event is not None:
                server.publish(event, topic)

    def _status(self, number: int) -> m.Answer:
        state = self._host.state
        if state is None:
            return _unavailable(number, "the companion is about to start; try again")
        report = _report(state)
        return m.Status(id=number, state=report)

    def _values(self, number: int) -> m.Answer:
        problems = tuple((p.place, as_text(p.text)) for p in self._host.problems)
        values = self._host.settings.model_dump(mode="json")
        return m.SettingsValues(id=number, values=values, path=str(self._path), problems=problems)


def _event(topic: m.Topic, state: HostState) -> m.Event | None:
    companion = state.companion
    match topic:
        case m.Topic.STATE:
            return m.StateChanged(state=_report(state))
        case m.Topic.SCREEN:
            return screen_changed(companion, state.keyboard)
        case m.Topic.REPLY:
            return reply_changed(companion)
        case m.Topic.SETTINGS:
            return m.SettingsChanged(values=state.settings.model_dump(mode="json"))
        case m.Topic.KEY:
            return None


def _report(state: HostState) -> m.StateReport:
    return state_report(
        state.companion,
        state.keyboard,
        state.paused_s,
        state.profile,
        state.is_profile_chosen,
        state.away,
    )


def _unavailable(number: int, reason: str) -> m.Refused:
    return m.Refused(id=number, code="unavailable", reason=as_text(reason))


def _refused_settings(number: int, error: SettingsError) -> m.Refused:
    problems = tuple((p.place, as_text(p.text)) for p in error.problems)
    return m.Refused(id=number, code="settings", reason=str(error), problems=problems)
