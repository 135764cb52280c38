# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
# mypy: ignore-errors
"""The keyboard's end of docs/PROTOCOL.md in Python. It answers as the C core does for the same parts.

No clock, no port and no display are touched here: reports and times go in, answers go to `send`.
"""

from thock_lights import Lights
from thock_own_keys import WANT_ACCEPT, WANT_CAPTURE, OwnKeys
from thock_wire import HEAD_BYTES, is_frame, make_report

_TIMEOUT_MS = 3000
_TICKS = 1 << 29  # supervisor.ticks_ms() counts to here
_NONCE_MASK = (0x54, 0x4F, 0x43, 0x4B)
_EVENTS_PER_FRAME = 3
_FIRST_OWN_MACRO = 16  # macros of the keymap, which may type; below are the companion keys

KEYS, MACROS, TEXT, LIGHTS, STATUS, CAPTURE, ACCEPT = 1, 2, 4, 16, 32, 64, 128

_HELLO, _SUBSCRIBE, _KEY, _TEXT, _BITMAP, _LIGHTS, _STATUS, _RELEASE, _ACK, _NAK = range(10)
_ACCEPT = 11
_DONE, _N_VERSION, _N_TYPE, _N_LENGTH, _N_RANGE, _N_BUSY, _N_NOT_SUBSCRIBED, _N_UNSUPPORTED = range(
    8
)
_NEEDS = {_TEXT: TEXT, _BITMAP: 8, _LIGHTS: LIGHTS, _STATUS: STATUS}


