# SPDX-License-Identifier: Apache-2.0
"""Why a value is not allowed, in sentences that can be said in another language.

pydantic has words of its own, in English only; a person who changes a setting reads these instead.
"""

from __future__ import annotations

from typing import Any

from pydantic_core import ErrorDetails

from app.i18n import adopted
from engine.texts import Text


def reason_of(detail: ErrorDetails) -> Text:
    """One sentence on what would be taken; never the value itself."""
    limits: dict[str, Any] = detail.get("ctx", {})
    match detail["type"]:
        case "extra_forbidden":
            return Text("There is no such setting.")
        case "greater_than_equal":
            return Text("At least {limit} is needed.", limit=limits["ge"])
        case "less_than_equal":
            return Text("At most {limit} is possible.", limit=limits["le"])
        case "string_too_long":
            return Text("At most {limit} characters fit.", limit=limits["max_length"])
        case "string_too_short" if limits["min_length"] == 1:
            return Text("This may not be empty.")
        case "string_too_short":
            return Text("At least {limit} characters are needed.", limit=limits["min_length"])
        case "string_pattern_mismatch":
            return Text("This is not of the form that is needed here.")
        case "too_long":
            return Text("At most {limit} entries fit.", limit=limits["max_length"])
        case "enum" | "literal_error":
            return Text("One of these is needed: {names}.", names=_names(limits["expected"]))
        case "bool_type" | "bool_parsing":
            return Text("Yes (true) or no (false) is needed.")
        case "int_type" | "int_parsing" | "int_from_float" | "int_parsing_size":
            return Text("A whole number is needed.")
        case "float_type" | "float_parsing" | "finite_number":
            return Text("A number is needed.")
        case "string_type" | "string_unicode" | "path_type":
            return Text("A text is needed.")
        case "list_type" | "tuple_type":
            return Text("A list is needed.")
        case "dict_type" | "model_type":
            return Text("A table is needed.")
        case "missing":
            return Text("This is needed.")
        case "value_error":
            return adopted(str(limits["error"]))
        case _:
            return Text("Not taken: {reason}", reason=detail["msg"])


def _names(expected: str) -> str:
    """pydantic gives `'a', 'b' or 'c'`."""
    return ", ".join(expected.replace(" or ", ", ").replace("'", "").split(", "))
