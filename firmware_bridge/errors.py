# SPDX-License-Identifier: Apache-2.0
"""One exception tree for the bridge. No message ever contains key content."""

from __future__ import annotations

from firmware_bridge.texts import Text, as_text


class BridgeError(Exception):
    """Base of every error that the bridge raises on purpose."""


class TransportError(BridgeError):
    """The device cannot be used now; `advice` tells the person what to do."""

    def __init__(self, reason: str, advice: str = "") -> None:
        said, more = as_text(reason), as_text(advice)
        super().__init__(Text("{reason} {advice}", reason=said, advice=more) if advice else said)
        self.reason = reason
        self.advice = advice


class DeviceGoneError(TransportError):
    """The device was unplugged, or stopped taking reports."""


class DeviceBusyError(TransportError):
    """Another program holds the device."""


class DevicePermissionError(TransportError):
    """The operating system does not let this user open the device."""


class FrameError(BridgeError):
    """A report or payload is not one of ours. `field` is its name in docs/PROTOCOL.md."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field


class ReplayMismatchError(BridgeError):
    """The traffic differs from the recording; the message says at which line."""
