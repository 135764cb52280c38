# SPDX-License-Identifier: Apache-2.0
"""Data files that ship with Thock: prompts, fonts, scripts. No code."""