class Session(OwnKeys):
    """`send` takes a report and says whether it had room for it.

    `changed` is set whenever the text, the status or `capturing` changes; the owner clears it when it has
    shown them. `capture` and `accept`: the board has these keys; both need a display.
    """

    def __init__(
        self,
        send,
        uid,
        columns=0,
        rows=0,
        led_count=0,
        ring_size=16,
        build=1,
        capture=False,
        accept=False,
    ):
        self._send = send
        self._uid = uid
        self.columns = columns
        self.rows = rows
        self._ring_size = ring_size
        self._build = build
        self.features = KEYS | MACROS | STATUS
        if columns:
            self.features |= TEXT
        if columns and capture:
            self.features |= CAPTURE
        if columns and accept:
            self.features |= ACCEPT
        if led_count:
            self.features |= LIGHTS
        self.lights = Lights(led_count)
        self._reply = None
        self._end()

    def _end(self):
        self._client = 0
        self._wanted = 0
        self._subscribed_at = 0
        self._began = 0
        self._ring = []
        self._dropped = 0
        self._key_seq = 0
        self._first_index = 0
        self._forget_capture()
        self._clear_text()
        self.lights.clear()
        self.status = 0

    def _clear_text(self):
        self.text = None  # a list of rows while the host shows something
        self._back = [""] * self.rows
        self._offer = None
        self.changed = True

    @property
    def subscribed(self):
        return self._client != 0

    def forget(self):
        """The host is gone: give everything back and drop what waits."""
        self._reply = None
        self._end()

    # ------------------------------------------------------------ events

    def key(self, row, column, usage, pressed, now):
        if pressed:
            self._outdate_offer(usage)
        self._event(KEYS, 1 if pressed else 0, row, column, usage, now, self._spare())

    def macro(self, number, pressed, now):
        if pressed and number >= _FIRST_OWN_MACRO:
            self._outdate_offer(0)
        self._event(MACROS, 3 if pressed else 2, number, 0, 0, now, self._spare())

    def _event(self, wanted, kind, row, column, usage, now, spare):
        """Whether it waits for the host; `spare` places stay free."""
        if not self._wanted & wanted:
            return False
        if len(self._ring) + spare >= self._ring_size:
            self._dropped = min(self._dropped + 1, 255)
            return False
        self._ring.append(bytes((kind, row, column, usage, 0, now & 0xFF, now >> 8 & 0xFF)))
        return True

    def task(self, now):
        """Send what waits: an answer, or else one frame of events. To be called in every turn."""
        self._end_if_silent(now)
        if not self._send_reply() or not self._ring:
            return
        events = self._ring[:_EVENTS_PER_FRAME]
        head = bytes((self._first_index & 0xFF, self._first_index >> 8, self._dropped))
        if self._send(make_report(_KEY, self._client, self._key_seq, head + b"".join(events))):
            self._ring = self._ring[len(events) :]
            self._first_index = (self._first_index + len(events)) & 0xFFFF
            self._key_seq = (self._key_seq + 1) & 0xFF
            self._dropped = 0

    def _send_reply(self):
        if self._reply is not None and self._send(self._reply):
            self._reply = None
        return self._reply is None

    def _end_if_silent(self, now):
        silent = (now - self._subscribed_at) % _TICKS
        if self._client and _TIMEOUT_MS <= silent < _TICKS // 2:
            self._end()

    # ------------------------------------------------------------ frames

    def receive(self, report, now):
        """One report from the host. False: it is no frame of ours."""
        if not is_frame(report):
            return False
        version, kind = report[2] >> 4, report[2] & 0x0F
        client, seq, flags = report[3], report[4], report[5]
        payload = bytes(report[HEAD_BYTES : HEAD_BYTES + (flags & 0x3F)])
        self._end_if_silent(now)
        if version == 1 and kind in (_KEY, _ACK, _NAK):
            return True  # an echo of what we sent
        if not self._send_reply():
            return True  # as if lost; the host asks again
        reason = self._obey(version, kind, client, seq, flags, payload, now)
        if reason != _DONE:
            self._reply = make_report(_NAK, client, seq, bytes((kind, reason)))
        elif kind == _HELLO:
            self._reply = make_report(_HELLO, client, seq, self._caps(payload))
        else:
            done = bytes((kind,))
            if kind == _SUBSCRIBE:
                done += bytes((self._began & 0xFF, self._began >> 8))
            self._reply = make_report(_ACK, client, seq, done)
        self._send_reply()
        return True

    def _obey(self, version, kind, client, seq, flags, payload, now):
        if version != 1:
            return _N_VERSION
        if kind > _NAK and not (kind == _ACCEPT and self.features & ACCEPT):
            return _N_TYPE
        if client == 0:
            return _N_RANGE
        if kind == _HELLO:
            return self._hello(client, payload)
        if self._client not in (0, client):
            return _N_BUSY
        needed = _NEEDS.get(kind, 0)
        if needed and not self._client:
            return _N_NOT_SUBSCRIBED
        if needed and not self.features & needed:
            return _N_UNSUPPORTED
        if kind == _ACCEPT:
            if not self._wanted & WANT_ACCEPT:
                return _N_NOT_SUBSCRIBED
            return self._take_offer(payload, seq)
        if kind == _TEXT:
            return self._text(flags, payload)
        if kind == _LIGHTS:
            return self.lights.take(payload)
        if len(payload) != 1:
            return _N_LENGTH
        if kind == _SUBSCRIBE:
            return self._subscribe(client, payload[0], now)
        if kind == _STATUS:
            return self._set_status(payload[0])
        return self._release(payload[0])

    def _hello(self, client, payload):
        if len(payload) != 6:
            return _N_LENGTH
        if payload[4] > 1 or payload[5] < 1:
            return _N_VERSION
        if client == self._client:
            self._end()
        return _DONE

    def _caps(self, hello):
        shown = self.columns != 0
        caps = bytearray(24)
        for i in range(4):
            caps[i] = hello[i] ^ _NONCE_MASK[i]
        caps[4] = 0x11
        caps[5] = 32
        caps[6:12] = self._uid
        caps[12] = 1 if shown else 0
        caps[13] = self.columns * 6
        caps[14] = self.rows * 8
        caps[16] = self.columns
        caps[17] = self.rows
        caps[18] = self.lights.count & 0xFF
        caps[19] = self.lights.count >> 8
        caps[20] = self.features
        caps[22] = self._ring_size
        caps[23] = self._build
        return caps

    def _subscribe(self, client, wanted, now):
        if wanted > 31:
            return _N_RANGE
        has = KEYS | MACROS
        if self.features & CAPTURE:
            has |= WANT_CAPTURE
        if self.features & ACCEPT:
            has |= WANT_ACCEPT
        if wanted & ~has:
            return _N_UNSUPPORTED
        # What the host no longer allows ends here: no key stays swallowed, no old offer comes back to life.
        if not wanted & WANT_CAPTURE:
            self._forget_capture()
        if not wanted & WANT_ACCEPT:
            self._offer = None
        if not self._client:
            self._began = now & 0xFFFF
        self._client = client
        self._wanted = wanted
        self._subscribed_at = now
        return _DONE

    def _set_status(self, status):
        if status > 5:
            return _N_RANGE
        self.changed = self.changed or status != self.status
        self.status = status
        return _DONE

    def _release(self, what):
        if what > 15:
            return _N_RANGE
        if what & 8:
            self._end()
            return _DONE
        if what & 1:
            self._clear_text()
        if what & 2:
            self.lights.clear()
        if what & 4:
            self._set_status(0)
        return _DONE

    def _text(self, flags, payload):
        if len(payload) < 2:
            return _N_LENGTH
        row, column, run = payload[0], payload[1], payload[2:]
        if row >= self.rows or column >= self.columns or len(run) > self.columns - column:
            return _N_RANGE
        for byte in run:
            if not 0x20 <= byte <= 0x7E:
                return _N_RANGE
        if flags & 0x80:
            self._back = [""] * self.rows
        kept = self._back[row]
        self._back[row] = kept[:column] + " " * (column - len(kept)) + str(run, "utf-8")
        if flags & 0x40:
            self._renew_offer()
            if self.text != self._back:
                self.text = list(self._back)
                self.changed = True
        return _DONE
