# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
# mypy: ignore-errors
"""Thock companion for KMK: reports over the second USB serial port (`usb_cdc.data`).

    from thock_companion import ThockCompanion
    keyboard.modules.append(ThockCompanion(...))     # after Layers, HoldTap, Combos and the like

docs/firmware/kmk.md says what to copy where. The port carries frames and nothing else: no byte of it is
ever evaluated. What the computer does not read is dropped; the keyboard never waits for it.
"""

import usb_cdc
from kmk.keys import ConsumerKey, KeyboardKey, ModifiedKey, ModifierKey, MouseKey, make_key
from kmk.modules import Module
from supervisor import ticks_ms
from thock_session import Session
from thock_typist import Typist
from thock_wire import PacketReader, make_packet

_READ_BYTES = 128  # in one turn of the main loop: two packets, even if every byte is escaped
_SHOW_MS = 100  # KMK's display builds its labels anew each time, tens of milliseconds
_LIGHTS_MS = 50
_TICKS = 1 << 29  # supervisor.ticks_ms() counts to here
_FIRST_OWN_MACRO = 16
_NO_PLACE = 255  # a key that came from no switch

COMPANION_KEYS = ("THOCK_NEXT_MODE", "THOCK_ASK", "THOCK_PAUSE", "THOCK_CANCEL", "THOCK_ACCEPT")
_ACCEPT = 4  # place in COMPANION_KEYS
# Keys that reach no text keep working while others are captured. Of KMK's classes of keys these type nothing.
_TYPE_NOTHING = ("LayerKey",)  # of kmk.modules.layers, which not every keyboard has


def board_uid():
    """6 bytes by which the computer knows this board, folded from the id of its processor."""
    import microcontroller

    uid = bytearray(6)
    for i, byte in enumerate(microcontroller.cpu.uid):
        uid[i % 6] = (uid[i % 6] * 31 + byte) & 0xFF
    return bytes(uid)


