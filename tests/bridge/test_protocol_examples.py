# SPDX-License-Identifier: Apache-2.0
"""The table "Examples" in docs/PROTOCOL.md shows reports of the golden conversation."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "frames" / "v1.json"
_ROW = re.compile(r"^\| (host|keyboard) \| ([A-Z]+)[^|]*\| `([0-9A-F ]+)` \|$", re.MULTILINE)
_MESSAGES = {
    "HELLO": "Hello",
    "CAPS": "Caps",
    "SUBSCRIBE": "Subscribe",
    "KEY": "KeyReport",
    "TEXT": "TextRun",
    "BITMAP": "BitmapRun",
    "LIGHTS": "LightsFill",
    "STATUS": "SetStatus",
    "RELEASE": "Release",
    "ACK": "Ack",
    "NAK": "Nak",
}


def test_examples_in_the_specification_hold() -> None:
    text = (ROOT / "docs" / "PROTOCOL.md").read_text(encoding="utf-8")
    _, heading, section = text.partition("\n## Examples\n")
    assert heading, "docs/PROTOCOL.md has no section Examples"
    rows = _ROW.findall(section)
    assert {name for _, name, _ in rows} == _MESSAGES.keys()
    golden = {
        (line["from"], line["message"], line["report"])
        for line in json.loads(GOLDEN.read_text(encoding="utf-8"))
    }
    for sender, name, report in rows:
        assert (sender, _MESSAGES[name], report.replace(" ", "").lower()) in golden
