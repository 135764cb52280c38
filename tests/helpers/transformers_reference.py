# SPDX-License-Identifier: Apache-2.0
"""The same model computed by `transformers` in float32: code we did not write."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, PreTrainedModel
from transformers.utils import logging as transformers_logging

from engine.backend import Logits


class TransformersReference:
    """Logits of every position, by AutoModelForCausalLM."""

    def __init__(self, model: PreTrainedModel) -> None:
        self._model = model.eval()

    @classmethod
    def from_gguf(cls, path: Path) -> TransformersReference:
        with _quiet():
            model = AutoModelForCausalLM.from_pretrained(
                path.parent, gguf_file=path.name, dtype=torch.float32
            )
        return cls(model)

    @classmethod
    def from_folder(cls, folder: Path) -> TransformersReference:
        with _quiet():
            model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        return cls(model)

    def logits(self, tokens: Sequence[int]) -> Logits:
        """Shape (len(tokens), vocab_size)."""
        with torch.inference_mode():
            logits: Logits = self._model(torch.tensor([list(tokens)])).logits[0].numpy()
        return logits


@contextmanager
def _quiet() -> Iterator[None]:
    """Warnings of another project's loader are not ours to fail on; nor are its progress bars."""
    logger = logging.getLogger("transformers")
    level = logger.level
    transformers_logging.disable_progress_bar()
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
        transformers_logging.enable_progress_bar()
