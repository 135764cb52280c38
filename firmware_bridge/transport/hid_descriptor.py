# SPDX-License-Identifier: Apache-2.0
"""What a HID report descriptor says about reports: usages and lengths of its top-level collections.

Format: Device Class Definition for HID 1.11, section 6.2.2. Only the items that change a length or
name a collection are read; all others are skipped by their size.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

MAX_REPORT_BYTES = 4096  # more than any keyboard has; the bound keeps a broken descriptor cheap

_LONG_ITEM = 0xFE
_SIZES = (0, 1, 2, 4)  # by the two low bits of an item's first byte


class _Item(enum.IntEnum):
    """First bytes of items, without their size bits."""

    USAGE_PAGE = 0x04
    USAGE = 0x08
    REPORT_SIZE = 0x74
    INPUT = 0x80
    REPORT_ID = 0x84
    OUTPUT = 0x90
    REPORT_COUNT = 0x94
    COLLECTION = 0xA0
    PUSH = 0xA4
    POP = 0xB4
    END_COLLECTION = 0xC0


class DescriptorError(ValueError):
    """Not a report descriptor: it ends inside an item, or its collections do not match up."""


@dataclass(frozen=True, slots=True)
class Collection:
    """One top-level collection. Lengths in bytes, of its longest report, without the report id."""

    usage_page: int
    usage: int
    input_bytes: int
    output_bytes: int
    has_report_ids: bool


def parse_report_descriptor(descriptor: bytes) -> list[Collection]:
    """The top-level collections of `descriptor`, in order.

    Raises:
        DescriptorError: it is damaged.
    """
    reader = _Reader()
    for item, value, size in _items(descriptor):
        reader.take(item, value, size)
    return reader.finish()


def _items(descriptor: bytes) -> Iterator[tuple[int, int, int]]:
    """(first byte without size, value, size in bytes) of each short item."""
    at = 0
    while at < len(descriptor):
        head = descriptor[at]
        if head == _LONG_ITEM:
            if at + 1 >= len(descriptor):
                raise DescriptorError("ends inside a long item")
            at += 3 + descriptor[at + 1]
            continue
        size = _SIZES[head & 3]
        data = descriptor[at + 1 : at + 1 + size]
        if len(data) != size:
            raise DescriptorError("ends inside an item")
        yield head & 0xFC, int.from_bytes(data, "little"), size
        at += 1 + size


@dataclass(slots=True)
class _Globals:
    usage_page: int = 0
    report_size: int = 0
    report_count: int = 0
    report_id: int = 0

    @property
    def bits(self) -> int:
        return self.report_size * self.report_count


@dataclass(slots=True)
class _Lengths:
    """Bits of each report of one kind, by report id."""

    bits: dict[int, int] = field(default_factory=dict)

    def add(self, state: _Globals) -> None:
        total = self.bits.get(state.report_id, 0) + state.bits
        if total > MAX_REPORT_BYTES * 8:
            raise DescriptorError(f"a report of more than {MAX_REPORT_BYTES} bytes")
        self.bits[state.report_id] = total

    @property
    def longest_bytes(self) -> int:
        return (max(self.bits.values(), default=0) + 7) // 8


class _Reader:
    """Takes one item after the other; report lengths count within the top-level collection."""

    def __init__(self) -> None:
        self._collections: list[Collection] = []
        self._globals = _Globals()
        self._saved: list[_Globals] = []
        self._usage: int | None = None  # a local item: holds until the next main item
        self._depth = 0
        self._name = (0, 0)
        self._inputs, self._outputs = _Lengths(), _Lengths()

    def take(self, item: int, value: int, size: int) -> None:
        match item:
            case _Item.USAGE_PAGE:
                self._globals.usage_page = value
            case _Item.REPORT_SIZE:
                self._globals.report_size = value
            case _Item.REPORT_COUNT:
                self._globals.report_count = value
            case _Item.REPORT_ID:
                self._globals.report_id = value
            case _Item.PUSH:
                self._saved.append(replace(self._globals))
            case _Item.POP:
                if not self._saved:
                    raise DescriptorError("pop without push")
                self._globals = self._saved.pop()
            case _Item.USAGE if self._usage is None:
                # four bytes bring their own page in the upper half
                self._usage = value if size == 4 else self._globals.usage_page << 16 | value
            case _Item.INPUT:
                self._inputs.add(self._globals)
                self._usage = None
            case _Item.OUTPUT:
                self._outputs.add(self._globals)
                self._usage = None
            case _Item.COLLECTION:
                self._begin()
            case _Item.END_COLLECTION:
                self._end()
            case _:
                pass

    def finish(self) -> list[Collection]:
        if self._depth:
            raise DescriptorError("a collection is not closed")
        return self._collections

    def _begin(self) -> None:
        if self._depth == 0:
            usage = self._usage if self._usage is not None else self._globals.usage_page << 16
            self._name = (usage >> 16, usage & 0xFFFF)
            self._inputs, self._outputs = _Lengths(), _Lengths()
        self._depth += 1
        self._usage = None

    def _end(self) -> None:
        if self._depth == 0:
            raise DescriptorError("a collection ends that did not begin")
        self._depth -= 1
        self._usage = None
        if self._depth == 0:
            ids = {*self._inputs.bits, *self._outputs.bits}
            self._collections.append(
                Collection(
                    *self._name, self._inputs.longest_bytes, self._outputs.longest_bytes,
                    has_report_ids=bool(ids - {0}),
                )
            )  # fmt: skip
