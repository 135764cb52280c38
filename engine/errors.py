# SPDX-License-Identifier: Apache-2.0
"""One exception tree for the engine. Each message says what is wrong and what to do about it.

No message ever contains a prompt, a reply or any other text that a person typed.
"""

from __future__ import annotations

from pathlib import Path

from engine.texts import Text, as_text


class EngineError(Exception):
    """Base of every error that the engine raises on purpose. `code` is stable across versions.

    Its message is a Text, so that whoever shows it can say it in the person's language.
    """

    code = "engine"

    def __init__(self, message: str) -> None:
        super().__init__(as_text(message))


class ModelFileError(EngineError):
    """A model file is damaged or not what it claims to be.

    `path` is the file, `field` the place inside it (`tokenizer.ggml.tokens`, `tensor blk.0.attn_q.weight`).
    """

    code = "model-file"

    def __init__(self, path: Path | str, field: str, reason: str) -> None:
        super().__init__(
            Text(
                "{path}: {field}: {reason}",
                path=path,
                field=as_text(field),
                reason=as_text(reason),
            )
        )
        self.path = Path(path)
        self.field = field
        self.reason = reason


class UnsupportedModelError(ModelFileError):
    """The file is sound, but holds an architecture, tensor type or tokeniser that Thock lacks."""

    code = "model-unsupported"


class ModelNotFoundError(EngineError):
    """No model at the given path."""

    code = "model-missing"


class TemplateError(EngineError):
    """The model's chat template cannot be read, refuses these turns, or costs too much to render.

    The message names the template's own words at most, never what a turn says.
    """

    code = "chat-template"


class OutOfMemoryError(EngineError):
    """The model and its cache do not fit; the message carries the numbers."""

    code = "out-of-memory"


class ContextOverflowError(EngineError):
    """More tokens than the model's context length."""

    code = "context-overflow"


class OperationCancelledError(EngineError):
    """The caller's `cancelled()` said yes. What was computed up to then stays valid."""

    code = "cancelled"


class BackendClosedError(EngineError):
    """A backend was used after `close`."""

    code = "backend-closed"


class DeviceError(EngineError):
    """The device that was to compute cannot, or can no more. The same model may run on another one."""

    code = "device"


class EngineUnavailableError(EngineError):
    """The engine child is not running and may not be restarted now; the message says why."""

    code = "engine-unavailable"
