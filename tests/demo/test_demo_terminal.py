# SPDX-License-Identifier: Apache-2.0
"""What stands around the OLED in a terminal: in both languages, within its size, whatever that becomes."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.data_structures import Size
from prompt_toolkit.formatted_text import fragment_list_to_text
from prompt_toolkit.input import DummyInput
from prompt_toolkit.output import DummyOutput
from prompt_toolkit.utils import get_cwidth

from app.companion.macros import MacroKey
from app.demo.station import DemoStation, StationOptions
from app.demo.terminal import DemoTerminal, TooSmallTerminalError, geometry_for
from app.i18n import Catalog, Language, told, translation
from app.settings import ModeName, Settings
from engine.client import FAKE_ENGINE, EngineState
from firmware_bridge.keys.typist import KeyStroke
from firmware_bridge.keys.usage import Usage
from tests.helpers.english_left import english_left
from tests.helpers.told_texts import ROOT

HINTS = {Language.EN: "Type something", Language.ZH_CN: "请打字"}
# Names and labels of keys, and the percentiles.
NAMES = ("F1", "F2", "F3", "F4", "Ctrl-Q", "Enter", "OLED", "p50", "p99")
CHINESE = re.compile("[一-鿿]")
SMALL, LARGE = Size(rows=20, columns=68), Size(rows=46, columns=100)


class SizedOutput(DummyOutput):
    """A terminal that somebody can make larger and smaller."""

    size = LARGE

    def get_size(self) -> Size:
        return self.size


@contextlib.contextmanager
def demo(
    language: Language, geometry: str = "128x64", *, follows_size: bool = True
) -> Iterator[tuple[DemoTerminal, DemoStation, SizedOutput]]:
    options = StationOptions(
        model=Path("fake"), geometry=geometry, engine_argv=FAKE_ENGINE,
        settings=Settings(language=language),
    )  # fmt: skip
    output = SizedOutput()
    with (
        DemoStation(options) as station,
        create_app_session(input=DummyInput(), output=output),
    ):
        ready = station.wait_until(
            lambda s: s.engine is EngineState.READY and s.keyboard is not None, 60
        )
        assert ready, station.state
        yield DemoTerminal(station, follows_size=follows_size), station, output


def resized(terminal: DemoTerminal, station: DemoStation, output: SizedOutput, size: Size) -> None:
    """The terminal gets another size, and the companion has found the display that fits it."""
    output.size = size
    terminal.follow_size()
    height = station.keyboard.config.panel_height
    found = station.wait_until(lambda s: s.keyboard is not None and s.keyboard.height == height, 30)
    assert found, station.state.keyboard


def rows(terminal: DemoTerminal) -> list[str]:
    return fragment_list_to_text(terminal.picture()).split("\n")


def words(lines: list[str]) -> str:
    """Without the picture and without the caps of the keys."""
    caps = re.compile(r"^ {1,2}(Esc|Tab|Caps|Shift|Ctrl) ")
    return "\n".join(line for line in lines if not line.startswith("│") and not caps.match(line))


@pytest.mark.parametrize("language", Language)
def test_every_mode_and_the_pause_are_told_in_the_language(language: Language) -> None:
    seen = []
    with demo(language) as (terminal, station, _):
        for mode in ModeName:
            assert station.wait_until(lambda s, m=mode: s.mode is m, 10), mode
            seen += rows(terminal)
            station.stroke(KeyStroke(Usage.A))
            station.keyboard.macro(MacroKey.NEXT_MODE)
        station.keyboard.macro(MacroKey.PAUSE)
        assert station.wait_until(lambda s: s.is_paused, 10)
        terminal.type("\N{SNOWMAN}")
        seen += rows(terminal)
        model = station.state.model
    text = words(seen)
    if language is Language.ZH_CN:
        assert english_left(text, *NAMES, model) == []
        assert all(
            word in text for word in ("联想", "聊天", "心情", "引擎", "暂停", "延迟", "键盘")
        )
    else:
        assert not CHINESE.search(text)
        assert "Pause" in text


@pytest.mark.parametrize("language", Language)
@pytest.mark.parametrize("size", [SMALL, LARGE, Size(rows=24, columns=80)])
def test_no_row_is_wider_than_the_terminal_and_none_is_too_many(
    language: Language, size: Size
) -> None:
    with demo(language) as (terminal, station, output):
        resized(terminal, station, output, size)
        for mode in ModeName:
            assert station.wait_until(lambda s, m=mode: s.mode is m, 10), mode
            lines = rows(terminal)
            assert len(lines) <= size.rows
            assert max(map(get_cwidth, lines)) <= size.columns
            assert "Ctrl-Q" in lines[-1]
            assert lines[-1].endswith((" quits ", " 退出 "))  # nothing of it was cut off
            station.stroke(KeyStroke(Usage.A))
            station.keyboard.macro(MacroKey.NEXT_MODE)


@pytest.mark.parametrize("language", Language)
def test_an_empty_display_is_explained_until_something_is_typed(language: Language) -> None:
    with demo(language) as (terminal, station, output):
        for size in (LARGE, SMALL):  # the other display is empty too
            resized(terminal, station, output, size)
            assert HINTS[language] in "".join(rows(terminal))
            station.stroke(KeyStroke(Usage.A))
            assert HINTS[language] not in "".join(rows(terminal))


def test_the_hint_is_of_the_mode_that_suggests() -> None:
    with demo(Language.EN) as (terminal, station, _):
        station.keyboard.macro(MacroKey.PAUSE)
        assert station.wait_until(lambda s: s.is_paused, 10)
        assert HINTS[Language.EN] not in "".join(rows(terminal))
        station.keyboard.macro(MacroKey.PAUSE)
        station.keyboard.macro(MacroKey.NEXT_MODE)
        assert station.wait_until(lambda s: s.mode is not ModeName.SUGGEST, 10)
        assert HINTS[Language.EN] not in "".join(rows(terminal))


def test_the_display_follows_the_terminal_and_types_on() -> None:
    with demo(Language.EN) as (terminal, station, output):
        for size, height in ((SMALL, 32), (LARGE, 64), (SMALL, 32)):
            resized(terminal, station, output, size)
            assert station.keyboard.panel().height == height
            assert len(rows(terminal)) <= size.rows
            before = len(station.heard)
            station.stroke(KeyStroke(Usage.A))
            assert station.wait_until(lambda _s, n=before: len(station.heard) > n, 10)


@pytest.mark.parametrize("language", Language)
def test_a_display_that_was_asked_for_stays_and_both_sizes_are_told(language: Language) -> None:
    with demo(language, follows_size=False) as (terminal, station, output):
        output.size = SMALL
        terminal.follow_size()
        text = "".join(rows(terminal)).replace("×", "x")
        assert station.keyboard.panel().height == 64
        assert all(size in text for size in ("68x20", "68x36", "--geometry 128x32"))
        assert bool(CHINESE.search(text)) is (language is Language.ZH_CN)


def test_a_terminal_for_none_is_told_the_size_of_the_smallest() -> None:
    with demo(Language.EN) as (terminal, station, output):
        output.size = Size(rows=10, columns=40)
        terminal.follow_size()
        assert rows(terminal) == ["This terminal is 40x10; the OLED needs 68x20."]
        assert station.keyboard.panel().height == 64


@pytest.mark.parametrize(
    ("size", "geometry"),
    [((68, 20), "128x32"), ((68, 35), "128x32"), ((68, 36), "128x64"), ((500, 200), "128x64")],
)
def test_the_largest_display_that_fits_is_chosen(size: tuple[int, int], geometry: str) -> None:
    assert geometry_for(os.terminal_size(size)) == geometry


@pytest.mark.parametrize("size", [(67, 200), (200, 19), (0, 0)])
def test_a_terminal_that_is_too_small_is_told_what_is_needed(size: tuple[int, int]) -> None:
    with pytest.raises(TooSmallTerminalError, match="68x20") as caught:
        geometry_for(os.terminal_size(size))
    text = told(translation(Language.ZH_CN, Catalog.MESSAGES), str(caught.value))
    assert english_left(text) == []
    assert "68×20" in text


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_the_readme_tells_the_sizes(name: str) -> None:
    """The two sizes there are the smallest ones that get the smaller and the larger display."""
    sizes = re.findall(r"\b(\d+)x(\d+)\b", (ROOT / name).read_text(encoding="utf-8"))
    told_sizes = [(int(c), int(r)) for c, r in sizes if int(c) < 100][:2]
    for (columns, lines), geometry in zip(told_sizes, ("128x32", "128x64"), strict=True):
        assert geometry_for(os.terminal_size((columns, lines))) == geometry
        for less in ((columns - 1, lines), (columns, lines - 1)):
            with contextlib.suppress(TooSmallTerminalError):
                assert geometry_for(os.terminal_size(less)) != geometry
