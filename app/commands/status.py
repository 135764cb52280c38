# SPDX-License-Identifier: Apache-2.0
"""`thock status`: what the running companion does. Exit code 0: it can answer, 1: not now, 3: none runs."""

from __future__ import annotations

import json
from typing import Any

import click

from app.commands.speech import CommandError, in_words
from app.i18n import padded
from app.ipc.client import IpcClient
from app.ipc.protocol import IpcError, NotRunningError
from engine.texts import Text, as_text

_NOT_RUNNING = 3  # as `systemctl status`


@click.command()
@click.option("--json", "as_json", is_flag=True, help="For scripts.")
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Show what the running companion does. No content: `thock ask` and the keyboard show that."""
    try:
        with IpcClient() as client:
            state = client.request("status")["state"]
            problems = client.request("get-settings")["problems"]
    except NotRunningError as error:
        click.echo(json.dumps(None) if as_json else in_words(str(error)))
        ctx.exit(_NOT_RUNNING)
    except (IpcError, OSError) as error:
        raise CommandError(str(error)) from error
    state["settings_problems"] = problems
    click.echo(json.dumps(state, indent=2) if as_json else described(state))
    ctx.exit(0 if state["engine"] == "ready" and not state["is_paused"] else 1)


def described(state: dict[str, Any]) -> str:
    """The state in aligned lines."""
    latency, detail = state["latency_ms"], state["engine_detail"]
    engine = Text(state["engine"])
    rows = (
        (Text("mode"), Text(state["mode"])),
        (Text("profile"), state["profile"]),
        (Text("does"), _does(state)),
        (Text("keyboard"), _keyboard(state)),
        (
            Text("engine"),
            Text("{state}: {reason}", state=engine, reason=as_text(detail)) if detail else engine,
        ),
        (Text("model"), state["model"]),
        (Text("answered"), "" if latency is None else Text("in {time:.0f} ms", time=latency)),
        (Text("keys lost"), str(state["dropped"] or "")),
        (Text("error"), state["error"]),
        *(
            (Text("settings"), Text("{place}: {reason}", place=place, reason=as_text(text)))
            for place, text in state.get("settings_problems", ())
        ),
    )
    return "\n".join(
        f"{padded(in_words(name), 10)} {in_words(text)}" for name, text in rows if text
    )


def _does(state: dict[str, Any]) -> Text:
    if not state["is_paused"]:
        return Text(state["status"])
    left = state["paused_s"]
    if left is None:
        return Text("paused")
    return Text("paused, {count} min left", count=max(round(left / 60), 1))


def _keyboard(state: dict[str, Any]) -> Text:
    if state["keyboard_away"]:
        return as_text(state["keyboard_away"])
    board = state["keyboard"]
    return Text("none") if board is None else _board(board)


def _board(board: dict[str, Any]) -> Text:
    return Text(
        "{name}, {display}, {count} LEDs",
        name=as_text(board["name"]),
        display=f"{board['width']}x{board['height']}" if board["width"] else Text("no display"),
        count=board["led_count"],
    )
