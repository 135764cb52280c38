# SPDX-License-Identifier: Apache-2.0
"""The udev rule that lets the person at this computer open the raw HID interface of their keyboards."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from engine.texts import Text
from firmware_bridge.discovery.candidates import HID, Candidate
from firmware_bridge.discovery.udev_rules import FILE_NAME, RawInterface, render_udev_rules

RULES_FOLDER = Path("/etc/udev/rules.d")


class UdevError(Exception):
    """The rule could not be made or installed; the message says what to do."""


def rules_for(candidates: Sequence[Candidate]) -> str:
    """The rules file for the keyboards among `candidates`.

    Raises:
        UdevError: there is none on USB.
    """
    boards = [
        RawInterface(c.identity.vendor_id, c.identity.product_id, c.interface, c.identity.product)
        for c in candidates
        if c.matches and c.identity.transport == HID and c.identity.vendor_id and c.interface >= 0
    ]
    if not boards:
        raise UdevError(
            "no keyboard with a raw HID interface is plugged in, so there is no rule to make."
        )
    return render_udev_rules(boards)


def install_commands(source: Path, folder: Path = RULES_FOLDER) -> list[list[str]]:
    """What is run to install the file, with sudo unless this is root."""
    prefix = [] if os.geteuid() == 0 else ["sudo"]
    return [
        [*prefix, "install", "-D", "-m", "644", str(source), str(folder / FILE_NAME)],
        [*prefix, "udevadm", "control", "--reload"],
        [*prefix, "udevadm", "trigger", "--subsystem-match=hidraw", "--action=change"],
    ]


def install(rules: str) -> None:
    """Install the rules and have udev apply them to what is plugged in.

    Raises:
        UdevError: a command is missing or failed; what was done before it stays.
    """
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / FILE_NAME
        source.write_text(rules, encoding="utf-8")
        for command in install_commands(source):
            if shutil.which(command[0]) is None:
                raise UdevError(
                    Text(
                        "{command} is not installed: copy the rules above by hand.",
                        command=command[0],
                    )
                )
            done = subprocess.run(command, check=False)
            if done.returncode != 0:
                raise UdevError(
                    Text(
                        "`{command}` failed with status {returncode}.",
                        command=" ".join(command),
                        returncode=done.returncode,
                    )
                )
