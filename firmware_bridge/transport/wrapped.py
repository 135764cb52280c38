# SPDX-License-Identifier: Apache-2.0
"""A transport around another one: base of those that record, print or rewrite what passes through."""

from __future__ import annotations

from firmware_bridge.transport.base import DeviceIdentity, Transport


class WrappedTransport:
    """Passes everything on unchanged; a subclass overrides what it does otherwise."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    @property
    def identity(self) -> DeviceIdentity:
        return self._inner.identity

    @property
    def report_length(self) -> int:
        return self._inner.report_length

    @property
    def wakeable(self) -> bool:
        return self._inner.wakeable

    def wake(self) -> None:
        self._inner.wake()

    def open(self) -> None:
        self._inner.open()

    def read(self, timeout_s: float) -> bytes | None:
        return self._inner.read(timeout_s)

    def write(self, report: bytes) -> None:
        self._inner.write(report)

    def close(self) -> None:
        self._inner.close()
