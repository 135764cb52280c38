# SPDX-License-Identifier: Apache-2.0
"""The independent source for layouts: libxkbcommon with the system's xkeyboard-config and Compose tables."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import pytest

from firmware_bridge.keys.dead_keys import DeadKey
from firmware_bridge.keys.xkbcommon import XkbError, XkbKeymap, XkbNames

# Our layouts, and what X11 calls them.
NAMES = {
    "us": XkbNames("us"),
    "uk": XkbNames("gb"),
    "de": XkbNames("de"),
    "fr": XkbNames("fr"),
    "es": XkbNames("es"),
    "it": XkbNames("it"),
    "pt-br": XkbNames("br", model="abnt2"),
    "se": XkbNames("se"),
    "no": XkbNames("no"),
    "dk": XkbNames("dk"),
    "fi": XkbNames("fi"),
    "jis": XkbNames("jp", model="jp106"),
    "dvorak": XkbNames("us", "dvorak"),
    "colemak": XkbNames("us", "colemak"),
}
_COMPOSED = 2  # XKB_COMPOSE_COMPOSED
_COMPOSE_TABLE = Path("/usr/share/X11/locale/en_US.UTF-8/Compose")


def keymap(layout: str) -> XkbKeymap:
    """What X11 has for our layout of that name; skips the test where the source is missing."""
    try:
        return XkbKeymap(NAMES[layout])
    except XkbError as error:
        if os.environ.get("THOCK_REQUIRE_XKB"):
            raise
        pytest.skip(f"the layouts have nothing to be compared with: {error}")


class Compose:
    """What X11 makes of two keysyms in sequence, in an English UTF-8 locale."""

    def __init__(self) -> None:
        if not _COMPOSE_TABLE.exists():
            pytest.skip(f"the dead keys have nothing to be compared with: no {_COMPOSE_TABLE}")
        self._library = library = ctypes.CDLL("libxkbcommon.so.0")
        pointer, number, text = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_char_p
        library.xkb_context_new.restype = pointer
        table = library.xkb_compose_table_new_from_locale
        table.restype, table.argtypes = pointer, [pointer, text, ctypes.c_int]
        library.xkb_compose_state_new.restype = pointer
        library.xkb_compose_state_new.argtypes = [pointer, ctypes.c_int]
        for name in ("reset", "get_status"):
            getattr(library, f"xkb_compose_state_{name}").argtypes = [pointer]
        library.xkb_compose_state_feed.argtypes = [pointer, number]
        library.xkb_compose_state_get_utf8.argtypes = [pointer, text, ctypes.c_size_t]
        library.xkb_keysym_from_name.argtypes = [text, ctypes.c_int]
        library.xkb_utf32_to_keysym.argtypes = [number]
        compiled = table(library.xkb_context_new(0), b"en_US.UTF-8", 0)
        assert compiled, "the Compose table does not compile"
        self._state = library.xkb_compose_state_new(compiled, 0)

    def __call__(self, dead: DeadKey, character: str) -> str:
        """The text that comes of it, "" if none does."""
        library, state = self._library, self._state
        library.xkb_compose_state_reset(state)
        accent = library.xkb_keysym_from_name(f"dead_{dead.value}".encode(), 0)
        library.xkb_compose_state_feed(state, accent)
        library.xkb_compose_state_feed(state, library.xkb_utf32_to_keysym(ord(character)))
        if library.xkb_compose_state_get_status(state) != _COMPOSED:
            return ""
        buffer = ctypes.create_string_buffer(32)
        library.xkb_compose_state_get_utf8(state, buffer, len(buffer))
        return buffer.value.decode()
