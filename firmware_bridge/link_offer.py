# SPDX-License-Identifier: Apache-2.0
"""What the accept key may type: the offered piece of the picture that is shown, and what became of it.

A keyboard forgets an offer with every completed picture, with every key that may type, and with every press
of the accept key, so what it has is compared with what is wanted each time; nothing is offered before the
picture is acknowledged. An offer that was typed, or that a key was pressed after, is not made again with
the same picture: what is typed is what stands there for the text as it is.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from firmware_bridge.display.frame import DisplayFrame, TextFrame
from firmware_bridge.link_channel import Channel, Step
from firmware_bridge.protocol.capabilities import Capabilities
from firmware_bridge.protocol.messages import Offer

_REMEMBERED_FRAMES = (
    16  # an accept that is told later than this many frames is told without its text
)


@dataclass(frozen=True, slots=True)
class Picture:
    """What the display shall show, and the piece of its text that the accept key may type.

    Raises:
        ValueError: the offer is no piece of one row of the text.
    """

    frame: DisplayFrame = field(repr=False)
    offer: Offer | None = None

    def __post_init__(self) -> None:
        if self.offer is not None and not 0 < self.offer.count == len(self.offered_text()):
            raise ValueError("only a piece of one row of the shown text can be offered")

    def offered_text(self) -> str:
        """The characters of the offer; empty without one."""
        offer = self.offer
        if offer is None or not isinstance(self.frame, TextFrame):
            return ""
        if not (0 <= offer.row < len(self.frame.rows) and offer.column >= 0):
            return ""
        return self.frame.rows[offer.row][offer.column : offer.column + offer.count]


class OfferChannel:
    """The offer of one keyboard; takes its turns as a `Channel` does."""

    def __init__(self, display: Channel[Picture]) -> None:
        self._display = display
        self._board: Capabilities | None = None  # while the keyboard lets us offer
        self._on_board: tuple[Picture, int] | None = None  # with the number of the display's update
        self._over: Picture | None = None  # typed or refused
        self._sending: Picture | None = None
        self._numbered: OrderedDict[int, Picture] = OrderedDict()

    def allow(self, board: Capabilities | None) -> None:
        """From now on the accept key of `board` may type; None: it may not, and has forgotten all offers."""
        if board is None:
            self._on_board = None
        self._board = board

    def forget(self) -> None:
        """A new subscription: the keyboard knows of no offer."""
        self._on_board = None
        self._numbered.clear()

    def due(self) -> float:
        """As `Channel.due`."""
        return float("inf") if self._change() is None else float("-inf")

    def next_step(self, now: float, board: Capabilities) -> Step | None:
        """As `Channel.next_step`."""
        change = self._change()
        if change is None:
            return None
        self._sending, offer = change
        return Step(offer)

    def sent_as(self, seq: int) -> None:
        """The frame of the last `next_step` goes out under this number."""
        if self._sending is not None:
            self._numbered.pop(seq, None)
            self._numbered[seq] = self._sending
            while len(self._numbered) > _REMEMBERED_FRAMES:
                self._numbered.popitem(last=False)

    def acknowledged(self) -> bool:
        """As `Channel.acknowledged`."""
        picture = self._sending
        offered = picture is not None and picture.offer is not None
        self._on_board = (picture, self._display.updates) if picture and offered else None
        return True

    def refused(self) -> None:
        """The keyboard will not offer this."""
        self._over = self._sending
        self._on_board = None

    def pressed(self, seq: int, count: int) -> str:
        """The accept key typed `count` characters that were offered by the frame `seq`: which ones.

        Empty: none were typed, or it is not known any more which. The keyboard has no offer afterwards.
        """
        self._on_board = None
        picture = self._numbered.get(seq) if count else None
        if picture is None:
            return ""
        self._over = picture
        return picture.offered_text()[:count]

    def outdated(self) -> None:
        """A key was pressed: the keyboard has no offer, and none is made with the picture of before it."""
        self._on_board = None
        self._over = self._display.wanted

    def _change(self) -> tuple[Picture, Offer] | None:
        """The frame that the keyboard needs now, and for which picture."""
        picture = self._display.at_rest
        if self._board is None or picture is None:
            return None
        offer = picture.offer
        if offer is None or picture is self._over or not _fits(offer, self._board):
            offer = None
        before = None
        if self._on_board is not None and self._on_board[1] == self._display.updates:
            before = self._on_board[0].offer
        if offer == before:
            return None
        if offer is None:
            assert before is not None
            return Picture(picture.frame), Offer(before.row, before.column, 0)
        return picture, offer


def _fits(offer: Offer, board: Capabilities) -> bool:
    """Text is cut to the display; a piece of a suggestion must not stand for the whole."""
    return offer.row < board.rows and offer.column + offer.count <= board.columns
