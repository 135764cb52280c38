# SPDX-License-Identifier: Apache-2.0
"""What a check found, and how a list of findings reads."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass

from app.i18n import Translate, padded, told
from engine.texts import Text


class CheckStatus(enum.IntEnum):
    """Worst last; the number is the exit code of `thock doctor`."""

    OK = 0
    WARNING = 1
    ERROR = 2


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report; `fix` is what the person can do, empty when nothing is wrong."""

    subject: str
    status: CheckStatus
    text: str
    fix: str = ""


_SUBJECT_COLUMNS = 18
_MARKS = {
    CheckStatus.OK: Text("ok"),
    CheckStatus.WARNING: Text("warn"),
    CheckStatus.ERROR: Text("FAIL"),
}


def describe(findings: Iterable[Finding], tr: Translate = str) -> str:
    """The report as aligned plain text, the fix below each line that needs one."""
    lines = []
    for finding in findings:
        subject = padded(told(tr, finding.subject), _SUBJECT_COLUMNS)
        mark = padded(told(tr, _MARKS[finding.status]), -4)
        lines.append(f"{mark}  {subject} {told(tr, finding.text)}")
        if finding.fix:
            lines.append(f"{'':25}-> {told(tr, finding.fix)}")
    return "\n".join(lines)


def worst(findings: Iterable[Finding]) -> CheckStatus:
    """The most serious status, OK for none."""
    return max((finding.status for finding in findings), default=CheckStatus.OK)
