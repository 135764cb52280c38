# SPDX-License-Identifier: Apache-2.0
"""The command line in Chinese: help, answers and errors of every command, and no second of waiting for it."""

from __future__ import annotations

import gettext
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from babel.messages.pofile import read_po

from app.commands.speech import chosen_language
from app.i18n import Language
from firmware_bridge.keys.layout import layout_names
from tests.helpers.command_texts import CLICK_PLURALS, CLICK_WORDS, all_commands, help_texts
from tests.helpers.english_left import english_left
from tests.helpers.told_texts import ROOT

FOLDER = ROOT / "assets" / "locale" / "zh_CN" / "LC_MESSAGES"
SLOW = ("pydantic", "torch", "numpy", "PIL", "PySide6", "tomlkit")
# Each in a process of its own would take a minute.
WORKER = """
import json, sys
from click.testing import CliRunner
from app.cli import main
outputs = {}
for words in json.load(sys.stdin):
    result = CliRunner().invoke(main, words, prog_name="thock")
    assert result.exception is None or isinstance(result.exception, SystemExit), (words, result.exception)
    outputs[" ".join(words)] = result.output
json.dump(outputs, sys.stdout)
"""
# What goes wrong in as many ways as can be had without a keyboard and without a companion.
CALLS = [
    ["status"], ["ask", "why?"], ["ask"], ["ask", "--nothing"], ["cancel"], ["forget"], ["mode"],
    ["mode", "sing"], ["pause", "--minutes", "-1"], ["pause", "--minutes", "soon"], ["quit"], ["resume"],
    ["model", "list"], ["model", "add", "no-such-file"], ["model", "add", "FOLDER"],
    ["model", "add", "FILE"], ["model", "add", "FILE", "--wheel", "FILE"],
    ["model", "check", "no-such-model"], ["model", "check", "FILE"],
    ["model", "remove", "no-such-model"], ["model", "load"], ["model", "unload"], ["model", "nonsense"],
    ["settings", "set", "suggest.count", "99"], ["settings", "set", "nonsense", "1"],
    ["settings", "set", "layout", "klingon"], ["settings", "set", "mode", "7"],
    ["settings", "set", "macros", "7"],
    ["settings", "get", "nonsense"], ["settings", "reset", "nonsense"], ["settings", "set"],
    ["doctor"], ["run", "--model", "no-such-model"], ["monitor", "--record", "FOLDER"], ["nonsense"],
    ["diagnostics", "--yes", "--output", "FOLDER"], ["run", "--engine", "nonsense"],
]  # fmt: skip
NAMES = (
    "OPTIONS", "COMMAND", "ARGS", "NAME", "VALUE", "no-such-file", "no-such-model", "nonsense", "klingon",
    "sing", "soon", "nothing", "x86_64", "aarch64", "file", "layout", "mode", "macros", "torch",
    "float", "range", "integer",
)  # fmt: skip


@pytest.fixture
def chinese(tmp_path: Path) -> dict[str, str]:
    """The environment of somebody whose settings say Chinese, without models and without a companion."""
    (tmp_path / "thock").mkdir()
    (tmp_path / "thock" / "settings.toml").write_text('language = "zh_CN"\n')
    folders = {f"XDG_{kind}_HOME": str(tmp_path) for kind in ("CONFIG", "DATA", "STATE", "CACHE")}
    (tmp_path / "run").mkdir(mode=0o700)
    return {
        **os.environ,
        **folders,
        "XDG_RUNTIME_DIR": str(tmp_path / "run"),
        "LANG": "C.UTF-8",
        "PYTHONUTF8": "1",
    }


