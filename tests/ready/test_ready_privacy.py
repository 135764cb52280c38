# SPDX-License-Identifier: Apache-2.0
"""Ready replies are content: in memory only, hidden in repr and logs, and gone with everything else."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable

import pytest

from app.companion.messages import Forget, Message, Pause, SetMode, Stop
from app.companion.ready import ReadyReplies, ReadyReply
from app.log import OUR_LOGGERS, set_up_logging
from app.settings import ModeName, ReadySettings, Settings
from engine.client import EngineState
from engine.messages import Chat, Complete, Prepare, ReplyReady, Turn
from firmware_bridge.display.frame import TextFrame
from firmware_bridge.events import LinkReady
from firmware_bridge.link_reflex import Reflex, ReflexArc
from tests.companion.test_privacy import found
from tests.helpers.companion import Desk, board

CANARY = "canarybird"


def canary_is_ready(mode: ModeName = ModeName.CHAT) -> Desk:
    desk = Desk(Settings(mode=mode), columns=40, ahead=True)
    desk.type("why")
    if mode is ModeName.SUGGEST:
        desk.suggest((" not", 0.9))
    prepare = desk.engine.commands[-1]
    assert isinstance(prepare, Prepare)
    desk.post(ReplyReady(request=prepare.request, context=prepare.context, text=CANARY, tokens=[1]))
    assert found(CANARY, desk.companion._machine)
    assert desk.keyboard.reflex is not None
    return desk


WIPES: dict[str, Message] = {
    "pause": Pause(),
    "forget": Forget(),
    "mode": SetMode(ModeName.REACT),
    "stop": Stop(),
}


@pytest.mark.parametrize("mode", [ModeName.CHAT, ModeName.SUGGEST])
@pytest.mark.parametrize("wipe", [*WIPES, "idle", "engine"])
def test_ready_replies_are_wiped(mode: ModeName, wipe: str) -> None:
    desk = canary_is_ready(mode)
    if wipe == "idle":
        desk.advance(301)
    elif wipe == "engine":
        desk.engine_is(EngineState.RESTARTING)
    else:
        desk.post(WIPES[wipe])
    assert desk.keyboard.reflex is None
    assert found(CANARY, desk.companion._machine) == []


def test_what_comes_late_is_not_kept() -> None:
    desk = canary_is_ready()
    prepare = desk.engine.commands[-1]
    assert isinstance(prepare, Prepare)
    desk.post(Pause())
    desk.post(
        ReplyReady(request=prepare.request, context=prepare.context, text=CANARY, tokens=[1, 2])
    )
    assert found(CANARY, desk.companion._machine) == []


def test_it_is_hidden_in_repr_and_in_logs() -> None:
    stream = io.StringIO()
    set_up_logging(logging.DEBUG, stream)
    try:
        desk = canary_is_ready()
        desk.press_macro(1)
        desk.advance(1)
    finally:
        for name in OUR_LOGGERS:
            logging.getLogger(name).setLevel(logging.NOTSET)
        root = logging.getLogger()
        for handler in [h for h in root.handlers if h.get_name() == "thock"]:
            root.removeHandler(handler)
    assert CANARY in desk.state.reply
    assert CANARY not in stream.getvalue()
    turns = [Turn(role="user", content=CANARY)]
    event = LinkReady(board())
    shown: list[Callable[[], object]] = [
        lambda: ReadyReply(CANARY, (1,), False),
        lambda: Reflex(TextFrame((CANARY,)), frozenset({40}), frozenset(), event),
        lambda: Complete(request=1, text=CANARY),
        lambda: Prepare(request=1, context="", ask=Chat(request=1, turns=turns)),
        lambda: ReplyReady(request=1, context="", text=CANARY, tokens=[4711]),
    ]
    for make in shown:
        assert CANARY not in repr(make())
        assert "4711" not in repr(make())
    assert CANARY not in repr(desk.companion.state)


def question(text: str, **changes: object) -> Chat:
    ask = Chat(request=0, turns=[Turn(role="user", content=text)], max_tokens=9)
    return ask.model_copy(update=changes)


def hashes(ready: ReadyReplies) -> Callable[[Chat | Complete], str]:
    return ready._hash


def test_the_hash_stands_for_everything_that_is_asked_and_tells_nothing() -> None:
    ready = ReadyReplies(lambda build: 1, lambda number: None)
    other_run = ReadyReplies(lambda build: 1, lambda number: None)
    hash_of = hashes(ready)
    assert hash_of(question("a")) == hash_of(question("a", request=7, begun=[1]))
    others = [
        question("b"),
        question("a", max_tokens=8),
        question("a", turns=[Turn(role="system", content="a")]),
        question("a", turns=[Turn(role="user", content="a"), Turn(role="user", content="")]),
        Complete(request=0, text="a", max_tokens=9),
    ]
    assert len({hash_of(each) for each in [question("a"), *others]}) == len(others) + 1
    assert hash_of(question("a")) != hashes(other_run)(question("a"))
    assert len(hash_of(question("a" * 4000))) == len(hash_of(question("a")))


def test_off_means_off() -> None:
    desk = Desk(Settings(mode=ModeName.CHAT, ready=ReadySettings(enabled=False)), ahead=True)
    desk.type("why\n")
    assert not any(isinstance(c, Prepare) for c in desk.engine.commands)
    assert (desk.state.ready.hits, desk.state.ready.misses) == (0, 0)


def test_a_link_forgets_a_reflex_that_is_taken_back() -> None:
    from firmware_bridge.link_output import Output
    from firmware_bridge.link_state import LinkOptions

    arc = ReflexArc(Output(LinkOptions()).display)
    arc.set(Reflex(TextFrame((CANARY,)), frozenset(), frozenset(), LinkReady(board())))
    arc.prepare(lambda picture: None)
    arc.set(None)
    assert arc._reflex is None
    assert arc._planned is None
