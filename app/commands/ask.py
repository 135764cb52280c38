# SPDX-License-Identifier: Apache-2.0
"""`thock ask`: a question to the model of the running companion."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import click

from app.commands.companion import running_companion
from app.commands.speech import CommandError, in_words
from app.companion.asked import is_blank
from app.ipc.client import IpcClient, Json
from app.platform.desktop import NoProgramError
from app.platform.text_sources import NoTextError, TextSource, question_about, read_text
from engine.texts import Text, as_text

_LIMIT_S = 120.0
_ENDS = {
    "cancelled": Text("it was cancelled"),
    "replaced": Text("another question took its place"),
    "paused": Text("Thock is paused"),
    "forgotten": Text("everything was forgotten in the middle of it"),
    "failed": Text("the model could not go on"),
}


@click.command()
@click.argument("question", nargs=-1)
@click.option(
    "--clipboard", "source", flag_value="clipboard", help="Ask about the text on the clipboard."
)
@click.option("--selection", "source", flag_value="selection", help="Ask about the selected text.")
@click.option("--no-wait", is_flag=True, help="Do not wait for the answer; the keyboard shows it.")
def command(question: tuple[str, ...], source: str | None, no_wait: bool) -> None:
    """Ask QUESTION (or standard input) and print the answer as it grows; the mode stays what it is.

    With --clipboard or --selection QUESTION may be left out. If the answer does not come to its end, what came
    of it is printed, standard error says why there is no more, and the exit code is 1.
    """
    text = " ".join(question)
    if source is not None:
        text = _with_text(text, TextSource(source))
    elif not text and not sys.stdin.isatty():
        text = sys.stdin.buffer.read().decode(errors="replace")
    # What the command line holds need not be UTF-8; what goes to the companion is.
    text = text.encode(errors="surrogateescape").decode(errors="replace")
    if is_blank(text):
        raise click.UsageError(in_words(Text("what is the question?")))
    with running_companion() as companion:
        state = companion.request("status")["state"]
        if state["is_paused"]:
            raise CommandError("Thock is paused: `thock resume` first.")
        if state["engine"] in ("stopped", "failed"):
            reason = as_text(state["engine_detail"] or "no model is loaded")
            raise CommandError(Text("the model cannot answer: {reason}", reason=reason))
        if no_wait:
            companion.request("ask", text=text)
        else:
            _print_answer(companion, text)


def _with_text(question: str, source: TextSource) -> str:
    try:
        return question_about(read_text(source), question)
    except (NoProgramError, NoTextError) as error:
        raise CommandError(str(error)) from error


def _print_answer(companion: IpcClient, text: str) -> None:
    """Subscribe first, so that nothing of the answer is missed."""
    events = companion.events("reply")
    next(events)  # of a question before
    question = companion.request("ask", text=text)["question"]
    limit = threading.Timer(_LIMIT_S, companion.end)  # ends the events, also when none comes
    limit.daemon = True
    limit.start()
    try:
        shown, end, reason = _follow(events, question)
    finally:
        limit.cancel()
    if shown or end == "whole":
        click.echo("")
    if end != "whole":
        why = _ENDS.get(end, Text("it did not end; `thock status` tells more"))
        raise CommandError(
            Text("the answer is not whole: {reason}.", reason=as_text(reason) if reason else why)
        )


def _follow(events: Iterator[Json], question: int) -> tuple[bool, str, str]:
    """Print the reply to `question` as it grows; whether there was any, how it ended, and why so."""
    shown = ""
    for event in events:
        if event["question"] < question:
            continue
        if event["question"] > question:
            return bool(shown), "replaced", ""
        reply = event["text"]
        if len(reply) > len(shown) and reply.startswith(shown):
            click.echo(reply[len(shown) :], nl=False)
            sys.stdout.flush()
            shown = reply
        if event["end"] is not None:
            return bool(shown), event["end"], event["reason"]
    return bool(shown), "", ""
