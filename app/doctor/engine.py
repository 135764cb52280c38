# SPDX-License-Identifier: Apache-2.0
"""The check of what computes: as the running companion tells it, else as it is set."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

from app.config.store import SettingsStore
from app.doctor.report import CheckStatus, Finding
from app.ipc.client import IpcClient
from app.ipc.protocol import IpcError, NotRunningError
from engine.client import EngineState
from engine.messages import Device
from engine.texts import Text, as_text

_STATES = MappingProxyType(
    {
        EngineState.STOPPED: Text("stopped"),
        EngineState.STARTING: Text("starting"),
        EngineState.LOADING: Text("loading"),
        EngineState.READY: Text("ready"),
        EngineState.RESTARTING: Text("starting again"),
        EngineState.FAILED: Text("failed"),
    }
)
_ENGINES = MappingProxyType(
    {
        Device.AUTO: Text("the graphics card if it can, else the processor"),
        Device.CPU: Text("the processor"),
        Device.CUDA: Text("the graphics card"),
        Device.REMOTE: Text("a server"),
    }
)


def check_engine(folder: Path | None = None, settings_file: Path | None = None) -> Finding:
    """Why the GPU is not used, or where text goes. `folder` is the companion's runtime folder."""
    settings = SettingsStore(settings_file).load().settings
    told, state = "", Text("as it is set")
    try:
        with IpcClient(folder) as client:
            report = client.request("status")["state"]
        told = report["engine_detail"]
        state = _STATES[EngineState(report["engine"])]
    except NotRunningError:
        pass  # as it is set, then
    except (IpcError, OSError) as error:
        return Finding(
            "engine",
            CheckStatus.WARNING,
            Text("the running companion does not say: {error}", error=error),
        )
    if state is _STATES[EngineState.FAILED]:
        return Finding("engine", CheckStatus.ERROR, Text("failed: {reason}", reason=as_text(told)))
    if settings.engine is Device.REMOTE:
        # Without its address: findings go into reports, and the address may name a person.
        return Finding(
            "engine",
            CheckStatus.WARNING,
            "what you type goes to the server in the settings",
            "Choose another engine in the settings if you do not want that.",
        )
    if told:
        return Finding(
            "engine",
            CheckStatus.WARNING,
            Text("{state}: {reason}", state=state, reason=as_text(told)),
        )
    return Finding(
        "engine",
        CheckStatus.OK,
        Text("{engine}, {state}", engine=_ENGINES[settings.engine], state=state),
    )
