# SPDX-License-Identifier: Apache-2.0
"""Logging goes to one place once, at the level asked for, and leaves other libraries alone."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import pytest

from app.log import OUR_LOGGERS, set_up_logging


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers = list(root.handlers)
    yield
    root.handlers[:] = handlers
    for name in OUR_LOGGERS:
        logging.getLogger(name).setLevel(logging.NOTSET)


def test_our_packages_speak_at_the_level_and_others_do_not() -> None:
    stream = io.StringIO()
    set_up_logging("DEBUG", stream)
    logging.getLogger("app.companion.core").debug("ours")
    logging.getLogger("engine.client").info("ours too")
    logging.getLogger("urllib3").debug("theirs")
    lines = stream.getvalue().splitlines()
    assert [line.rpartition(" ")[2] for line in lines] == ["ours", "too"]
    assert "DEBUG" in lines[0]
    assert "app.companion.core: ours" in lines[0]


def test_a_second_set_up_takes_the_place_of_the_first() -> None:
    first, second = io.StringIO(), io.StringIO()
    set_up_logging("INFO", first)
    set_up_logging("WARNING", second)
    logging.getLogger("app").info("not loud enough")
    assert first.getvalue() == second.getvalue() == ""
    logging.getLogger("app").setLevel("INFO")
    logging.getLogger("app").info("once")
    assert first.getvalue() == ""
    assert second.getvalue().count("once") == 1


def test_an_unknown_level_is_refused_before_anything_changes() -> None:
    handlers = list(logging.getLogger().handlers)
    with pytest.raises(ValueError, match="LOUD"):
        set_up_logging("LOUD")
    assert logging.getLogger().handlers == handlers
