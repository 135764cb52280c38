# SPDX-License-Identifier: Apache-2.0
"""`thock devices`: what is connected, and why each of it is a keyboard for Thock or not."""

from __future__ import annotations

import click

from app.commands.keyboards import candidates_of, device_list
from firmware_bridge.discovery.candidates import Candidate, Caution
from firmware_bridge.discovery.detect import detect
from firmware_bridge.discovery.system import make_transport
from firmware_bridge.errors import TransportError
from firmware_bridge.transport.hid_library import load_hid_library


@click.command()
@click.option("--all", "show_all", is_flag=True, help="List also what is no keyboard for Thock.")
@click.option(
    "--ask", is_flag=True,
    help="Open each that matches and ask what it is: one VIA question, one of our own.",
)  # fmt: skip
def command(show_all: bool, ask: bool) -> None:
    """List the connected keyboards and say why each does or does not match.

    Without --ask nothing is opened and nothing is sent.
    """
    with device_list() as watch:
        found = candidates_of(watch)
        shown = [c for c in found if show_all or c.matches]
        for candidate in shown:
            click.echo(_describe(candidate))
            if ask and candidate.matches:
                click.echo(f"    asked: {_ask(candidate)}")
    if not shown:
        click.echo(f"no keyboard for Thock among {len(found)} interfaces and ports.")
    if len(shown) < len(found):
        click.echo(f"{len(found) - len(shown)} others; --all lists them with the reason.")


def _describe(candidate: Candidate) -> str:
    who = candidate.identity
    mark = "yes" if candidate.matches else "no "
    name = who.product or "unnamed device"
    ids = f"{who.vendor_id:04x}:{who.product_id:04x}" if who.vendor_id else "no USB ids"
    place = f" at {who.location}" if who.location else ""
    lines = [
        f"{mark} {name} ({who.transport} {ids}{place}, {candidate.path})",
        f"    {candidate.reason}",
    ]
    if candidate.caution is not Caution.NONE:
        lines.append(f"    caution list: {candidate.caution.value}")
    return "\n".join(lines)


def _ask(candidate: Candidate) -> str:
    transport = make_transport(load_hid_library(), candidate)
    try:
        transport.open()
        verdict = detect(transport, hello_allowed=candidate.caution is Caution.NONE)
    except TransportError as error:
        return str(error)
    finally:
        transport.close()
    text = f"tier {verdict.tier.value}: {verdict.reason}"
    caps = verdict.capabilities
    if caps is None:
        return text
    display = f"{caps.width}x{caps.height}" if caps.has_display else "no display"
    return f"{text}; {display}, {caps.led_count} LEDs, build {caps.build}"
