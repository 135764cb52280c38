# SPDX-License-Identifier: Apache-2.0
"""`thock status`: what the running companion does. Exit code 0: it can answer, 1: not now, 3: none runs."""

from __future__ import annotations

import json
from typing import Any

import click

from app.ipc.client import IpcClient
from app.ipc.protocol import IpcError, NotRunningError

_NOT_RUNNING = 3  # as `systemctl status`


@click.command()
@click.option("--json", "as_json", is_flag=True, help="For scripts.")
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Show what the running companion does. No content: `thock ask` and the keyboard show that."""
    try:
        with IpcClient() as client:
            state = client.request("status")["state"]
    except NotRunningError as error:
        click.echo(json.dumps(None) if as_json else str(error))
        ctx.exit(_NOT_RUNNING)
    except (IpcError, OSError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(json.dumps(state, indent=2) if as_json else described(state))
    ctx.exit(0 if state["engine"] == "ready" and not state["is_paused"] else 1)


def described(state: dict[str, Any]) -> str:
    """The state in aligned lines."""
    board = state["keyboard"]
    rows = {
        "mode": state["mode"],
        "does": _does(state),
        "keyboard": "none" if board is None else _board(board),
        "engine": state["engine"]
        + (f": {state['engine_detail']}" if state["engine_detail"] else ""),
        "model": state["model"],
        "answered": "" if state["latency_ms"] is None else f"in {state['latency_ms']:.0f} ms",
        "keys lost": str(state["dropped"] or ""),
        "error": state["error"],
    }
    return "\n".join(f"{name:<10} {text}" for name, text in rows.items() if text)


def _does(state: dict[str, Any]) -> str:
    if not state["is_paused"]:
        return str(state["status"])
    left = state["paused_s"]
    return "paused" if left is None else f"paused, {max(round(left / 60), 1)} min left"


def _board(board: dict[str, Any]) -> str:
    display = f"{board['width']}x{board['height']}" if board["width"] else "no display"
    return f"{board['name']}, {display}, {board['led_count']} LEDs"
