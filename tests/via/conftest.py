# SPDX-License-Identifier: Apache-2.0
"""A desk with lights of a stock VIA board, and what they were before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from firmware_bridge.via.baseline import BaselineStore
from tests.helpers.lights_desk import LightsDesk
from tests.helpers.via_peers import (
    ViaBoard,
)


@pytest.fixture
def store(tmp_path: Path) -> BaselineStore:
    return BaselineStore(tmp_path / "lights.json")


@pytest.fixture
def desk(store: BaselineStore) -> Iterator[LightsDesk]:
    desk = LightsDesk(ViaBoard(12), store)
    yield desk
    for lights in desk.all:
        assert lights.stop(30)
    assert not desk.peer.trapped
