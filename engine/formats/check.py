# SPDX-License-Identifier: Apache-2.0
"""Read a whole model once and report what it is: the work behind `thock model check`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.formats.open import open_model
from engine.formats.source import TokenizerKind, TokenizerSpec
from engine.formats.stored_model import StoredModel
from engine.texts import Text

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class ModelReport:
    """What a sound model is. `tensor_types` counts tensors, `file_bytes` all files of weights."""

    path: Path
    format: str
    architecture: str
    name: str
    parameters: int
    file_bytes: int
    tensor_types: Mapping[str, int]
    context_length: int
    vocab_size: int
    tokenizer_kind: TokenizerKind
    tokenizer_pre: str
    has_chat_template: bool
    warnings: tuple[str, ...]


def check_model(path: Path | str, progress: Progress | None = None) -> ModelReport:
    """Check every tensor for shape, NaN and infinity, and decode the tokeniser.

    `progress(done, total)` is called after each tensor, in bytes of weights. It may raise to stop.

    Raises:
        ModelNotFoundError, ModelFileError, UnsupportedModelError: as `open_model`; also for what
            shows only when the weights are read.
    """
    model = open_model(path)
    try:
        tokenizer = model.tokenizer
        warnings = [*_scan_tensors(model, progress), *_tokenizer_warnings(tokenizer)]
        config = model.config
        return ModelReport(
            path=model.path,
            format=model.format_name,
            architecture=config.architecture,
            name=config.name,
            parameters=config.parameters,
            file_bytes=model.file_bytes,
            tensor_types=Counter(model.stored(n).type.name for n in model.tensor_names()),
            context_length=config.context_length,
            vocab_size=config.vocab_size,
            tokenizer_kind=tokenizer.kind,
            tokenizer_pre=tokenizer.pre,
            has_chat_template=tokenizer.chat_template is not None,
            warnings=tuple(warnings),
        )
    finally:
        model.close()


def _scan_tensors(model: StoredModel, progress: Progress | None) -> list[str]:
    """Read all weights; a matrix of zero bytes only is what an unfinished download leaves."""
    warnings: list[str] = []
    done = 0
    for name in model.tensor_names():
        tensor = model.stored(name)
        if not model.scan(name) and len(tensor.shape) > 1:
            warnings.append(
                Text(
                    "{tensor} holds zeros only; was the download complete?",
                    tensor=tensor.field,
                )
            )
        done += tensor.size
        if progress is not None:
            progress(done, model.stored_bytes)
    return warnings


def _tokenizer_warnings(tokenizer: TokenizerSpec) -> list[str]:
    warnings: list[str] = []
    if tokenizer.chat_template is None:
        warnings.append(Text("there is no chat template; chat needs one, suggestions do not"))
    if not tokenizer.eos_ids:
        warnings.append(Text("no token ends a reply; replies end at their length limit only"))
    if tokenizer.kind is TokenizerKind.BPE and not tokenizer.pre:
        warnings.append(Text("the file does not name its pre-tokeniser (tokenizer.ggml.pre)"))
    return warnings
