# SPDX-License-Identifier: Apache-2.0
"""Fixtures for tests that need a GPU; they skip where there is none."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.cuda.driver import Context
from engine.cuda.errors import DriverTooOldError, NoDeviceError, UnsupportedDeviceError


@pytest.fixture(scope="session")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of compiled kernels, shared by all tests of a run; THOCK_TEST_KERNELS keeps it."""
    kept = os.environ.get("THOCK_TEST_KERNELS")
    return Path(kept) if kept else tmp_path_factory.mktemp("kernels")


@pytest.fixture
def gpu() -> Iterator[Context]:
    """A context on the first GPU."""
    try:
        context = Context()
    except (NoDeviceError, DriverTooOldError, UnsupportedDeviceError) as error:
        pytest.skip(f"needs an NVIDIA GPU with FP8: {error}")
    with context:
        yield context
