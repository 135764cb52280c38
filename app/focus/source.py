# SPDX-License-Identifier: Apache-2.0
"""What every way of learning which program is in front has in common."""

from __future__ import annotations

from typing import Protocol


class FocusUnknownError(Exception):
    """This system does not tell which program is in front; the message says why."""


class FocusSource(Protocol):
    """Waits for another program to come to the front. Used by one thread; `wake` by any."""

    def application(self) -> str:
        """The name of the program in front, "" if there is none or it has no name.

        Raises:
            FocusUnknownError: the system tells it no longer.
        """
        ...

    def wait(self) -> None:
        """Return when another program may be in front, or soon after `wake`.

        Raises:
            FocusUnknownError: the system tells it no longer.
        """
        ...

    def wake(self) -> None: ...

    def close(self) -> None: ...
