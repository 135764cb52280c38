# SPDX-License-Identifier: Apache-2.0
"""The doctor tells what computes: why not the GPU, and that text goes to a server, without its address."""

from __future__ import annotations

from pathlib import Path

from app.companion.messages import EngineChanged
from app.doctor.engine import check_engine
from app.doctor.report import CheckStatus
from engine.client import EngineState
from engine.messages import ModelLoaded
from tests.helpers.running_host import RunningHost


def test_as_it_is_set_while_nothing_runs(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    found = check_engine(tmp_path, file)
    assert (found.status, found.text) == (
        CheckStatus.OK,
        "the graphics card if it can, else the processor, as it is set",
    )
    file.write_text('version = 1\nengine = "remote"\n[remote]\nurl = "http://canary/v1"\n')
    found = check_engine(tmp_path, file)
    assert found.status is CheckStatus.WARNING
    assert "canary" not in found.text
    assert found.fix


def test_as_the_companion_tells_it(tmp_path: Path) -> None:
    with RunningHost(tmp_path) as running:
        assert check_engine(tmp_path, running.store.path).status is CheckStatus.OK
        running.mailbox.post(
            ModelLoaded(
                request=0, name="tiny", parameters=1, context_length=64, backend="cpu", seconds=1,
                note="on the CPU: no usable NVIDIA driver",
            )
        )  # fmt: skip
        assert running.wait(lambda: bool(running.companion.state.engine_detail))
        found = check_engine(tmp_path, running.store.path)
        assert found.status is CheckStatus.WARNING
        assert found.text == "ready: on the CPU: no usable NVIDIA driver"
        running.mailbox.post(EngineChanged(EngineState.FAILED, "it died"))
        assert running.wait(lambda: running.companion.state.engine is EngineState.FAILED)
        found = check_engine(tmp_path, running.store.path)
        assert (found.status, found.text) == (CheckStatus.ERROR, "failed: it died")
