# SPDX-License-Identifier: Apache-2.0
"""The demo's own process, virtual keyboard and terminal included, before its engine starts."""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = ("torch", "numpy", "PIL", "tokenizers", "transformers")
LIMIT_MIB = 60

PROGRAM = """
import json, sys
from pathlib import Path
import psutil
from app.commands import demo
from app.demo import terminal
from app.demo.station import DemoStation, StationOptions
station = DemoStation(StationOptions(model=Path("none")))
station.companion.start()
station.link.start()
station.keyboard.press(4)
station.keyboard.panel()
station.companion.stop()
station.link.stop()
modules = sorted({name.partition(".")[0] for name in sys.modules})
print(json.dumps([psutil.Process().memory_info().rss / 2**20, modules]))
"""


def test_the_demo_is_small_before_its_engine_starts() -> None:
    output = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=True
    ).stdout
    mib, modules = json.loads(output)
    print(f"{mib:.1f} MiB")
    assert not set(HEAVY) & set(modules)
    assert mib < LIMIT_MIB
