# SPDX-License-Identifier: Apache-2.0
"""One Thock at a time on a keyboard: a lock file for each, held while the keyboard is open.

The lock is the operating system's and ends with the process. The file's name tells nothing of the keyboard.
"""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

from filelock import FileLock, Timeout

from firmware_bridge.errors import DeviceBusyError
from firmware_bridge.transport.base import DeviceIdentity, Transport
from firmware_bridge.transport.wrapped import WrappedTransport

_log = logging.getLogger(__name__)


class LockedTransport(WrappedTransport):
    """A keyboard that nobody else opens who does the same."""

    def __init__(self, inner: Transport, folder: Path) -> None:
        """`folder` is for the lock files of this user."""
        super().__init__(inner)
        self._lock = FileLock(folder / _file_name(inner.identity), mode=0o600)

    def open(self) -> None:
        """See `Transport.open`.

        Raises:
            DeviceBusyError: another Thock has it open.
        """
        if not self._lock.is_locked:
            try:
                self._lock.acquire(timeout=0)
            except Timeout:
                raise DeviceBusyError(
                    "Another Thock is using the keyboard.", "End it; Thock looks again by itself."
                ) from None
            except OSError as error:  # a lock is a courtesy; the keyboard works without
                _log.warning("no lock on the keyboard: %s", error.strerror)
        self._inner.open()

    def close(self) -> None:
        try:
            self._inner.close()
        finally:
            self._lock.release()


def _file_name(identity: DeviceIdentity) -> str:
    who = (identity.vendor_id, identity.product_id, identity.serial, identity.location)
    return f"keyboard-{hashlib.sha256(repr(who).encode()).hexdigest()[:16]}.lock"
