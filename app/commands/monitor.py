# SPDX-License-Identifier: Apache-2.0
"""`thock monitor`: the frames between Thock and a keyboard, by name."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path

import click

from app.commands.keyboards import real_keyboard
from app.commands.options import announce_recording
from app.log import forbid_core_dumps, set_up_logging
from firmware_bridge.errors import FrameError
from firmware_bridge.events import BridgeEvent
from firmware_bridge.link import Link
from firmware_bridge.protocol.frames import FrameType, decode
from firmware_bridge.transport.base import Transport
from firmware_bridge.transport.replay import RecordingTransport
from firmware_bridge.transport.wrapped import WrappedTransport

# Frames whose payload holds what the person types or reads.
_PRIVATE = frozenset({FrameType.KEY, FrameType.TEXT, FrameType.BITMAP})


class MonitoredTransport(WrappedTransport):
    """Passes everything through and prints a line for each report."""

    def __init__(self, inner: Transport, *, show_content: bool) -> None:
        super().__init__(inner)
        self._show_content = show_content
        self._start = time.monotonic()

    def open(self) -> None:
        self._inner.open()
        click.echo(f"open {self.identity.product or self.identity.transport}")

    def read(self, timeout_s: float) -> bytes | None:
        report = self._inner.read(timeout_s)
        if report is not None:
            self._print("<-", report)
        return report

    def write(self, report: bytes) -> None:
        self._print("->", report)
        self._inner.write(report)

    def _print(self, way: str, report: bytes) -> None:
        seconds = time.monotonic() - self._start
        click.echo(f"{seconds:9.3f} {way} {describe_report(report, self._show_content)}")


def describe_report(report: bytes, show_content: bool) -> str:
    """One line: type, client, seq and length; the payload of private frames only with `show_content`."""
    try:
        frame = decode(report)
    except FrameError as error:
        return f"not ours: {error.field}, first byte {report[0]:02x}, {len(report)} bytes"
    try:
        name = FrameType(frame.type).name
    except ValueError:
        name = f"type {frame.type}"
    head = f"{name:<9} client {frame.client:02x} seq {frame.seq:02x} {len(frame.payload)} bytes"
    if frame.type in _PRIVATE and not show_content:
        return f"{head} (content hidden)"
    return f"{head} {frame.payload.hex(' ')}".rstrip()


@click.command()
@click.option("--show-content", is_flag=True, help="Print keys and display content too.")
@click.option(
    "--record", type=click.Path(dir_okay=False, path_type=Path),
    help="Write the traffic to this file. It holds every key that is pressed.",
)  # fmt: skip
@click.option("--keyboard", default="", help="Place, serial number or path of a device.")
@click.option("--seconds", type=click.FloatRange(min=0.1), help="Stop after this time.")
def command(show_content: bool, record: Path | None, keyboard: str, seconds: float | None) -> None:
    """Subscribe to the keyboard and print every frame, until Ctrl-C. Keys are hidden unless asked for."""
    set_up_logging()
    forbid_core_dumps()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # leaves as Ctrl-C does
    if record is not None:
        announce_recording(record)

    def wrap(inner: Transport) -> Transport:
        transport: Transport = MonitoredTransport(inner, show_content=show_content)
        return transport if record is None else RecordingTransport(transport, record)

    with real_keyboard(keyboard, wrap) as make_link:
        link = make_link(_ignore)
        link.start()
        try:
            _wait(link, seconds)
        except KeyboardInterrupt:
            click.echo("")
        finally:
            link.stop()


def _ignore(event: BridgeEvent) -> None:
    """The frames were printed already."""


def _wait(link: Link, seconds: float | None) -> None:
    deadline = None if seconds is None else time.monotonic() + seconds
    said = ""
    pause = threading.Event()
    while deadline is None or time.monotonic() < deadline:
        problem = "" if link.problem is None else f"{link.problem} {link.advice}".strip()
        if problem != said:
            said = problem
            if problem:
                click.echo(problem, err=True)
        pause.wait(0.2)
