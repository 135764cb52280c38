# SPDX-License-Identifier: Apache-2.0
"""Readers for model files that may be damaged or hostile. Start at `open_model`."""

from engine.formats.open import open_model

__all__ = ["open_model"]
