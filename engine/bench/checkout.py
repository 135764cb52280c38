# SPDX-License-Identifier: Apache-2.0
"""Which source was measured."""

from __future__ import annotations

import subprocess
from pathlib import Path


def commit_of_checkout() -> str:
    """Twelve digits; empty for an installed package."""
    root = Path(__file__).resolve().parents[2]
    try:
        done = subprocess.run(
            ("git", "-C", str(root), "rev-parse", "--short=12", "HEAD"),
            capture_output=True, text=True, check=False, timeout=10,
        )  # fmt: skip
    except OSError:
        return ""
    return done.stdout.strip()
