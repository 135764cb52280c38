# SPDX-License-Identifier: Apache-2.0
"""Hypothesis measures wall time; on a machine that others use too, a slow example says nothing."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")
