# SPDX-License-Identifier: Apache-2.0
"""Client numbers and nonces of a recording, for a link that shall repeat it byte for byte."""

from __future__ import annotations

from pathlib import Path

from firmware_bridge.errors import FrameError, ReplayMismatchError
from firmware_bridge.link_state import SessionIds, SessionIdSource
from firmware_bridge.protocol.frames import FrameType, decode
from firmware_bridge.protocol.messages import Hello
from firmware_bridge.transport.replay import read_recording


def recorded_session_ids(path: Path) -> SessionIdSource:
    """Gives the ids of each connection in the recording, in order, and the last ones for ever after.

    Raises:
        OSError, ReplayMismatchError: see `read_recording`; the latter also if there is no HELLO.
    """
    found: list[SessionIds] = []
    for line in read_recording(path):
        if line.direction != "out":
            continue
        try:
            frame = decode(line.report)
            if frame.type is not FrameType.HELLO:
                continue
            ids = SessionIds(frame.client, Hello.unpack(frame.payload).nonce)
        except FrameError:
            continue
        if not found or found[-1] != ids:  # a repeated HELLO keeps its nonce
            found.append(ids)
    if not found:
        raise ReplayMismatchError("the recording has no HELLO")
    remaining = iter(found)
    return lambda: next(remaining, found[-1])
