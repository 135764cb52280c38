# SPDX-License-Identifier: Apache-2.0
"""Tokens in, tokens out. Knows nothing of keyboards or windows."""
