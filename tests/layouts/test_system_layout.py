# SPDX-License-Identifier: Apache-2.0
"""The system's own layout: where it is written, what libxkbcommon makes of it, and plain words otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from firmware_bridge.keys import layout as layouts
from firmware_bridge.keys import system_layout as subject
from firmware_bridge.keys import xkbcommon
from firmware_bridge.keys.dead_keys import DeadKey, System
from firmware_bridge.keys.layout import load_layout
from firmware_bridge.keys.system_layout import layout_of, system_names
from firmware_bridge.keys.usage import Usage
from firmware_bridge.keys.xkbcommon import XkbError, XkbKeymap, XkbNames
from tests.layouts.reference import NAMES, keymap

DEBIAN = """# KEYBOARD CONFIGURATION FILE
XKBMODEL="pc104"
XKBLAYOUT="de,us"
XKBVARIANT="neo,"
XKBOPTIONS=""
"""
LOCALECTL = """# Written by systemd-localed(8)
Section "InputClass"
        Identifier "system-keyboard"
        MatchIsKeyboard "on"
        Option "XkbLayout" "br"
        Option "XkbModel" "abnt2"
EndSection
"""


def names(folder: Path, environment: dict[str, str], debian: str, localectl: str) -> XkbNames:
    (folder / "keyboard").write_text(debian)
    (folder / "00-keyboard.conf").write_text(localectl)
    return system_names(environment, folder / "keyboard", folder / "00-keyboard.conf")


@pytest.mark.parametrize(
    ("environment", "debian", "localectl", "expected"),
    [
        ({"XKB_DEFAULT_LAYOUT": "fr"}, DEBIAN, LOCALECTL, XkbNames("fr")),
        ({"XKB_DEFAULT_VARIANT": "x"}, DEBIAN, LOCALECTL, XkbNames("de", "neo", "pc104")),
        ({}, 'XKBLAYOUT=""', LOCALECTL, XkbNames("br", "", "abnt2")),
        ({}, "XKBLAYOUT=gb\n", "", XkbNames("gb")),
    ],
)
def test_the_first_place_that_names_a_layout_counts(
    tmp_path: Path, environment: dict[str, str], debian: str, localectl: str, expected: XkbNames
) -> None:
    assert names(tmp_path, environment, debian, localectl) == expected


def test_a_system_that_says_nothing_is_told_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(XkbError, match="choose a layout by name"):
        names(tmp_path, {}, "", "")


@pytest.mark.parametrize("name", sorted(NAMES))
def test_it_reads_the_same_layout_as_our_own_table(name: str) -> None:
    keymap(name).close()  # or skip
    ours, theirs = load_layout(name, System.LINUX), layout_of(NAMES[name])
    for usage, signs in theirs.levels.items():
        assert ours.levels.get(usage, (".",)) == tuple(signs), usage
    assert ours.caps_lock_key is theirs.caps_lock_key
    assert ours.has_altgr == theirs.has_altgr
    assert theirs.input_method_keys >= ours.input_method_keys - {Usage.LANG_5}


def test_an_accent_that_we_do_not_know_is_still_one() -> None:
    keymap("us").close()
    signs = {
        sign for keys in layout_of(XkbNames("gr", "polytonic")).levels.values() for sign in keys
    }
    assert DeadKey.OTHER in signs


def test_an_unknown_layout_is_refused_by_name() -> None:
    keymap("us").close()
    with pytest.raises(XkbError, match="klingon"):
        XkbKeymap(XkbNames("klingon"))


@pytest.fixture
def no_library(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(xkbcommon, "_LIBRARY", "libnosuchthing.so.0")
    xkbcommon._library.cache_clear()
    yield
    xkbcommon._library.cache_clear()


@pytest.mark.usefixtures("no_library")
def test_without_the_library_the_advice_names_it() -> None:
    with pytest.raises(XkbError, match="libxkbcommon0"):
        layout_of(XkbNames("us"))


def test_system_is_a_name_for_load_layout_on_linux_only(monkeypatch: pytest.MonkeyPatch) -> None:
    us = load_layout("us")
    monkeypatch.setattr(subject, "system_layout", lambda: us)
    layouts.load_layout.cache_clear()
    assert load_layout("system", System.LINUX) is us
    with pytest.raises(ValueError, match="no layout 'system'"):
        load_layout("system", System.WINDOWS)
    layouts.load_layout.cache_clear()
