# SPDX-License-Identifier: Apache-2.0
"""What computes: chosen in the settings, changed while the companion runs, told on display and in status."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from pydantic import ValidationError

from app.commands.status import described
from app.ipc.reports import state_report
from app.models.catalogue import load_catalogue, title_of
from app.settings import RemoteSettings, Settings
from app.settings.base import ModeName
from engine.client import EngineState
from engine.devices import DEVICES, devices_with
from engine.fake import FakeModel, FakeScript
from engine.messages import Device, LoadModel, ModelLoaded, RemoteServer, Residency
from tests.helpers.companion import Desk
from tests.helpers.engines import engine_in_thread
from tests.helpers.running_host import RunningHost

NOTE = "on the CPU: no usable NVIDIA driver"


def loaded(backend: str, note: str) -> ModelLoaded:
    return ModelLoaded(
        request=0, name="tiny", parameters=1, context_length=64, backend=backend, seconds=1, note=note
    )  # fmt: skip


def test_off_by_default() -> None:
    settings = Settings()
    assert settings.engine is Device.AUTO
    assert settings.remote.server() == RemoteServer(url="")


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8080/v1", "https://box.example/v1", "http://[::1]:8000/v1", ""]
)
def test_addresses_that_are_taken(url: str) -> None:
    assert RemoteSettings(url=url).server().url == url


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://a", "http://a:b@c", "http://a/?k", "x"])
def test_addresses_that_are_refused(url: str) -> None:
    with pytest.raises(ValidationError):
        RemoteSettings(url=url)


def test_the_running_engine_follows_the_settings(tmp_path: Path) -> None:
    with RunningHost(tmp_path) as running:
        running.host.change_settings(
            {"engine": "remote", "remote": {"url": "http://127.0.0.1:1/v1"}}
        )
        # No model is installed here, and none is looked for.
        assert running.wait(lambda: running.engine.switched[-1:] == ["start remote 2048"])
        assert running.engine.device is Device.REMOTE
        assert running.engine.server == RemoteServer(url="http://127.0.0.1:1/v1")


@pytest.mark.parametrize("residency", Residency)
def test_how_long_the_kernel_stays_goes_all_the_way_to_the_gpu_and_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, residency: Residency
) -> None:
    with RunningHost(tmp_path) as running:
        running.host.change_settings({"engine": "remote", "residency": residency.value})
        assert running.wait(lambda: running.engine.switched != [])
        assert running.engine.residency is residency
    asked: list[object] = []

    def packed(_source: object) -> object:
        return object()

    def backend(*_args: object, residency: Residency) -> object:
        asked.append(residency)
        return object()

    monkeypatch.setattr("engine.devices.packed_model", packed)
    monkeypatch.setattr("engine.cuda.backend.CudaBackend", backend)
    monkeypatch.setattr("engine.cuda.driver.Context", contextlib.nullcontext)
    devices = devices_with(residency)
    devices[Device.CUDA](object(), 64)  # type: ignore[arg-type]  # `packed` does not look at it
    assert asked == [residency]
    assert devices[Device.CPU] is DEVICES[Device.CPU]


def test_one_launch_a_request_is_the_default_everywhere() -> None:
    assert Settings().residency is Residency.LAUNCH
    assert LoadModel(request=0, path="x").residency is Residency.LAUNCH


def test_a_model_of_the_catalogue_is_called_as_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = load_catalogue()["smollm2"]
    small = entry.model_copy(update={"size": 3})
    monkeypatch.setattr("app.models.catalogue.load_catalogue", lambda: {"smollm2": small})
    models = tmp_path / "models"
    models.mkdir()
    (models / "smollm2.gguf").write_bytes(b"abc")
    (models / "mine.gguf").write_bytes(b"abc")
    with RunningHost(tmp_path) as running:
        running.host.change_settings({"model": "smollm2"})
        assert running.wait(lambda: running.engine.switched == ["start smollm2.gguf 2048"])
        assert running.engine.title == entry.title
        running.host.change_settings({"model": "mine"})
        assert running.wait(lambda: running.engine.switched[-1:] == ["start mine.gguf 2048"])
        assert running.engine.title == ""
        (models / "smollm2.gguf").write_bytes(b"another file of that name")
    assert title_of(models / "smollm2.gguf") == ""
    assert title_of(tmp_path / "gone.gguf") == ""


def test_the_child_calls_the_model_as_it_is_told_to() -> None:
    with engine_in_thread(lambda _: FakeModel(FakeScript(), 64)) as talk:
        for title, name in (("SmolLM2", "SmolLM2"), ("", "scripted replies (no model)")):
            told = talk.ask(LoadModel(request=talk.number(), path="x", title=title))
            assert isinstance(told, ModelLoaded)
            assert told.name == name


def test_the_reason_is_shown_once_and_stays_in_the_status() -> None:
    desk = Desk(is_ready=False)
    desk.engine_is(EngineState.READY)
    desk.post(loaded("cpu", NOTE))
    assert "GPU not used" in desk.picture
    desk.advance(3)
    assert "GPU not used" not in desk.picture
    report = state_report(desk.state, "", None).model_dump(mode="json")
    assert f"ready: {NOTE}" in described(report)


def test_a_server_is_named_while_text_goes_there() -> None:
    desk = Desk(is_ready=False)
    desk.engine_is(EngineState.READY)
    desk.post(loaded("remote", "what you type goes to http://127.0.0.1:1"))
    assert "text goes to server" in desk.picture
    assert "http://127.0.0.1:1" in desk.state.engine_detail


def test_nothing_is_said_where_there_is_nothing_to_say() -> None:
    desk = Desk(Settings(mode=ModeName.SUGGEST), is_ready=False)
    desk.engine_is(EngineState.READY)
    desk.post(loaded("cpu", ""))
    assert "GPU" not in desk.picture
    assert desk.state.engine_detail == ""
