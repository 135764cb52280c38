# SPDX-License-Identifier: Apache-2.0
"""What the system tells of other programs on a keyboard, as a test sets it."""

from __future__ import annotations

from firmware_bridge.neighbours import Sign


class FakeOthers:
    """`come` is the next sign; `program` has the keyboard open."""

    def __init__(self, program: str | None = None) -> None:
        self.program = program
        self.come: Sign | None = None
        self.asked = 0  # how often it was looked up who has it open

    def sign(self) -> Sign | None:
        come, self.come = self.come, None
        return come

    def present(self) -> str | None:
        self.asked += 1
        return self.program
