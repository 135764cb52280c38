# SPDX-License-Identifier: Apache-2.0
"""Moods over the person's own lighting on a board that has only one lighting: what was before is kept."""

from __future__ import annotations

from firmware_bridge.lights.overlay import LightOverlay
from firmware_bridge.transport.base import DeviceIdentity
from firmware_bridge.via.baseline import BaselineStore, baseline_for
from firmware_bridge.via.board import LightBoard


class Moods:
    """Belongs to the thread that talks to `board`. Methods raise what `Conversation.ask` raises; whatever was
    done by then is known to `store`, so that a later `give_back` puts it right.
    """

    def __init__(self, board: LightBoard, store: BaselineStore, identity: DeviceIdentity) -> None:
        self._board = board
        self._store = store
        self._identity = identity
        self._record = store.get(identity)

    def show(self, overlay: LightOverlay) -> None:
        """Show the nearest thing to `overlay` that the board can do; the person's own lights if it is none."""
        plan = self._board.plan(overlay)
        if not plan:
            self.give_back()
            return
        record = self._record
        if record is None or not record.active:
            record = baseline_for(record, self._board.read())
        self._record = record = record.about_to_write()
        self._store.put(self._identity, record)
        self._board.write(plan)
        self._board.paint(overlay, record.baseline)
        self._record = record.written(self._board.read())
        self._store.put(self._identity, self._record)

    def give_back(self) -> None:
        """Set back what the person had, where it is still as we left it; also after a crash of ours."""
        record = self._record
        if record is None or not record.active:
            return
        settings = record.to_restore(self._board.read())
        if settings:
            self._board.restore(settings)
        self._record = record.given_back(settings, self._board.read())
        self._store.put(self._identity, self._record)
