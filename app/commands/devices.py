# SPDX-License-Identifier: Apache-2.0
"""`thock devices`: what is connected, and why each of it is a keyboard for Thock or not."""

from __future__ import annotations

import click

from app.commands.keyboards import candidates_of, device_list, lock_folder
from app.commands.speech import in_words, say
from app.i18n import padded
from engine.texts import Text, as_text
from firmware_bridge.discovery.candidates import Candidate, Caution
from firmware_bridge.discovery.detect import detect
from firmware_bridge.discovery.opener import watched
from firmware_bridge.discovery.system import make_transport, system_node_watch
from firmware_bridge.discovery.watch import DeviceWatch
from firmware_bridge.errors import TransportError
from firmware_bridge.processes import ProcessTable
from firmware_bridge.transport.hid_library import load_hid_library


@click.command()
@click.option("--all", "show_all", is_flag=True, help="Tell everything of the others too.")
@click.option(
    "--ask", is_flag=True,
    help="Open each that matches and ask what it is: one VIA question, one of our own.",
)  # fmt: skip
def command(show_all: bool, ask: bool) -> None:
    """List what is connected and say why each is or is not a keyboard for Thock.

    Without --ask nothing is opened and nothing is sent.
    """
    with device_list() as watch:
        found = candidates_of(watch)
        matching = [candidate for candidate in found if candidate.matches]
        for candidate in matching:
            click.echo(_describe(candidate))
            program = ProcessTable().who_has_open(candidate.path)
            if program is not None:
                say("    {program} has it open", program=program)
            if ask:
                say("    asked: {answer}", answer=_ask(candidate, watch))
    if not found:
        say("no keyboard for Thock: there is no raw HID interface and no serial port.")
    elif not matching:
        say("no keyboard for Thock among {count} interfaces and ports:", count=len(found))
    for candidate in found:
        if not candidate.matches:
            click.echo(_describe(candidate) if show_all else _in_short(candidate))


def _describe(candidate: Candidate) -> str:
    who = candidate.identity
    place = in_words(Text(" at {place}", place=who.location)) if who.location else ""
    facts = f"{who.transport} {_ids(candidate)}{place}, {candidate.path}"
    lines = [
        f"{_mark(candidate)} {_name(candidate)} ({facts})",
        f"    {in_words(candidate.reason)}",
    ]
    if candidate.caution is not Caution.NONE:
        action = Text(candidate.caution.value)
        lines.append(f"    {in_words(Text('caution list: {action}', action=action))}")
    return "\n".join(lines)


def _in_short(candidate: Candidate) -> str:
    return (
        f"{_mark(candidate)} {_name(candidate)} ({_ids(candidate)}): {in_words(candidate.reason)}"
    )


def _mark(candidate: Candidate) -> str:
    return padded(in_words(Text("yes") if candidate.matches else Text("no")), 3)


def _name(candidate: Candidate) -> str:
    return candidate.identity.product or in_words(Text("unnamed device"))


def _ids(candidate: Candidate) -> str:
    who = candidate.identity
    return (
        f"{who.vendor_id:04x}:{who.product_id:04x}"
        if who.vendor_id
        else in_words(Text("no USB ids"))
    )


def _ask(candidate: Candidate, watch: DeviceWatch) -> Text:
    others = system_node_watch(watch)
    transport = watched(
        make_transport(load_hid_library(), candidate, lock_folder()), candidate, others
    )
    try:
        transport.open()
        verdict = detect(transport, hello_allowed=candidate.caution is Caution.NONE, others=others)
    except TransportError as error:
        return as_text(str(error))
    finally:
        transport.close()
    text = Text("tier {tier}: {reason}", tier=verdict.tier.value, reason=as_text(verdict.reason))
    caps = verdict.capabilities
    if caps is None:
        return text
    return Text(
        "{text}; {display}, {count} LEDs, build {build}",
        text=text,
        display=f"{caps.width}x{caps.height}" if caps.has_display else Text("no display"),
        count=caps.led_count,
        build=caps.build,
    )
