# SPDX-License-Identifier: Apache-2.0
"""Open a model, whatever its format."""

from __future__ import annotations

from pathlib import Path

from engine.errors import ModelFileError, ModelNotFoundError, UnsupportedModelError
from engine.formats.gguf import open_gguf
from engine.formats.huggingface import open_huggingface
from engine.formats.stored_model import StoredModel
from engine.texts import Text

_PICKLE_SUFFIXES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")


def open_model(path: Path | str) -> StoredModel:
    """Open a GGUF file or a Hugging Face folder as a ModelSource. Close it after use.

    Only the headers are read, so this takes milliseconds.

    Raises:
        ModelNotFoundError: there is nothing at `path`.
        ModelFileError: a file is damaged; the error names the file and the field.
        UnsupportedModelError: sound, but not a model that Thock computes.
    """
    path = Path(path)
    try:
        exists, is_folder = path.exists(), path.is_dir()
    except (OSError, ValueError) as error:  # no permission, name too long, NUL in the name
        raise ModelFileError(
            path, "path", Text("cannot be opened: {error}", error=error)
        ) from error
    if not exists:
        raise ModelNotFoundError(Text("{path}: there is no such file or folder", path=path))
    if is_folder:
        return open_huggingface(path)
    if path.suffix == ".safetensors":
        raise ModelFileError(path, "path", "name the folder that holds config.json instead")
    if path.suffix in _PICKLE_SUFFIXES:
        reason = "pickle files can run code; convert the model to safetensors or GGUF"
        raise UnsupportedModelError(path, "path", reason)
    return open_gguf(path)
