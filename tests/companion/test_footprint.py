# SPDX-License-Identifier: Apache-2.0
"""The companion's process stays small and starts at once: no numpy, no torch, under 60 MiB."""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = ("torch", "numpy", "PIL", "tokenizers", "jinja2", "transformers")
LIMIT_MIB = 60

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


def test_the_companion_with_a_link_is_below_60_mib_and_imports_nothing_heavy() -> None:
    output = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=True
    ).stdout
    rss, seconds, modules = json.loads(output)
    assert not set(HEAVY) & set(modules)
    assert rss / 2**20 < LIMIT_MIB, f"{rss / 2**20:.1f} MiB"
    assert seconds < 10  # about 0.5 s on two cores; this only catches a wrong import
