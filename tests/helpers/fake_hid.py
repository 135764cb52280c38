# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the module of the package hidapi, with what the real one was seen to do (hidapi 0.15.0)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any


class FakeHidModule:
    """Devices by path. `written` is every write with its report id."""

    def __init__(self, entries: Iterable[dict[str, Any]] = ()) -> None:
        self.entries = list(entries)
        self.written: list[bytes] = []
        self.incoming: deque[list[int] | Exception] = deque()
        self.read_calls: list[tuple[int, int]] = []
        self.write_result: Callable[[int], int] = lambda size: size
        self.openable = True
        self.closed = 0

    def enumerate(self) -> list[dict[str, Any]]:
        return list(self.entries)

    def device(self) -> _FakeDevice:
        return _FakeDevice(self)


class _FakeDevice:
    def __init__(self, module: FakeHidModule) -> None:
        self._module = module

    def open_path(self, path: bytes) -> None:
        assert isinstance(path, bytes)
        if not self._module.openable:
            raise OSError("open failed")

    def close(self) -> None:
        self._module.closed += 1

    def read(self, max_length: int, timeout_ms: int = 0) -> list[int]:
        self._module.read_calls.append((max_length, timeout_ms))
        assert timeout_ms > 0, "hidapi would wait for ever"
        if not self._module.incoming:
            return []
        item = self._module.incoming.popleft()
        if isinstance(item, Exception):
            raise item
        return item

    def write(self, buff: bytes) -> int:
        self._module.written.append(bytes(buff))
        return self._module.write_result(len(buff))


def entry(path: str, usage: tuple[int, int] = (0xFF60, 0x61), **others: Any) -> dict[str, Any]:
    """One line of hidapi's list."""
    return {
        "path": path.encode(),
        "vendor_id": 0xFEED,
        "product_id": 0x6061,
        "serial_number": "0",
        "release_number": 0x0111,
        "manufacturer_string": "somebody",
        "product_string": "Board",
        "usage_page": usage[0],
        "usage": usage[1],
        "interface_number": 1,
        **others,
    }
