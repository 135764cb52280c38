# SPDX-License-Identifier: Apache-2.0
"""`thock ask`: a question to the model of the running companion."""

from __future__ import annotations

import sys
import threading

import click

from app.commands.companion import running_companion
from app.ipc.client import IpcClient
from app.platform.desktop import NoProgramError
from app.platform.text_sources import NoTextError, TextSource, question_about, read_text

_LIMIT_S = 120.0


@click.command()
@click.argument("question", nargs=-1)
@click.option(
    "--clipboard", "source", flag_value="clipboard", help="Ask about the text on the clipboard."
)
@click.option("--selection", "source", flag_value="selection", help="Ask about the selected text.")
@click.option("--no-wait", is_flag=True, help="Do not wait for the answer; the keyboard shows it.")
def command(question: tuple[str, ...], source: str | None, no_wait: bool) -> None:
    """Ask QUESTION (or standard input) in chat mode and print the answer as it grows.

    With --clipboard or --selection QUESTION may be left out.
    """
    text = " ".join(question)
    if source is not None:
        text = _with_text(text, TextSource(source))
    elif not text and not sys.stdin.isatty():
        text = sys.stdin.buffer.read().decode(errors="replace")
    # What the command line holds need not be UTF-8; what goes to the companion is.
    text = text.encode(errors="surrogateescape").decode(errors="replace")
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


def _with_text(question: str, source: TextSource) -> str:
    try:
        return question_about(read_text(source), question)
    except (NoProgramError, NoTextError) as error:
        raise click.ClickException(str(error)) from error


def _print_answer(companion: IpcClient, text: str) -> None:
    """Subscribe first, so that nothing of the answer is missed; what came before it is not printed."""
    events = companion.events("reply")
    old = next(events)
    companion.request("ask", text=text)
    shown = ""
    began = False
    limit = threading.Timer(_LIMIT_S, companion.close)  # ends the events, also when none comes
    limit.daemon = True
    limit.start()
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
            limit.cancel()
            return
    raise click.ClickException("the answer did not end; `thock status` tells more.")
