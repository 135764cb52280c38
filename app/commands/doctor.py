# SPDX-License-Identifier: Apache-2.0
"""`thock doctor`: check this machine; the exit code is 0 for fine, 1 for warnings, 2 for errors."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from app.commands.keyboards import candidates_of, device_list
from app.commands.speech import CommandError, in_words, say, speech
from app.doctor.checks import ALL_CHECKS
from app.doctor.desktop import DESKTOP_CHECKS
from app.doctor.engine import check_engine
from app.doctor.folders import FOLDER_CHECKS
from app.doctor.keyboards import check_keyboards
from app.doctor.report import CheckStatus, Finding, describe, worst
from app.doctor.udev import RULES_FOLDER, UdevError, install, rules_for
from engine.texts import Text
from firmware_bridge.discovery.candidates import Candidate
from firmware_bridge.discovery.udev_rules import FILE_NAME


@click.command()
@click.option(
    "--install-udev", is_flag=True,
    help="Linux: show the udev rule for your keyboards, ask, and install it.",
)  # fmt: skip
@click.pass_context
def command(ctx: click.Context, install_udev: bool) -> None:
    """Check this machine and say how to mend what is missing."""
    if install_udev:
        _install_udev()
        return
    findings = all_findings()
    click.echo(describe(findings, speech()))
    ctx.exit(int(worst(findings)))


def all_findings() -> list[Finding]:
    """What all checks found."""
    checks = (*ALL_CHECKS, *FOLDER_CHECKS, check_engine, *DESKTOP_CHECKS)
    return [*(check() for check in checks), _check_keyboards()]


def found_candidates() -> Sequence[Candidate]:
    """What is connected; nothing where the devices cannot be listed, which `all_findings` tells."""
    try:
        return _candidates()
    except click.ClickException:
        return ()


def _check_keyboards() -> Finding:
    try:
        return check_keyboards(_candidates())
    except click.ClickException as error:
        return Finding(
            "keyboard",
            CheckStatus.ERROR,
            error.message,
            "Install Thock again in a new environment.",
        )


def _candidates() -> Sequence[Candidate]:
    with device_list() as watch:
        return candidates_of(watch)


def _install_udev() -> None:
    if not sys.platform.startswith("linux"):
        raise CommandError(Text("udev is Linux only; this system needs no rule."))
    try:
        rules = rules_for(_candidates())
        click.echo(rules)
        click.confirm(
            in_words(Text("Install this as {path}?", path=RULES_FOLDER / FILE_NAME)), abort=True
        )
        install(rules)
    except UdevError as error:
        raise CommandError(str(error)) from error
    say("installed. If the keyboard still cannot be opened, plug it in again.")
