# SPDX-License-Identifier: Apache-2.0
"""The GPU as a Backend: what a Session works on (see `engine.backend`)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from engine.backend import Backend, Logits, check_rows
from engine.config import ModelConfig
from engine.cuda.driver import Context, DeviceFacts
from engine.cuda.engine import GpuEngine, Residency
from engine.cuda.errors import CudaError
from engine.cuda.layout import Tuning
from engine.cuda.mailbox import Reply, Want
from engine.errors import BackendClosedError
from engine.fp8.model import PackedModel

_log = logging.getLogger(__name__)


class CudaBackend:
    """One FP8 model on one GPU with one KV cache. Use from one thread.

    Raises on creation:
        NoDeviceError, DriverTooOldError, UnsupportedDeviceError: no GPU that can run this.
        OutOfMemoryError: the model does not fit; the message has the numbers.
        CompileError, CudaError.
    """

    def __init__(
        self,
        model: PackedModel,
        max_context: int,
        kernels: Path,
        *,
        device: int = 0,
        residency: Residency = Residency.LAUNCH,
        tuning: Tuning | None = None,
    ) -> None:
        self._config = model.config
        self._max_context = min(max_context, model.config.context_length)
        self._held = 0
        self._context = Context(device)
        try:
            self._engine = GpuEngine(
                self._context,
                model,
                self._max_context,
                kernels,
                residency=residency,
                tuning=tuning,
            )
        except BaseException:
            self._context.close()
            raise

    @property
    def config(self) -> ModelConfig:
        return self._config

    @property
    def max_context(self) -> int:
        return self._max_context

    @property
    def facts(self) -> DeviceFacts:
        """What the device is."""
        return self._context.facts

    @property
    def engine(self) -> GpuEngine:
        """The engine below, for measurements."""
        return self._engine

    def forward(self, tokens: Sequence[int], position: int) -> Logits:
        """See `engine.backend.Backend.forward`. Longer inputs run in requests of up to 128 tokens."""
        self._run(tokens, position, 1, Want.LOGITS)
        row: Logits = self._engine.logits(1)[0]
        return row

    def forward_all(self, tokens: Sequence[int], position: int) -> Logits:
        """See `engine.backend.Backend.forward_all`."""
        self._check(tokens, position)
        parts = []
        for start in range(0, len(tokens), self._engine.most_tokens):
            part = tokens[start : start + self._engine.most_tokens]
            self._run(part, position + start, 1, Want.ALL_LOGITS)
            parts.append(self._engine.logits(len(part)))
        return np.concatenate(parts)

    def best(self, tokens: Sequence[int], position: int, count: int = 1) -> Reply:
        """The `count` most likely next tokens after `tokens`; no logits leave the device.

        Raises: as `forward`.
        """
        return self._run(tokens, position, count, Want.TOP)

    def forward_branches(self, branches: Sequence[Sequence[int]], position: int) -> Logits:
        """See `engine.backend.Backend.forward_branches`: one request a branch."""
        if not branches:
            raise ValueError("no branch to compute")
        for branch in branches:
            self._check(branch, position)
        rows = [self.forward(branch, position) for branch in branches]
        self._held = position
        return np.stack(rows)

    def leave_room(self, *, wanted: bool) -> None:
        """See `engine.backend.Backend.leave_room`: the processors are not what computes here."""

    def forget(self) -> None:
        """See `engine.backend.Backend.forget`."""
        if not self._context.closed:
            self._context.make_current()
            self._engine.forget()
            self._held = 0

    def _check(self, tokens: Sequence[int], position: int) -> None:
        if self._context.closed:
            raise BackendClosedError("the GPU backend is closed")
        check_rows(
            tokens,
            position,
            held=self._held,
            max_context=self._max_context,
            vocab_size=self._config.vocab_size,
        )

    def _run(self, tokens: Sequence[int], position: int, top: int, want: Want) -> Reply:
        self._check(tokens, position)
        self._context.make_current()
        self._held = position
        most = self._engine.most_tokens
        starts = range(0, len(tokens), most)
        for start in starts[:-1]:
            self._engine.run(tokens[start : start + most], position + start)
        last = tokens[starts[-1] :]
        reply = self._engine.run(last, position + starts[-1], top=top, want=want)
        self._held = position + len(tokens)
        return reply

    def close(self) -> None:
        """End a residency, free the weights and the cache. Safe to call twice."""
        try:
            self._engine.release()
        except CudaError as error:
            _log.info("the GPU context was already lost at close: %s", error)
        self._context.close()


if TYPE_CHECKING:  # mypy holds it to the protocol, also where no GPU can run the contract tests
    _BACKEND: type[Backend] = CudaBackend
