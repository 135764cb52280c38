# SPDX-License-Identifier: Apache-2.0
"""The check of what computes: as the running companion tells it, else as it is set."""

from __future__ import annotations

from pathlib import Path

from app.config.store import SettingsStore
from app.doctor.report import CheckStatus, Finding
from app.ipc.client import IpcClient
from app.ipc.protocol import IpcError, NotRunningError
from engine.client import EngineState
from engine.messages import Device


def check_engine(folder: Path | None = None, settings_file: Path | None = None) -> Finding:
    """Why the GPU is not used, or where text goes. `folder` is the companion's runtime folder."""
    settings = SettingsStore(settings_file).load().settings
    told, state = "", ""
    try:
        with IpcClient(folder) as client:
            report = client.request("status")["state"]
        state, told = report["engine"], report["engine_detail"]
    except NotRunningError:
        pass  # as it is set, then
    except (IpcError, OSError) as error:
        return Finding(
            "engine", CheckStatus.WARNING, f"the running companion does not say: {error}"
        )
    if state == EngineState.FAILED.value:
        return Finding("engine", CheckStatus.ERROR, f"failed: {told}")
    if settings.engine is Device.REMOTE:
        # Without its address: findings go into reports, and the address may name a person.
        return Finding(
            "engine",
            CheckStatus.WARNING,
            "what you type goes to the server in the settings",
            "Choose another engine in the settings if you do not want that.",
        )
    if told:
        return Finding("engine", CheckStatus.WARNING, f"{state}: {told}")
    return Finding("engine", CheckStatus.OK, f"{settings.engine.value}, {state or 'as it is set'}")
