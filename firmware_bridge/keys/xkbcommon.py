# SPDX-License-Identifier: Apache-2.0
"""libxkbcommon, where it is installed: the layouts of X11 and Wayland, as the system itself reads them.

Only what is needed to ask one key for its sign (https://xkbcommon.org/doc/current/).
"""

from __future__ import annotations

import ctypes
import functools
from dataclasses import astuple, dataclass
from types import TracebackType

from firmware_bridge.errors import BridgeError
from firmware_bridge.keys.dead_keys import DeadKey
from firmware_bridge.keys.layout import Sign
from firmware_bridge.keys.usage import Usage
from firmware_bridge.texts import Text

_LIBRARY = "libxkbcommon.so.0"
# Codes of evdev for the usages 04..64 and for some others: `hid_keyboard` in Linux, drivers/hid/hid-input.c.
_FROM_A = (
    *(30, 48, 46, 32, 18, 33, 34, 35, 23, 36, 37, 38, 50, 49, 24, 25, 16, 19, 31, 20, 22, 47, 17, 45),
    *(21, 44, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 28, 1, 14, 15, 57, 12, 13, 26, 27, 43, 43, 39, 40, 41),
    *(51, 52, 53, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68, 87, 88, 99, 70, 119, 110, 102, 104, 111),
    *(107, 109, 106, 105, 108, 103, 69, 98, 55, 74, 78, 96, 79, 80, 81, 75, 76, 77, 71, 72, 73, 82, 83, 86),
)  # fmt: skip
_CODES: dict[int, int] = {
    **{Usage.A + i: code for i, code in enumerate(_FROM_A)},
    Usage.KEYPAD_EQUAL: 117,
    Usage.KEYPAD_COMMA: 121,
    Usage.INTERNATIONAL_1: 89,
    Usage.INTERNATIONAL_2: 93,
    Usage.INTERNATIONAL_3: 124,
    Usage.INTERNATIONAL_4: 92,
    Usage.INTERNATIONAL_5: 94,
    Usage.LANG_1: 122,
    Usage.LANG_2: 123,
    Usage.LANG_3: 90,
    Usage.LANG_4: 91,
    Usage.LANG_5: 85,
    Usage.RIGHT_ALT: 100,
}
_XKB_OFFSET = 8  # between the codes of evdev and of XKB
_ACCENTS = {dead.value for dead in DeadKey}
_SHIFT, _LOCK, _NUM_LOCK, _LEVEL_3 = b"Shift", b"Lock", b"Mod2", b"Mod5"


class XkbError(BridgeError, ValueError):
    """The library is missing, or knows no such layout."""


@dataclass(frozen=True, slots=True)
class XkbNames:
    """What setxkbmap calls -layout, -variant, -model and -rules."""

    layout: str
    variant: str = ""
    model: str = "pc105"
    rules: str = "evdev"


class _RuleNames(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_char_p) for name in ("rules", "model", "layout", "variant", "options")
    )


@functools.cache
def _library() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError as error:
        raise XkbError(
            "libxkbcommon is not installed: install it (libxkbcommon0), or choose a layout by name"
        ) from error
    pointer, number, text = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_char_p
    for name, result, *arguments in (
        ("xkb_context_new", pointer, ctypes.c_int),
        ("xkb_context_unref", None, pointer),
        ("xkb_context_set_log_level", None, pointer, ctypes.c_int),
        ("xkb_keymap_new_from_names", pointer, pointer, ctypes.POINTER(_RuleNames), ctypes.c_int),
        ("xkb_keymap_unref", None, pointer),
        ("xkb_keymap_mod_get_index", number, pointer, text),
        ("xkb_state_new", pointer, pointer),
        ("xkb_state_unref", None, pointer),
        ("xkb_state_update_mask", number, pointer, *[number] * 6),
        ("xkb_state_key_get_one_sym", number, pointer, number),
        ("xkb_state_key_get_utf8", ctypes.c_int, pointer, number, text, ctypes.c_size_t),
        ("xkb_keysym_get_name", ctypes.c_int, number, text, ctypes.c_size_t),
    ):
        function = getattr(library, str(name))
        function.restype, function.argtypes = result, arguments
    return library


class XkbKeymap:
    """One compiled keymap, to be closed.

    Raises (by the constructor):
        XkbError: no libxkbcommon, or it knows no such layout.
    """

    def __init__(self, names: XkbNames) -> None:
        self._library = _library()
        self._context = self._library.xkb_context_new(0)
        self._library.xkb_context_set_log_level(
            self._context, 10
        )  # critical only: we tell ourselves
        given = (names.rules, names.model, names.layout, names.variant, "")
        wanted = _RuleNames(*(part.encode() for part in given))
        self._keymap = self._library.xkb_keymap_new_from_names(
            self._context, ctypes.byref(wanted), 0
        )
        if not self._keymap:
            self._library.xkb_context_unref(self._context)
            shown = " ".join(part for part in astuple(names) if part)
            raise XkbError(
                Text(
                    "libxkbcommon knows no layout {shown}: choose a layout by name",
                    shown=repr(shown),
                )
            )
        self._state = self._library.xkb_state_new(self._keymap)

    def close(self) -> None:
        """Free the keymap."""
        self._library.xkb_state_unref(self._state)
        self._library.xkb_keymap_unref(self._keymap)
        self._library.xkb_context_unref(self._context)

    def __enter__(self) -> XkbKeymap:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def key_name(self, usage: int, *, shift: bool = False, altgr: bool = False) -> str:
        """The name of the keysym, such as `dead_acute` or `BackSpace`."""
        self._hold(shift=shift, altgr=altgr)
        return self._symbol(_CODES[usage] + _XKB_OFFSET)

    def sign(
        self,
        usage: int,
        *,
        shift: bool = False,
        altgr: bool = False,
        caps_lock: bool = False,
        num_lock: bool = False,
    ) -> Sign:
        """What the key gives: printable text, a dead key, or "" for anything else."""
        self._hold(shift=shift, altgr=altgr, caps_lock=caps_lock, num_lock=num_lock)
        code = _CODES[usage] + _XKB_OFFSET
        symbol = self._symbol(code)
        if symbol.startswith("dead_"):
            name = symbol.removeprefix("dead_")
            return DeadKey(name) if name in _ACCENTS else DeadKey.OTHER
        buffer = ctypes.create_string_buffer(16)
        self._library.xkb_state_key_get_utf8(self._state, code, buffer, len(buffer))
        text = buffer.value.decode()
        return text if text.isprintable() or (text.isspace() and text not in "\r\n\t\b") else ""

    def _hold(
        self, *, shift: bool, altgr: bool, caps_lock: bool = False, num_lock: bool = False
    ) -> None:
        held = self._mask(_SHIFT) * shift | self._mask(_LEVEL_3) * altgr
        locked = self._mask(_LOCK) * caps_lock | self._mask(_NUM_LOCK) * num_lock
        self._library.xkb_state_update_mask(self._state, held, 0, locked, 0, 0, 0)

    def _mask(self, modifier: bytes) -> int:
        return 1 << int(self._library.xkb_keymap_mod_get_index(self._keymap, modifier))

    def _symbol(self, code: int) -> str:
        buffer = ctypes.create_string_buffer(64)
        symbol = self._library.xkb_state_key_get_one_sym(self._state, code)
        self._library.xkb_keysym_get_name(symbol, buffer, len(buffer))
        return buffer.value.decode()
