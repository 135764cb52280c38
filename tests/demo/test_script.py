# SPDX-License-Identifier: Apache-2.0
"""Scripts: what is understood, and what each mistake is called."""

from __future__ import annotations

import contextlib
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.demo.script import Line, ScriptError, Step, parse_script


def test_every_kind_of_line() -> None:
    lines = parse_script(
        "# comment\n\nspeed 60\nmode chat\ntype  two spaces \nkey ctrl+backspace\npress ask\n"
        "wait reply 30\nwait idle\nsleep 0.5\nshow\nexpect hello world\nkill engine\n"
    )
    assert lines == [
        Line(3, Step.SPEED, number=60),
        Line(4, Step.MODE, "chat"),
        Line(5, Step.TYPE, " two spaces "),
        Line(6, Step.KEY, "ctrl+backspace"),
        Line(7, Step.PRESS, "ask"),
        Line(8, Step.WAIT, "reply", 30),
        Line(9, Step.WAIT, "idle", 10),
        Line(10, Step.SLEEP, number=0.5),
        Line(11, Step.SHOW),
        Line(12, Step.EXPECT, "hello world"),
        Line(13, Step.KILL, "engine"),
    ]


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ("jump", "no step"),
        ("type", "needs a text"),
        ("speed fast", "no number"),
        ("speed 0", "from 1 to 1000"),
        ("speed nan", "from 1 to 1000"),
        ("wait forever", "wait for"),
        ("wait reply 1e9", "from 0 to 600"),
        ("mode party", "suggest, chat, react"),
        ("press play", "ask"),
        ("kill -9", "engine"),
        ("expect", "needs something"),
    ],
)
def test_mistakes_are_named_with_their_line(line: str, match: str) -> None:
    with pytest.raises(ScriptError, match=rf"line 2: .*{match}"):
        parse_script(f"show\n{line}\n")


@given(st.text())
def test_any_text_is_a_script_or_a_script_error(text: str) -> None:
    # Any other exception than ScriptError fails here.
    with contextlib.suppress(ScriptError):
        assert all(isinstance(line, Line) for line in parse_script(text))


def test_shipped_scripts_are_sound() -> None:
    scripts = [
        p
        for p in resources.files("assets").joinpath("scripts").iterdir()
        if p.name.endswith(".thock")
    ]
    assert scripts
    for script in scripts:
        assert parse_script(script.read_text(encoding="utf-8"))
