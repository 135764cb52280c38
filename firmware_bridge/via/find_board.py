# SPDX-License-Identifier: Apache-2.0
"""Which lights a keyboard without our module has."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from firmware_bridge.discovery.candidates import is_vial
from firmware_bridge.errors import BridgeError
from firmware_bridge.transport.base import DeviceIdentity
from firmware_bridge.via.board import LightBoard
from firmware_bridge.via.conversation import Conversation, UnhandledError
from firmware_bridge.via.stock_board import StockBoard, find_kinds
from firmware_bridge.via.viable import is_viable
from firmware_bridge.via.vial import VialRgbBoard, ask_vial, refuse_while_unlocking


class NoLightsError(BridgeError):
    """The firmware lets no program set the lights."""

    def __init__(self) -> None:
        super().__init__("the firmware of the keyboard lets no program set its lights")


@dataclass(frozen=True, slots=True)
class FoundBoard:
    """`version` is VIA's."""

    board: LightBoard
    version: int
    is_vial: bool


def find_board(
    conversation: Conversation,
    identity: DeviceIdentity,
    sleep: Callable[[float], None] = time.sleep,
) -> FoundBoard:
    """The lights of the keyboard behind `conversation`, which must be an FF60/61 interface.

    Raises:
        NoLightsError, UnlockInProgressError: see there.
        NotViaError, NoAnswerError, EchoError, OtherProgramError, ViableError: of `Conversation`.
    """
    vial = is_vial(identity)
    if vial:
        refuse_while_unlocking(conversation)
    version = conversation.version()
    if is_viable(identity):
        conversation.use_client_ids()
    if vial and _has_vialrgb(conversation):
        board = VialRgbBoard.open(conversation, sleep)
        if board is not None:
            return FoundBoard(board, version, vial)
    kinds = find_kinds(conversation, version)
    if not kinds:
        raise NoLightsError
    return FoundBoard(StockBoard(conversation, kinds, sleep), version, vial)


def _has_vialrgb(conversation: Conversation) -> bool:
    try:
        return ask_vial(conversation).has_rgb
    except UnhandledError:
        return False
