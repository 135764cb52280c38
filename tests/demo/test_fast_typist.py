# SPDX-License-Identifier: Apache-2.0
"""200 words a minute on the real model: no key is lost, and none waits for the engine."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest

from app.demo.blocks import BlockStyle
from app.demo.player import ScriptPlayer
from app.demo.script import parse_script
from app.demo.station import DemoStation, StationOptions

# One firmware call takes some 10 us. A press that waited for a model step would take 30 ms and more.
LONGEST_PRESS_S = 0.02


@pytest.mark.model
def test_two_hundred_words_a_minute(smollm2: Path) -> None:
    script = resources.files("assets").joinpath("scripts", "fast.thock").read_text(encoding="utf-8")
    with DemoStation(StationOptions(model=smollm2)) as station:
        outcome = ScriptPlayer(station, BlockStyle.QUADRANT, print).play(parse_script(script))
        print("\n".join(station.latency.rows()))
        assert outcome.failures == []
        assert station.heard == station.typed
        assert len(station.typed) > 200
        # Of the others some may have waited for the processor; the model works at more than half of the keys.
        assert station.latency.percentile("key held up by the firmware", 75) < LONGEST_PRESS_S
        assert station.latency.count("suggest: key to answer") >= 1
