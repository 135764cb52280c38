# SPDX-License-Identifier: Apache-2.0
"""`python -m app`: the command `thock`, where its script is not on the path."""

from __future__ import annotations

from app.cli import main

main(prog_name="thock")