@pytest.mark.skipif(sys.platform != "linux", reason="the folders are set by XDG")
def test_every_help_and_every_error_is_chinese(tmp_path: Path, chinese: dict[str, str]) -> None:
    places = {"FOLDER": str(tmp_path / "empty"), "FILE": str(tmp_path / "note.gguf")}
    Path(places["FOLDER"]).mkdir()
    Path(places["FILE"]).write_bytes(b"GGUF" + bytes(40))
    calls = [[places.get(word, word) for word in call] for call in CALLS]
    helps = [[*words, "--help"] for words in _every_command() if words[:1] != ["bench"]]
    done = subprocess.run(
        [sys.executable, "-c", WORKER], input=json.dumps([*calls, *helps]), env=chinese, cwd=ROOT,
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    outputs = json.loads(done.stdout)
    assert len(outputs) == len(calls) + len(helps)
    values = {option for command in all_commands() for option in _choices_of(command)}
    for words, output in outputs.items():
        assert re.search("[一-鿿]", output), (words, output)
        head, _, rest = output.partition("：")
        text = re.sub(r"\[[\w|.-]+\]", " ", rest if head == "用法" else output)  # choices
        text = "\n".join(_help_in(line) for line in text.split("\n"))
        left = english_left(
            text, *NAMES, *values, *layout_names(), *places.values(), *words.split()
        )
        assert not [word for word in left if word not in words], (words, left, output)


def _help_in(line: str) -> str:
    """Of a command or an option what stands behind it; any other line as it is."""
    row = re.match(r"  [\w<-]\S*.*?  +(?=\S)", line)
    return line if row is None else line[row.end() :]


def _every_command() -> list[list[str]]:
    from app.cli import main

    found: list[list[str]] = [[]]

    def look(command: object, words: list[str]) -> None:
        import click

        if isinstance(command, click.Group):
            ctx = click.Context(command)
            for name in command.list_commands(ctx):
                found.append([*words, name])
                look(command.get_command(ctx, name), [*words, name])

    look(main, [])
    return found


def _choices_of(command: object) -> list[str]:
    import click

    assert isinstance(command, click.Command)
    return [
        str(choice)
        for parameter in command.params
        if isinstance(parameter.type, click.Choice)
        for choice in parameter.type.choices
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="the folders are set by XDG")
@pytest.mark.parametrize("command", ["status", "ask"])
def test_commands_speak_chinese_without_slow_packages(
    command: str, chinese: dict[str, str]
) -> None:
    script = (
        "import sys; from click.testing import CliRunner; from app.cli import main;"
        f"result = CliRunner().invoke(main, [{command!r}, 'why?'][:{1 + (command == 'ask')}]);"
        f"slow = set({SLOW!r}) & set(sys.modules); print(sorted(slow), result.output)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=chinese, cwd=ROOT, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert done.stdout.startswith("[] ")
    assert "请用 `thock` 启动" in done.stdout


def test_every_help_has_a_translation_and_none_is_left_over() -> None:
    catalog = read_po(io.BytesIO((FOLDER / "commands.po").read_bytes()), locale="zh_CN")
    single = {m.id: m.string for m in catalog if m.id and isinstance(m.id, str)}
    plural = {m.id for m in catalog if isinstance(m.id, tuple)}
    assert sorted((help_texts() | CLICK_WORDS) - single.keys()) == []
    assert sorted(single.keys() - help_texts() - CLICK_WORDS) == []
    assert plural == CLICK_PLURALS
    for text, translated in single.items():
        assert re.search("[一-鿿]", str(translated)), text
        assert set(re.findall(r"\{\w+", text)) == set(re.findall(r"\{\w+", str(translated)))
    with (FOLDER / "commands.mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)
    assert {text: compiled.gettext(text) for text in single} == single


@pytest.mark.parametrize(
    ("content", "language"),
    [
        (b"", Language.EN),
        (b'language = "zh_CN"\n', Language.ZH_CN),
        (b'# mine\nmode = "chat"\nlanguage = "zh_CN" # so\n[suggest]\ncount = 2\n', Language.ZH_CN),
        (b'[general]\nlanguage = "zh_CN"\n', Language.EN),
        (b'language = "klingon"\n', Language.EN),
        (b"language = 7\n", Language.EN),
        (b"language = [\n", Language.EN),
        (b"language = " + b"[" * 100_000, Language.EN),
        (b'language = "zh_CN"\n\xff', Language.EN),
    ],
)
def test_the_language_is_read_without_the_settings_model(
    content: bytes, language: Language, tmp_path: Path
) -> None:
    file = tmp_path / "settings.toml"
    assert chosen_language(file) is Language.EN
    file.write_bytes(content)
    assert chosen_language(file) is language
