# SPDX-License-Identifier: Apache-2.0
"""What every mode looks like on every display in both languages, as the firmware core draws it.

The sheets in tests/golden/oled/views hold all scenes of one display and one language, each pixel 4 x 4.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from app.companion.messages import Pause, SetMode
from app.companion.modes.moods import load_moods
from app.i18n import Language
from app.settings import ModeName, Settings
from engine.client import EngineState
from engine.messages import Chat, Choose, LabelChosen, ReplyFinished, ReplyGrew
from firmware_bridge.display.frame import BitmapFrame
from firmware_bridge.events import EventsDropped
from firmware_bridge.firmware.virtual_core import BoardConfig
from tests.helpers.board_desk import BoardDesk
from tests.helpers.golden import assert_sheet

BOARDS = {
    "128x32": BoardConfig(panel_width=128, panel_height=32),
    "128x64": BoardConfig(panel_width=128, panel_height=64),
    "64x128": BoardConfig(panel_width=64, panel_height=128),
    "64x48": BoardConfig(panel_width=64, panel_height=48),
    "32x128": BoardConfig(panel_width=128, panel_height=32, rotation=1),
    "48x64": BoardConfig(panel_width=64, panel_height=48, rotation=3),
}
REPLIES = {
    Language.EN: "The sky is blue because of a process called “Rayleigh scattering”, which occurs "
    "when light meets molecules of air.",
    Language.ZH_CN: "天空之所以是蓝色的，是因为“瑞利散射”（Rayleigh scattering）：阳光中的蓝光比红光"
    "更容易被空气分子散射。",
}


def suggestions(desk: BoardDesk) -> None:
    desk.type("Please bring the hel", gap_s=0.005)
    desk.advance(0.2)
    desk.suggest(("p", 0.61), ("met", 0.2), ("icopter", 0.05))


def hanzi_suggested(desk: BoardDesk) -> None:
    desk.type("Hello in Chinese: ", gap_s=0.005)
    desk.advance(0.2)
    desk.suggest(("你好", 0.61), ("你们好", 0.2), ("您好", 0.05))


def chat_begun(desk: BoardDesk) -> None:
    desk.post(SetMode(ModeName.CHAT))
    desk.advance(3)


def question(desk: BoardDesk) -> None:
    chat_begun(desk)
    desk.type("Why is the sky blue?", gap_s=0.01)


def thinking(desk: BoardDesk) -> None:
    question(desk)
    desk.type("\n")


def reply(desk: BoardDesk) -> None:
    thinking(desk)
    language = desk.companion._machine._desk.settings.language
    desk.post(ReplyGrew(request=desk.asked(Chat), text=REPLIES[language]))


def last_page(desk: BoardDesk) -> None:
    reply(desk)
    desk.post(
        ReplyFinished(
            request=desk.asked(Chat),
            reason="length",
            tokens=96,
            first_token_ms=40,
            milliseconds=900,
        )
    )
    desk.advance(40, step_s=0.5)


def next_question(desk: BoardDesk) -> None:
    reply(desk)
    desk.type("and at night", gap_s=0.01)


def react_begun(desk: BoardDesk) -> None:
    desk.post(SetMode(ModeName.REACT))
    desk.advance(3)


def mood(desk: BoardDesk, label: str = "happy") -> None:
    react_begun(desk)
    desk.type("it works!\n", gap_s=0.01)
    desk.post(
        LabelChosen(request=desk.asked(Choose), label=label, probability=0.75, milliseconds=3)
    )


def notice(desk: BoardDesk) -> None:
    mood(desk)
    desk.post(SetMode(ModeName.SUGGEST))


def keys_lost(desk: BoardDesk) -> None:
    desk.type("Dear", gap_s=0.01)
    desk.post(EventsDropped(12))


def pause(desk: BoardDesk) -> None:
    desk.post(Pause())


def loading(desk: BoardDesk) -> None:
    desk.engine_is(EngineState.LOADING)


def restart(desk: BoardDesk) -> None:
    desk.engine_is(EngineState.RESTARTING, "it was killed by SIGKILL")
    desk.type("meanwhile", gap_s=0.01)


def failed(desk: BoardDesk) -> None:
    desk.engine_is(EngineState.FAILED, "it died 4 times in 10 minutes")


# By layout: what is typed, and candidates for how it goes on.
ACCENTED = {
    "de": ("Schöne Gr", ("üße", "ün", "öße")),
    "fr": ("ça va très b", ("ien", "ientôt", "être")),
    "es": ("¿Qué hora es, se", ("ñor", "ñora", "ñal")),
    "pt-br": ("Não há problema, irm", ("ão", "ã", "ãos")),
    "it": ("Perché no? Più cos", ("ì", "ù", "ò")),
    "se": ("Räksmörgås på v", ("ägen", "år", "änster")),
    "dk": ("Blåbær og sm", ("ørrebrød", "å", "æk")),
}


def accented(layout: str) -> Callable[[BoardDesk], None]:
    """Letters with accents in what was typed and in what may come."""

    def scene(desk: BoardDesk) -> None:
        typed, words = ACCENTED[layout]
        desk.type(typed, gap_s=0.005, layout=layout)
        desk.advance(0.2)
        desk.suggest(*zip(words, (0.61, 0.2, 0.05), strict=True))

    return scene


SCENES: tuple[Callable[[BoardDesk], None], ...] = (
    suggestions, hanzi_suggested, chat_begun, question, thinking, reply, last_page, next_question,
    react_begun, mood, notice, keys_lost, pause, loading, restart, failed,
)  # fmt: skip


def seen(
    scene: Callable[[BoardDesk], None], board: BoardConfig, language: Language, layout: str = "us"
) -> BitmapFrame:
    """What a person sees once the display has come to rest."""
    desk = BoardDesk(Settings(language=language, layout=layout), board)
    scene(desk)
    desk.advance(0.4)
    return desk.panel


@pytest.mark.parametrize("language", Language)
@pytest.mark.parametrize("display", BOARDS)
def test_views_look_as_they_did_when_they_were_looked_at(display: str, language: Language) -> None:
    pictures = {scene.__name__: seen(scene, BOARDS[display], language) for scene in SCENES}
    across = 4 if BOARDS[display].panel_width == 128 and display != "32x128" else 8
    assert_sheet(pictures, f"views/{display}-{language}", across)


@pytest.mark.parametrize("display", BOARDS)
def test_accents_look_as_they_did_when_they_were_looked_at(display: str) -> None:
    pictures = {
        layout: seen(accented(layout), BOARDS[display], Language.EN, layout) for layout in ACCENTED
    }
    across = 4 if BOARDS[display].panel_width == 128 and display != "32x128" else 8
    assert_sheet(pictures, f"views/accents-{display}", across)


@pytest.mark.parametrize("display", ["128x32", "128x64"])
def test_faces_look_as_they_did_when_they_were_looked_at(display: str) -> None:
    pictures = {
        label: seen(lambda desk, label=label: mood(desk, label), BOARDS[display], Language.ZH_CN)
        for label in load_moods()
    }
    assert_sheet(pictures, f"views/faces-{display}", across=4)
