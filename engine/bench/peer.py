# SPDX-License-Identifier: Apache-2.0
"""The same weights in `transformers` on the CPU, in float32 as ours: what our times stand next to."""

from __future__ import annotations

import importlib
import logging
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any


class PeerMissingError(Exception):
    """It cannot be measured here; the message says why."""


class TransformersPeer:
    """PyTorch eager with a KV cache that is cut back to where new tokens begin.

    Raises on creation:
        PeerMissingError: transformers is not installed, or cannot read the model.
    """

    def __init__(self, path: Path) -> None:
        warnings.simplefilter("ignore", FutureWarning)  # what will change there one day
        try:
            transformers = importlib.import_module("transformers")
        except ImportError as error:
            raise PeerMissingError("transformers is not installed") from error
        self._torch: Any = importlib.import_module("torch")
        self.name = f"transformers {transformers.__version__}, torch {self._torch.__version__}"
        transformers.utils.logging.disable_progress_bar()
        logging.getLogger("transformers").setLevel(logging.ERROR)
        place = {"gguf_file": path.name} if path.is_file() else {}
        folder = path.parent if path.is_file() else path
        try:
            self._model = transformers.AutoModelForCausalLM.from_pretrained(
                folder, dtype=self._torch.float32, local_files_only=True, **place
            ).eval()
        except (OSError, ValueError, ImportError, KeyError, NotImplementedError) as error:
            raise PeerMissingError(
                f"transformers cannot load it: {type(error).__name__}"
            ) from error
        self._new_cache = transformers.DynamicCache
        self._cache = self._new_cache()

    def __call__(self, tokens: Sequence[int], position: int) -> object:
        """As `engine.bench.timing.Forward`."""
        if position == 0:
            self._cache = self._new_cache()
        elif surplus := self._cache.get_seq_length() - position:
            self._cache.crop(-surplus)
        with self._torch.inference_mode():
            return self._model(
                self._torch.tensor([list(tokens)]),
                past_key_values=self._cache,
                use_cache=True,
                logits_to_keep=1,
            ).logits
