# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
# mypy: ignore-errors
"""The person's two keys: capture (keys to the host only) and accept (type what the display shows).

A part of `Session`, which puts events into the ring; as thock_capture.c does it.
"""

WANT_CAPTURE, WANT_ACCEPT = 4, 8
_CAPTURE, _ACCEPT_EVENT = 4, 7  # kinds of events; bit 0: pressed
_CAPTURED = 16
_DONE, _N_LENGTH, _N_RANGE, _N_BUSY = 0, 3, 4, 5
_FIRST_OWN_MACRO = 16


class OwnKeys:
    """`_wanted`, `_ring`, `_event`, `text`, `status`, `columns`, `rows`, `changed` are those of the session."""

    capturing = False
    _offer = None  # row, column, characters, number of its frame
    _typed_since = False  # a key was pressed that the picture does not know of

    # ------------------------------------------------------------ capture

    def begin_capture(self, now):
        """From now on keys go to the host only. False: it did not ask for that, or cannot be told."""
        if not self.capturing and self._event(WANT_CAPTURE, _CAPTURE | 1, 0, 0, 0, now, 1):
            self.capturing = True
            self.changed = True
        return self.capturing

    def end_capture(self, now):
        if self.capturing:
            self._event(WANT_CAPTURE, _CAPTURE, 0, 0, 0, now, 0)
            self._forget_capture()

    def captured_key(self, row, column, usage, pressed, now):
        """A key that is kept from the computer, or the release of one."""
        self._event(1, _CAPTURED | (1 if pressed else 0), row, column, usage, now, self._spare())

    def _spare(self):
        """While keys are captured one place stays free, so that the end of it always reaches the host."""
        return 1 if self.capturing else 0

    def _forget_capture(self):
        if self.capturing:
            self.capturing = False
            self.changed = True

    # ------------------------------------------------------------ accept

    def accept(self, now):
        """The accept key was pressed: the characters to type, may be none. An offer is good for one press."""
        text = ""
        number = 0
        if self._wanted & WANT_ACCEPT and self._offer and not self.capturing and self._is_visible():
            row, column, count, number = self._offer
            line = self.text[row]
            text = (line + " " * (self.columns - len(line)))[column : column + count]
        self._offer = None
        if not text:
            number = 0
        # The host must know what was typed: without a place for the event nothing is.
        kind = _ACCEPT_EVENT
        told = self._event(WANT_ACCEPT, kind, len(text), number, 0, now, self._spare())
        return text if told else ""

    def _is_visible(self):
        """Every character of the offer is drawn, none under the status glyph."""
        row, column, count, _ = self._offer
        under_glyph = row == 0 and column + count == self.columns and self.status != 0
        return self.text is not None and not self.changed and not under_glyph

    def _take_offer(self, payload, number):
        if len(payload) != 3:
            return _N_LENGTH
        row, column, count = payload
        if self._typed_since and count:
            return _N_BUSY  # it was sent before the host knew of the key
        if self.text is None or row >= self.rows or column >= self.columns:
            return _N_RANGE
        if count > self.columns - column:
            return _N_RANGE
        self._offer = (row, column, count, number) if count else None
        return _DONE

    def _outdate_offer(self, usage):
        """A key was pressed: the picture is about the text before it. Modifiers type nothing by themselves."""
        if not 0xE0 <= usage <= 0xE7:
            self._offer = None
            self._typed_since = True

    def _renew_offer(self):
        """Another picture was completed: it knows of all keys but those in the ring."""
        self._offer = None
        self._typed_since = self._typed_since and self._press_waits()

    def _press_waits(self):
        for event in self._ring:
            kind = event[0] & 15
            if kind == 1 or (kind == 3 and event[1] >= _FIRST_OWN_MACRO):
                return True
        return False
