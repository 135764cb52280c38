# SPDX-License-Identifier: Apache-2.0
"""Fixtures for every test, and the rule that an unexpected WARNING in the log fails the test.

A test that expects a warning or error in the log says so:

    @pytest.mark.expected_log("engine child died")      # substring of the message, may be repeated
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from platformdirs import user_data_path

# Before torch is imported: OpenMP threads that spin while they wait slow a shared machine down 5-fold.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# Before the settings are imported: whoever runs the tests may speak another language.
os.environ["LC_ALL"] = "C.UTF-8"

# Hypothesis measures wall time; on a machine that others use too, a slow example says nothing.
settings.register_profile("thock", deadline=None)
settings.load_profile("thock")


class _Collector(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture(autouse=True)
def _no_unexpected_log(request: pytest.FixtureRequest) -> Iterator[None]:
    expected = [str(m.args[0]) for m in request.node.iter_markers("expected_log")]
    collector = _Collector()
    root = logging.getLogger()
    root.addHandler(collector)
    try:
        yield
    finally:
        root.removeHandler(collector)
    messages = [r.getMessage() for r in collector.records]
    unexpected = [m for m in messages if not any(e in m for e in expected)]
    assert not unexpected, f"unexpected log records: {unexpected}"
    missing = [e for e in expected if not any(e in m for m in messages)]
    assert not missing, f"expected log records did not come: {missing}"


@pytest.fixture(scope="session", autouse=True)
def _no_settings_of_the_person(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Whoever runs the tests may have set another language; tests that want settings write their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        yield


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """The default model, as `thock model add smollm2` leaves it (THOCK_TEST_MODEL names another place)."""
    default = user_data_path("thock", appauthor=False) / "models" / "smollm2.gguf"
    path = Path(os.environ.get("THOCK_TEST_MODEL", default))
    if not path.is_file():
        pytest.skip(f"default model missing at {path}: run `thock model add smollm2`")
    return path


@pytest.fixture(autouse=True)
def _no_language_left() -> Iterator[None]:
    """A command in Chinese sets LANGUAGE for click's own words, and the system's errors obey it too."""
    before = os.environ.get("LANGUAGE")
    yield
    if before is None:
        os.environ.pop("LANGUAGE", None)
    else:
        os.environ["LANGUAGE"] = before
