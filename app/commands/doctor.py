# SPDX-License-Identifier: Apache-2.0
"""`thock doctor`: check this machine; the exit code is 0 for fine, 1 for warnings, 2 for errors."""

from __future__ import annotations

import click

from app.doctor.checks import ALL_CHECKS
from app.doctor.report import describe, worst


@click.command()
@click.pass_context
def command(ctx: click.Context) -> None:
    """Check this machine and say how to mend what is missing."""
    findings = [check() for check in ALL_CHECKS]
    click.echo(describe(findings))
    ctx.exit(int(worst(findings)))
