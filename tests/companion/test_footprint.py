# SPDX-License-Identifier: Apache-2.0
"""The companion's process stays small and starts at once: no numpy, no torch, under 60 MiB."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

HEAVY = ("torch", "numpy", "PIL", "tokenizers", "jinja2", "transformers")
LIMIT_MIB = 60
ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import json, sys, time
start = time.perf_counter()
from app.companion.core import Companion, Mailbox
from app.companion.run import run_companion
from app.log import set_up_logging
from app.settings import Settings
from engine.client import EngineClient
from firmware_bridge.errors import DeviceGoneError
from firmware_bridge.link import Link

def nothing():
    raise DeviceGoneError("no keyboard here")

set_up_logging()
mailbox = Mailbox()
link = Link(nothing, mailbox.post)
engine = EngineClient(mailbox.post, mailbox.engine_changed)
companion = Companion(mailbox, link, engine, Settings())
companion.start()
link.start()
seconds = time.perf_counter() - start
modules = sorted({name.partition(".")[0] for name in sys.modules})
companion.stop()
link.stop()
import psutil
print(json.dumps([psutil.Process().memory_info().rss, seconds, modules]))
"""


CHINESE = """
import psutil
from app.companion.lights import DARK
from app.companion.modes.base import View
from app.companion.screen import Screen
from app.companion.sight import Sight
from app.companion.status_bar import Privacy, Situation
from app.companion.core import Companion, Mailbox
from app.companion.run import run_companion
from app.log import set_up_logging
from app.settings import ModeName, TextSize
from engine.client import EngineClient, EngineState
from firmware_bridge.link import Link
from firmware_bridge.protocol.messages import Status
from tests.helpers.companion import board
from tests.helpers.gb2312 import hanzi

for extent in ((128, 64), (64, 48)):
    screen = Screen(TextSize.AUTO)
    screen.connect(board(extent=extent))
    size = screen.size(needs_pixels=True)
    characters = "".join(hanzi(1) + hanzi(2))
    for start in range(0, len(characters), 20):
        view = View((characters[start : start + 10],) * 4, Status.LISTENING, DARK, title="\u9898")
        screen.frame(view, Situation(Privacy.READING, ModeName.CHAT, EngineState.READY), size, start)
print(psutil.Process().memory_info().rss)
"""


def test_it_stays_below_60_mib_with_all_fonts_in_use() -> None:
    output = subprocess.run(
        [sys.executable, "-c", CHINESE],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout
    assert int(output) / 2**20 < LIMIT_MIB, f"{int(output) / 2**20:.1f} MiB"


def test_the_companion_with_a_link_is_below_60_mib_and_imports_nothing_heavy() -> None:
    output = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=True
    ).stdout
    rss, seconds, modules = json.loads(output)
    assert not set(HEAVY) & set(modules)
    assert rss / 2**20 < LIMIT_MIB, f"{rss / 2**20:.1f} MiB"
    assert seconds < 10  # about 0.5 s on two cores; this only catches a wrong import
