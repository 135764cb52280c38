# SPDX-License-Identifier: Apache-2.0
"""HID devices -> candidates. A keyboard for us has usage FF60/61, as QMK's raw HID has it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from firmware_bridge.discovery.candidates import HID, Candidate, Caution
from firmware_bridge.discovery.caution import CautionRow
from firmware_bridge.discovery.linux_hid import read_collections, read_location
from firmware_bridge.texts import Text, as_text
from firmware_bridge.transport.base import DeviceIdentity
from firmware_bridge.transport.hid_descriptor import Collection

RAW_USAGE = (0xFF60, 0x61)  # QMK docs/features/rawhid.md
_KEYBOARD_USAGE = (0x01, 0x06)
_FALLBACK_INTERFACE = 1  # of the raw HID interface in QMK, where the system tells no usages
_FALLBACK_LENGTH = 32  # RAW_EPSIZE, where the system tells no descriptor
_LENGTHS = range(32, 72)  # docs/PROTOCOL.md, "Frame"

Entry = Mapping[str, Any]  # what hidapi gives of one collection


class HidScan:
    """Makes candidates of what hidapi lists."""

    def __init__(
        self,
        enumerate_hid: Callable[[], Sequence[Entry]],
        cautions: Sequence[CautionRow],
        collections: Callable[[str], list[Collection]] = read_collections,
        location: Callable[[str], str] = read_location,
    ) -> None:
        """`collections` and `location` tell what the system knows of a path; both may know nothing."""
        self._enumerate = enumerate_hid
        self._cautions = cautions
        self._collections = collections
        self._location = location

    def __call__(self) -> list[Candidate]:
        """One candidate for each path: hidapi lists a path once per usage, and on macOS some twice."""
        by_path: dict[bytes, list[Entry]] = {}
        for entry in self._enumerate():
            by_path.setdefault(entry["path"], []).append(entry)
        return [self._candidate(path, entries) for path, entries in by_path.items()]

    def _candidate(self, path: bytes, entries: list[Entry]) -> Candidate:
        first = entries[0]
        node = os.fsdecode(path)
        collections = self._collections(node)
        usages = {(c.usage_page, c.usage) for c in collections}
        usages |= {(entry["usage_page"], entry["usage"]) for entry in entries}
        usages.discard((0, 0))
        identity = DeviceIdentity(
            HID, first["vendor_id"], first["product_id"], first["serial_number"] or "",
            self._location(node) or _location_in(node), first["product_string"] or "",
        )  # fmt: skip
        row = self._caution(identity, usages)
        caution = row.action if row else Caution.NONE
        length, reason = _judge(usages, collections, first["interface_number"])
        if row is not None and (length or caution is Caution.NEVER):
            reason = Text("on the caution list: {why}", why=as_text(row.why))
        matches = length > 0 and caution is not Caution.NEVER
        return Candidate(
            node, identity, matches, reason, first["interface_number"], length * matches, caution
        )

    def _caution(
        self, identity: DeviceIdentity, usages: Iterable[tuple[int, int]]
    ) -> CautionRow | None:
        ids = (identity.vendor_id, identity.product_id)
        for row in self._cautions:
            if any(row.fits(*ids, *usage) for usage in usages or [(0, 0)]):
                return row
        return None


def _judge(
    usages: set[tuple[int, int]], collections: list[Collection], interface: int
) -> tuple[int, str]:
    """(report length, or 0 if it does not match; why)."""
    if RAW_USAGE in usages:
        raw = next((c for c in collections if (c.usage_page, c.usage) == RAW_USAGE), None)
        if raw is None:
            return _FALLBACK_LENGTH, "raw HID interface (FF60/61)"
        if raw.has_report_ids:
            return 0, "FF60/61, but with numbered reports"
        if raw.input_bytes != raw.output_bytes or raw.output_bytes not in _LENGTHS:
            return 0, Text(
                "FF60/61, but reports of {input_bytes} and {output_bytes} bytes",
                input_bytes=raw.input_bytes,
                output_bytes=raw.output_bytes,
            )
        return raw.output_bytes, Text(
            "raw HID interface (FF60/61), {output_bytes}-byte reports",
            output_bytes=raw.output_bytes,
        )
    # Linux tells usages: there a device without any is damaged, and may be anything.
    if not usages and interface == _FALLBACK_INTERFACE and not sys.platform.startswith("linux"):
        return _FALLBACK_LENGTH, "interface 1 of a device whose usages the system does not tell"
    if _KEYBOARD_USAGE in usages:
        return 0, "the key interface of a keyboard; never opened"
    if not usages:
        return 0, Text(
            "interface {interface}; the system does not tell its usages", interface=interface
        )
    seen = ", ".join(f"{page:04X}/{usage:02X}" for page, usage in sorted(usages))
    return 0, Text("no raw HID interface: usage {seen}", seen=seen)


def _location_in(path: str) -> str:
    """Windows: the instance id inside the path, which Windows makes of the USB port (no serial number)
    or of the serial number, and keeps over replug into the same port.
    """
    if sys.platform != "win32":
        return ""
    found = re.match(r"\\\\\?\\hid#[^#]*#([^#]*)#", path, re.IGNORECASE)
    return found[1].lower() if found else ""
