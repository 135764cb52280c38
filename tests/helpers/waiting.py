# SPDX-License-Identifier: Apache-2.0
"""Waiting for other threads without guessing how long they take."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

# An emulated processor is several times slower.
PATIENCE_S = 120.0 if "THOCK_INSIDE_VM" in os.environ else 30.0


def wait_until(condition: Callable[[], object], timeout_s: float = PATIENCE_S) -> None:
    """Return when `condition()` is true; fail after `timeout_s`, which a busy machine does not need either."""
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.002)
