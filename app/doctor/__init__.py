# SPDX-License-Identifier: Apache-2.0
"""Checks of the machine, each with the fix for what it found."""
