# SPDX-License-Identifier: Apache-2.0
"""Text <-> token ids. `Tokenizer` is what others use; the other modules build its parts."""

from engine.tokenizer.tokenizer import Tokenizer

__all__ = ["Tokenizer"]