class ThockCompanion(Module):
    """
    show(rows, status, capturing): called when one of them changed, at most 10 times a second. `rows` is a list
        of strings, or None when nothing is shown; `status` is 0 idle, 1 listening, 2 thinking, 3 streaming,
        4 paused, 5 error. The display belongs to the keyboard again when there is neither. Without it the
        computer is told that there is no display. `capturing` is given only where `capture` is True, and must
        then be shown.
    set_lights(colors): called at most 20 times a second while lights are on. `colors` has one entry for
        each LED: (red, green, blue), or None where the keyboard's own light shall show. None instead of
        the list: the computer's lights are over.
    macros: keys that are reported as macros 16, 17, ...; they still do what they do.
    capture: True: THOCK_CAPTURE_HOLD and THOCK_CAPTURE_TOGGLE send the keys after them to the computer's
        companion only. Needs `show`.
    caps_lock(): whether Caps Lock is on (KMK's LockStatus.get_caps_lock). With it, and `show`, THOCK_ACCEPT
        types what the companion offers on the display; not while Caps Lock is on, which turns letters over.
    """

    def __init__(
        self, show=None, columns=21, rows=2, set_lights=None, led_count=0, macros=(), uid=None,
        capture=False, caps_lock=None,
    ):  # fmt: skip
        self._show = show
        self._set_lights = set_lights
        self._macros = macros
        self._size = (columns, rows) if show else (0, 0)
        self._led_count = led_count if set_lights else 0
        self._uid = uid
        self._capture = capture
        self._caps_lock = caps_lock
        self._keys = [make_key(names=(name,)) for name in COMPANION_KEYS]
        self._hold = make_key(names=("THOCK_CAPTURE_HOLD",))
        self._toggle = make_key(names=("THOCK_CAPTURE_TOGGLE",))
        self._typist = Typist()
        # Captured keys that are down, by their place: their releases belong to the host too.
        self._swallowed = {}
        self._reader = PacketReader()
        self._unsent = b""
        self._asleep = False
        self._matrix_columns = 0
        self._shown_at = 0
        self._lights_at = 0
        self._lights_on = False
        self._port = None

    # ------------------------------------------------------------ hooks of KMK, in the order of its loop

    def during_bootup(self, keyboard):
        port = usb_cdc.data
        if port is None:
            # KMK leaves a module out that fails here; the keyboard works without it.
            raise RuntimeError("no data port: boot.py must call usb_cdc.enable(data=True)")
        port.timeout = 0
        port.write_timeout = 0
        self._port = port
        columns, rows = self._size
        uid = self._uid or board_uid()
        accept = self._caps_lock is not None
        self._session = Session(
            self._send, uid, columns, rows, self._led_count, capture=self._capture, accept=accept
        )
        self._session.changed = False
        self._shown_at = self._lights_at = ticks_ms() - _SHOW_MS
        pins = getattr(keyboard, "col_pins", None)
        self._matrix_columns = len(pins) if pins else 0

    def before_matrix_scan(self, keyboard):
        port = self._port
        if self._asleep or not port.connected:  # connected: the computer holds DTR
            self._give_up()
            return
        count = min(port.in_waiting, _READ_BYTES)
        if not count:
            return
        reader = self._reader
        now = ticks_ms()
        for byte in port.read(count):
            if reader.take(byte):
                self._session.receive(reader.body, now)

    def after_matrix_scan(self, keyboard):
        return None

    def process_key(self, keyboard, key, is_pressed, int_coord):
        if not is_pressed:
            self._typist.released(key)
        if key is self._hold or key is self._toggle:
            self._capture_key(keyboard, key, is_pressed)
            return None
        where = key if int_coord is None else int_coord
        captured = self._is_captured(key, is_pressed, where)
        if captured and not is_pressed:
            key = self._swallowed.pop(where)  # the layer may have changed since
        if self._session.subscribed:
            self._report(key, is_pressed, int_coord, captured)
        return None if captured else key

    def before_hid_send(self, keyboard):
        self._typist.turn(keyboard)

    def after_hid_send(self, keyboard):
        now = ticks_ms()
        self._flush()
        self._session.task(now)
        self._draw(now)

    def on_powersave_enable(self, keyboard):
        self._asleep = True
        self._typist.stop(keyboard)
        self._give_back()

    def on_powersave_disable(self, keyboard):
        self._asleep = False

    def deinit(self, keyboard):
        if self._port is not None:
            self._give_back()

    # ------------------------------------------------------------ port

    def _give_up(self):
        self._reader.reset()
        self._unsent = b""
        if self._session.subscribed:
            self._session.forget()

    def _send(self, report):
        """Room for one packet: it goes as far as the port takes it, the rest in later turns."""
        if self._unsent or self._asleep or not self._port.connected:
            return False
        self._unsent = make_packet(report)
        self._flush()
        return True

    def _flush(self):
        if self._unsent:
            written = self._port.write(self._unsent) or 0
            self._unsent = self._unsent[written:]

    # ------------------------------------------------------------ keys

    def _capture_key(self, keyboard, key, is_pressed):
        """Capture begins with a key under the person's finger and in no other way."""
        session = self._session
        now = ticks_ms()
        if is_pressed and not session.capturing:
            self._typist.stop(keyboard)
            session.begin_capture(now)
        elif key is (self._toggle if is_pressed else self._hold):
            session.end_capture(now)

    def _is_captured(self, key, is_pressed, where):
        """A release goes where its press went, so that no key sticks on the computer."""
        if not is_pressed:
            return where in self._swallowed
        captured = self._session.capturing and key not in self._keys and _may_type(key)
        if captured:
            self._swallowed[where] = key
        else:
            self._swallowed.pop(where, None)
        return captured

    def _report(self, key, is_pressed, int_coord, captured):
        now = ticks_ms()
        if key in self._keys:
            number = self._keys.index(key)
            self._session.macro(number, is_pressed, now)
            if number == _ACCEPT and is_pressed:
                self._accept(now)
        elif key in self._macros:
            self._session.macro(_FIRST_OWN_MACRO + self._macros.index(key), is_pressed, now)
        else:
            row, column = self._place(int_coord)
            tell = self._session.captured_key if captured else self._session.key
            for usage, pressed in _strokes(key, is_pressed):
                tell(row, column, usage, pressed, now)

    def _accept(self, now):
        if self._caps_lock is None or self._typist.busy or self._caps_lock() or not self._is_lit():
            return
        text = self._session.accept(now)
        if text:
            self._typist.type(text)

    def _is_lit(self):
        """What is typed must be what can be read; a callback may tell that its display is dark."""
        is_lit = getattr(self._show, "is_lit", None)
        return is_lit is None or is_lit()

    def _place(self, int_coord):
        if int_coord is None or int_coord > 254:
            return _NO_PLACE, _NO_PLACE
        if not self._matrix_columns:
            return 0, int_coord
        return int_coord // self._matrix_columns, int_coord % self._matrix_columns

    # ------------------------------------------------------------ output

    def _give_back(self):
        now = ticks_ms()
        self._give_up()
        self._shown_at = now - _SHOW_MS
        self._draw(now)

    def _draw(self, now):
        session = self._session
        if self._show and session.changed and (now - self._shown_at) % _TICKS >= _SHOW_MS:
            self._shown_at = now
            session.changed = False
            if self._capture:
                self._show(session.text, session.status, session.capturing)
            else:
                self._show(session.text, session.status)
        if self._set_lights:
            self._draw_lights(session.lights, now)

    def _draw_lights(self, lights, now):
        if not lights.active:
            if self._lights_on:
                self._lights_on = False
                self._set_lights(None)
            lights.changed = False
            return
        if (lights.changed or lights.moving) and (now - self._lights_at) % _TICKS >= _LIGHTS_MS:
            self._lights_at = now
            self._lights_on = True
            lights.changed = False
            self._set_lights([lights.color(led, now) for led in range(lights.count)])


def _modifiers(code):
    """KMK's modifier keys hold bits in the order of the HID modifier byte; their usages begin at E0."""
    return [0xE0 + bit for bit in range(8) if code >> bit & 1]


def _may_type(key):
    """Unless it is known to type nothing: a macro of KMK's may type anything."""
    return not (isinstance(key, (ConsumerKey, MouseKey)) or type(key).__name__ in _TYPE_NOTHING)


def _strokes(key, is_pressed):
    """(usage, pressed) as the computer sees it; a modified key is down, key, up again, as it is typed."""
    if isinstance(key, ModifierKey):
        return [(usage, is_pressed) for usage in _modifiers(key.code)]
    if isinstance(key, ModifiedKey):
        inner = _strokes(key.key, is_pressed) if key.key is not None else []
        if not is_pressed:
            return inner
        mods = _modifiers(key.modifier.code)
        return [(m, True) for m in mods] + inner + [(m, False) for m in mods]
    if isinstance(key, KeyboardKey) and 4 <= key.code <= 0xA4:
        return [(key.code, is_pressed)]
    return []
