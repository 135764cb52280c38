# SPDX-License-Identifier: Apache-2.0
"""That another program has the keyboard."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Away:
    """We keep away from the keyboard for the sake of another program. `reason` is for the person.

    `until_resumed`: the system does not tell when that program leaves; the person does.
    """

    reason: str
    until_resumed: bool
