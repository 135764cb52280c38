# SPDX-License-Identifier: Apache-2.0
"""The engine child lets the keyboard's threads go first."""

from __future__ import annotations

import subprocess
import sys

import pytest

from engine.priority import NICENESS

_PROGRAM = """
import os, threading
from engine.priority import give_way
before = os.nice(0)
give_way()
seen = []
thread = threading.Thread(target=lambda: seen.append(os.nice(0) - before))
thread.start()
thread.join()
print(seen[0])
"""


@pytest.mark.skipif(
    sys.platform == "win32",
    reason="there is no niceness: the parent starts the child with a lower priority",
)
def test_threads_started_later_are_nice_as_well() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True, timeout=60
    )
    assert int(done.stdout) == NICENESS
