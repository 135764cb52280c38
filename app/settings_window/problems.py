# SPDX-License-Identifier: Apache-2.0
"""Why a value was not taken, in the person's language."""

from __future__ import annotations

from app.i18n import Translate
from app.settings_window.edits import Problem


def problem_text(tr: Translate, problem: Problem) -> str:
    """One sentence that says what would be taken."""
    limits = problem.limits
    match problem.code:
        case "greater_than_equal":
            return tr("At least {limit} is needed.").format(limit=limits["ge"])
        case "less_than_equal":
            return tr("At most {limit} is possible.").format(limit=limits["le"])
        case "string_too_long":
            return tr("At most {limit} characters fit.").format(limit=limits["max_length"])
        case "string_too_short" if limits["min_length"] == 1:
            return tr("This may not be empty.")
        case "string_too_short":
            return tr("At least {limit} characters are needed.").format(limit=limits["min_length"])
        case "string_pattern_mismatch":
            return tr("This is not of the form that is needed here.")
        case "refused":
            return problem.text
        case _:
            return tr("Not taken: {reason}").format(reason=problem.text)
