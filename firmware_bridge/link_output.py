# SPDX-License-Identifier: Apache-2.0
"""What the keyboard shall show against what it has acknowledged: display, lights, status.

Each kind is a channel. The newest content wins; what came between is never sent. A channel takes up
new content only when the frames of the content before are all acknowledged and its interval is over,
so a stream of updates can neither flood the keyboard nor starve an update of its last frame. The
channels take turns frame by frame.

Any thread may set what is wanted (one attribute is replaced as a whole); all else belongs to the
link's I/O thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from firmware_bridge.display.diff import bitmap_runs, text_change
from firmware_bridge.display.frame import BitmapFrame, DisplayFrame, TextFrame
from firmware_bridge.errors import BridgeError
from firmware_bridge.lights.diff import light_messages
from firmware_bridge.lights.overlay import LightOverlay
from firmware_bridge.link_state import LinkOptions
from firmware_bridge.protocol.capabilities import Capabilities, Feature
from firmware_bridge.protocol.frames import payload_room
from firmware_bridge.protocol.messages import Message, Parts, Release, SetStatus, Status

T = TypeVar("T")

_POSITION_BYTES = 2  # row and column, or page and x, before the content of TEXT and BITMAP


@dataclass(frozen=True, slots=True)
class Step:
    """One frame of an update."""

    message: Message
    first: bool = True
    last: bool = True


class UnfitContentError(BridgeError):
    """The content does not fit this keyboard; the message says why and holds no content."""


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
    return LightOverlay(overlay.fill, overlay.effect, leds)


class Channel(Generic[T]):
    """One kind of output. None as content: nothing of ours, the part belongs to the firmware."""

    def __init__(
        self,
        part: Parts,
        steps: Callable[[T | None, T, Capabilities], list[Step]],
        interval_s: Callable[[T | None], float],
    ) -> None:
        self.part = part
        self._plan = steps
        self._interval_s = interval_s
        self._wanted: tuple[T | None, float] = (None, 0.0)
        self._target_at = 0.0
        self._begun = False
        self._not_before = float("-inf")
        self.forget()

    def want(self, content: T | None, now: float) -> bool:
        """Any thread: this content from now on; whether it is another one than before."""
        if content == self._wanted[0]:
            return False
        self._wanted = (content, now)
        return True

    def forget(self) -> None:
        """The firmware shows nothing of ours (a new subscription): send all that is wanted anew."""
        self._steps: deque[Step] = deque()
        self._target: T | None = None  # what the steps lead to
        self._settled: T | None = None  # the last target that was reached or refused
        self._shown: T | None = None
        self._shown_known = True

    def due(self) -> float:
        """When `next_step` may have a frame: a clock time, infinite if there is nothing to do."""
        if self._steps:
            return float("-inf")
        return self._not_before if self._wanted[0] != self._settled else float("inf")

    def next_step(self, now: float, board: Capabilities) -> Step | None:
        """The frame to send now; the same one until `acknowledged` or `refused`.

        Raises:
            UnfitContentError: the wanted content cannot be shown; it is given up.
        """
        if not self._steps and now >= self.due():
            self._take_up(now, board)
        return self._steps[0] if self._steps else None

    def acknowledged(self) -> bool:
        """The frame of the last `next_step` was carried out; whether it was the last of its update."""
        self._steps.popleft()
        self._begun = True
        if self._steps:
            return False
        self._settled = self._shown = self._target
        self._shown_known = True
        return True

    def refused(self) -> None:
        """The keyboard will not show this content: give it up until another is wanted."""
        self._steps.clear()
        self._settled = self._target
        self._shown_known = False

    @property
    def begun(self) -> bool:
        """Whether a frame of the update under way was acknowledged already."""
        return self._begun

    @property
    def wanted_at(self) -> float:
        """When the content under way was wanted."""
        return self._target_at

    def _take_up(self, now: float, board: Capabilities) -> None:
        self._target, self._target_at = self._wanted
        self._begun = False
        try:
            self._steps.extend(self._plan_for(self._target, board))
        except UnfitContentError:
            self.refused()
            raise
        if self._steps:
            self._not_before = now + self._interval_s(self._target)
        else:
            self._settled = self._shown = self._target

    def _plan_for(self, target: T | None, board: Capabilities) -> list[Step]:
        if target is None:
            untouched = self._shown is None and self._shown_known
            return [] if untouched else [Step(Release(self.part))]
        if not self._shown_known:
            return [Step(Release(self.part)), *self._plan(None, target, board)]
        return self._plan(self._shown, target, board)


AnyChannel = Channel[DisplayFrame] | Channel[LightOverlay] | Channel[Status]


class Output:
    """The three channels of one keyboard and their turns."""

    def __init__(self, options: LinkOptions) -> None:
        self.display: Channel[DisplayFrame] = Channel(
            Parts.DISPLAY,
            display_steps,
            lambda frame: (
                options.bitmap_interval_s
                if isinstance(frame, BitmapFrame)
                else options.text_interval_s
            ),
        )
        self.lights: Channel[LightOverlay] = Channel(
            Parts.LIGHTS, light_steps, lambda _: options.lights_interval_s
        )
        self.status: Channel[Status] = Channel(
            Parts.STATUS, status_steps, lambda _: options.status_interval_s
        )
        self._turns: deque[AnyChannel] = deque((self.display, self.status, self.lights))

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
