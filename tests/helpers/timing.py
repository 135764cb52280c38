# SPDX-License-Identifier: Apache-2.0
"""Times that say something of the code on a machine that others use too."""

from __future__ import annotations

from collections.abc import Sequence


def undisturbed(times: Sequence[float]) -> float:
    """What the quickest quarter of them takes at most.

    The others may have waited for the processor. What the code itself waits for, it waits for each time.
    """
    return sorted(times)[len(times) // 4]
