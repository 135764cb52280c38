# SPDX-License-Identifier: Apache-2.0
"""`python -m app`: the command `thock`, where its script is not on the path; and the frozen program.

A frozen program is its own interpreter: the window and the engine are started as `thock -P -m MODULE`.
"""

from __future__ import annotations

import runpy
import sys

if __name__ == "__main__":
    if getattr(sys, "frozen", False) and sys.argv[1:3] == ["-P", "-m"] and len(sys.argv) > 3:
        module = sys.argv[3]
        del sys.argv[1:4]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    else:
        from app.cli import main

        main(prog_name="thock")
