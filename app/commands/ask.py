# SPDX-License-Identifier: Apache-2.0
"""`thock ask`: a question to the model of the running companion."""

from __future__ import annotations

import sys
import time

import click

from app.commands.companion import running_companion
from app.ipc.client import IpcClient

_LIMIT_S = 120.0


@click.command()
@click.argument("question", nargs=-1)
@click.option("--no-wait", is_flag=True, help="Do not wait for the answer; the keyboard shows it.")
def command(question: tuple[str, ...], no_wait: bool) -> None:
    """Ask QUESTION (or standard input) in chat mode and print the answer as it grows."""
    text = " ".join(question) or ("" if sys.stdin.isatty() else sys.stdin.read())
    if not text.strip():
        raise click.UsageError("what is the question?")
    with running_companion() as companion:
        state = companion.request("status")["state"]
        if state["is_paused"]:
            raise click.ClickException("Thock is paused: `thock resume` first.")
        if state["engine"] in ("stopped", "failed"):
            reason = state["engine_detail"] or "no model is loaded"
            raise click.ClickException(f"the model cannot answer: {reason}")
        if no_wait:
            companion.request("ask", text=text)
        else:
            _print_answer(companion, text)


def _print_answer(companion: IpcClient, text: str) -> None:
    """Subscribe first, so that nothing of the answer is missed; what came before it is not printed."""
    events = companion.events("reply")
    old = next(events)
    companion.request("ask", text=text)
    shown = ""
    began = False
    deadline = time.monotonic() + _LIMIT_S
    for event in events:
        began = began or event["is_busy"] or event["answered"] > old["answered"]
        if not began:
            continue
        reply = event["text"]
        if reply.startswith(shown):
            click.echo(reply[len(shown) :], nl=False)
            sys.stdout.flush()
            shown = reply
        if not event["is_busy"] and event["answered"] > old["answered"]:
            click.echo("")
            return
        if time.monotonic() > deadline:
            break
    raise click.ClickException("the answer did not end; `thock status` tells more.")
