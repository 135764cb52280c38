# SPDX-License-Identifier: Apache-2.0
"""Shortcuts of the operating system, for keyboards without companion keys. Off unless turned on."""
