# SPDX-License-Identifier: Apache-2.0
"""What the keyboard shall show: display, lights and status as channels, and the offer for the accept key.

They take turns frame by frame. What has to be sent is planned here, from what is shown and what the
board can do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from firmware_bridge.display.diff import bitmap_runs, text_change
from firmware_bridge.display.frame import BitmapFrame, DisplayFrame, TextFrame
from firmware_bridge.lights.diff import light_messages
from firmware_bridge.lights.overlay import LightOverlay
from firmware_bridge.link_channel import Channel, Step, UnfitContentError
from firmware_bridge.link_offer import OfferChannel, Picture
from firmware_bridge.link_state import LinkOptions
from firmware_bridge.protocol.capabilities import Capabilities, Feature
from firmware_bridge.protocol.frames import payload_room
from firmware_bridge.protocol.messages import EventKinds, Message, Offer, Parts, SetStatus, Status

_POSITION_BYTES = 2  # row and column, or page and x, before the content of TEXT and BITMAP


def display_steps(
    shown: DisplayFrame | None, wanted: DisplayFrame, board: Capabilities
) -> list[Step]:
    """Frames that replace `shown`; text is cut to the display's rows and columns.

    Raises:
        UnfitContentError: a bitmap of another size than the display.
    """
    room = payload_room(board.report_length) - _POSITION_BYTES
    if isinstance(wanted, TextFrame):
        if Feature.TEXT not in board.features:
            return []
        before = _cut(shown, board) if isinstance(shown, TextFrame) else None
        change = text_change(before, _cut(wanted, board), room)
        return _group(change.runs, marked=change.clears)
    if Feature.BITMAP not in board.features:
        return []
    if (wanted.width, wanted.height) != (board.width, board.height):
        raise UnfitContentError(
            f"a bitmap of {wanted.width}x{wanted.height} on a display of {board.width}x{board.height}"
        )
    shown_bitmap = shown if isinstance(shown, BitmapFrame) else None
    return _group(bitmap_runs(shown_bitmap, wanted, room), marked=True)


def light_steps(
    shown: LightOverlay | None, wanted: LightOverlay, board: Capabilities
) -> list[Step]:
    """Frames that replace `shown`; LEDs that the board lacks are left out."""
    if Feature.LIGHTS not in board.features:
        return []
    before = _reachable(shown or LightOverlay(), board)
    messages = light_messages(before, _reachable(wanted, board), payload_room(board.report_length))
    return _group(messages, marked=True)


def status_steps(shown: Status | None, wanted: Status, board: Capabilities) -> list[Step]:
    """The frame that replaces `shown`."""
    if Feature.STATUS not in board.features or wanted == (shown or Status.IDLE):
        return []
    return [Step(SetStatus(wanted))]


def _group(messages: Sequence[Message], *, marked: bool) -> list[Step]:
    """`marked`: the first frame carries FIRST; on TEXT that would clear the picture."""
    end = len(messages) - 1
    return [Step(m, first=marked and i == 0, last=i == end) for i, m in enumerate(messages)]


def _cut(frame: TextFrame, board: Capabilities) -> TextFrame:
    if len(frame.rows) <= board.rows and all(len(row) <= board.columns for row in frame.rows):
        return frame
    return TextFrame(tuple(row[: board.columns] for row in frame.rows[: board.rows]))


def _reachable(overlay: LightOverlay, board: Capabilities) -> LightOverlay:
    leds = {led: rgb for led, rgb in overlay.leds.items() if 0 <= led < board.led_count}
    keys = overlay.keys if Feature.KEY_LIGHTS in board.features else {}
    return LightOverlay(overlay.fill, overlay.effect, leds, keys)


AnyChannel = Channel[Picture] | Channel[LightOverlay] | Channel[Status] | OfferChannel


class Output:
    """All output of one keyboard, and its turns."""

    def __init__(self, options: LinkOptions) -> None:
        self.display: Channel[Picture] = Channel(
            Parts.DISPLAY,
            lambda shown, wanted, board: display_steps(
                None if shown is None else shown.frame, wanted.frame, board
            ),
            lambda picture: (
                options.bitmap_interval_s
                if picture is not None and isinstance(picture.frame, BitmapFrame)
                else options.text_interval_s
            ),
        )
        self.lights: Channel[LightOverlay] = Channel(
            Parts.LIGHTS, light_steps, lambda _: options.lights_interval_s
        )
        self.status: Channel[Status] = Channel(
            Parts.STATUS, status_steps, lambda _: options.status_interval_s
        )
        self.offer = OfferChannel(self.display)
        self.allowed = EventKinds(0)
        """Of CAPTURES and TYPING, what the person allows; any thread may replace it."""
        self._turns: deque[AnyChannel] = deque((self.display, self.offer, self.status, self.lights))

    def show(self, frame: DisplayFrame | None, now: float, offer: Offer | None = None) -> bool:
        """Any thread: see `Link.show`; None: nothing of ours. Whether it is another picture than before."""
        return self.display.want(None if frame is None else Picture(frame, offer), now)

    def kinds(self, board: Capabilities | None) -> EventKinds:
        """What to ask for: all events that the board has, captures and typing only where they are allowed."""
        if board is None:
            return EventKinds(0)
        kinds = EventKinds(board.features & (Feature.KEYS | Feature.MACROS))
        if Feature.CAPTURE in board.features:
            kinds |= self.allowed & EventKinds.CAPTURES
        if Feature.ACCEPT in board.features:
            kinds |= self.allowed & EventKinds.TYPING
        if Feature.VIA_FORM in board.features:
            kinds |= EventKinds.VIA_FORM
        return kinds

    def forget(self) -> None:
        """See `Channel.forget`."""
        for channel in self._turns:
            channel.forget()

    def due(self) -> float:
        """When `next_turn` may have a frame; infinite if nothing is to do."""
        return min(channel.due() for channel in self._turns)

    def next_turn(self, now: float, board: Capabilities) -> tuple[AnyChannel, Step] | None:
        """The channel whose turn it is, and its frame.

        Raises:
            UnfitContentError: see `Channel.next_step`; the other channels get their turn next time.
        """
        for channel in tuple(self._turns):
            self._turns.rotate(-1)
            step = channel.next_step(now, board)
            if step is not None:
                return channel, step
        return None
