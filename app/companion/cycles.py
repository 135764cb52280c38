# SPDX-License-Identifier: Apache-2.0
"""Python's search for cycles of dead objects, kept short: it holds up every thread, also the keyboard's."""

from __future__ import annotations

import gc

from app.companion.core import Subscriber
from app.companion.state import CompanionState
from engine.client import EngineState


def pass_over_what_lives() -> Subscriber:
    """A subscriber for a companion: once the model is loaded, what is there is searched no more.

    Modules, settings, layouts and fonts live as long as the process. One search among them took 1.1 ms on
    the companion's thread (AMD EPYC at 2 GHz, 41,000 objects), several times what a ready reply takes from key
    to display. What is dead by then is collected before.
    """
    is_done = False

    def observe(state: CompanionState) -> None:
        nonlocal is_done
        if is_done or state.engine is not EngineState.READY:
            return
        is_done = True
        gc.collect()
        gc.freeze()

    return observe
