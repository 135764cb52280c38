# SPDX-License-Identifier: Apache-2.0
"""Numbers <-> payload bytes, with errors that name the message."""

from __future__ import annotations

import struct

from firmware_bridge.errors import FrameError


def pack_fields(layout: struct.Struct, name: str, *values: int | bytes) -> bytes:
    """Raises FrameError: a number does not fit its field."""
    try:
        return layout.pack(*values)
    except struct.error as error:
        raise FrameError(name, str(error)) from None


def unpack_fields(layout: struct.Struct, name: str, payload: bytes) -> tuple[int, ...]:
    """Raises FrameError: bytes are missing. More than `layout` has are ignored."""
    if len(payload) < layout.size:
        raise FrameError(name, f"{len(payload)} bytes of payload, needs {layout.size}")
    return layout.unpack_from(payload)


def first_byte(name: str, payload: bytes) -> int:
    """Raises FrameError: there is none."""
    if not payload:
        raise FrameError(name, "empty payload")
    return payload[0]
