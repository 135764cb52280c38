# SPDX-License-Identifier: Apache-2.0
"""One model on one GPU: memory, schedules, launches, and the three ways of staying on the device."""

from __future__ import annotations

import ctypes
import enum
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from engine.cuda import build, memory, rotary, schedule, shape
from engine.cuda.driver import Context
from engine.cuda.errors import KernelTimeoutError, UnsupportedDeviceError
from engine.cuda.mailbox import Mailbox, Reply, Want
from engine.cuda.params import Params
from engine.cuda.shape import LAYER_PRODUCTS, MAX_TOKENS, TILE_TOKENS, KernelVariant, Op
from engine.cuda.validate import validate
from engine.fp8.model import Matrix, PackedModel

_MATRIX: Final = {
    Op.QKV: Matrix.QKV,
    Op.OUT: Matrix.OUT,
    Op.GATE_UP: Matrix.GATE_UP,
    Op.DOWN: Matrix.DOWN,
    Op.HEAD: Matrix.HEAD,
}
_SECOND: Final = 1_000_000_000
_FOREVER_NS: Final = (1 << 63) - 1


class Residency(enum.Enum):
    """How long the kernel stays on the device.

    LAUNCH: one launch a request. LEASE: at most `Tuning.lease_ms` in all, and `Tuning.idle_ms` after the
    last request. RESIDENT: until closed; refused on a GPU whose driver kills long kernels.
    """

    LAUNCH = "launch"
    LEASE = "lease"
    RESIDENT = "resident"


@dataclass(frozen=True, slots=True)
class Tuning:
    """Choices that change speed, never results."""

    wide: int = 2  # tiles of 8 tokens that one block computes at once in long requests
    few_workers: int = 96  # blocks for requests of at most 8 tokens
    many_workers: int = 1 << 16  # blocks for longer ones, at most all
    share_from: int = 1  # tokens from which one block quantises a token's inputs for all
    ring: int = 64
    wait_ms: int = 1000  # longest wait inside a request before the kernel gives up
    lease_ms: int = 500
    idle_ms: int = 150


@dataclass(frozen=True, slots=True)
class _Plan:
    """Which program serves a request."""

    width: int
    groups: int
    all_logits: bool
    shared_inputs: bool


class GpuEngine:
    """Runs requests of up to 128 tokens on `context`. Not thread-safe; owned by one backend.

    Raises on creation:
        OutOfMemoryError: the model does not fit; nothing was allocated.
        UnsupportedDeviceError, CompileError, CudaError.
    """

    def __init__(
        self,
        context: Context,
        model: PackedModel,
        max_context: int,
        kernels: Path,
        *,
        residency: Residency = Residency.LAUNCH,
        tuning: Tuning = Tuning(),
    ) -> None:
        config, facts = model.config, context.facts
        if residency is Residency.RESIDENT and facts.watchdog:
            raise UnsupportedDeviceError(
                f"{facts.name} drives a display and its driver ends long kernels: "
                "resident is not possible, use lease or launch"
            )
        memory.require(memory.plan(model, max_context), facts.free_memory, facts.name)
        self._context, self._config, self._tuning = context, config, tuning
        self._grouping = model.grouping
        self._residency = residency
        self._blocks = facts.multiprocessors
        self._max_context = max_context
        self._number = 0
        self._launch_id = 0
        self._plans = self._all_plans()
        self._program_length = self._longest_program()
        self._loaded: set[int] = set()
        variant = KernelVariant(config, model.grouping, tuning.wide, facts.arch)
        self._shared_bytes = self._shared_memory(variant)
        self.kernel = build.cached_kernel(variant, kernels)
        self._function = context.load_kernel(self.kernel.cubin, build.KERNEL, self._shared_bytes)
        resident = context.resident_blocks(self._function, shape.THREADS, self._shared_bytes)
        if resident < self._blocks:
            raise UnsupportedDeviceError(f"only {resident} of {self._blocks} blocks fit at once")
        self._params = self._allocate(model)

    # ------------------------------------------------------------------ set-up

    def _all_plans(self) -> list[_Plan]:
        wide = TILE_TOKENS * self._tuning.wide
        most = min(-(-MAX_TOKENS // wide), self._workers(TILE_TOKENS + 1))
        plans = []
        for all_logits in (False, True):
            plans += [_Plan(TILE_TOKENS, 1, all_logits, shared) for shared in (False, True)]
            plans += [_Plan(wide, groups, all_logits, True) for groups in range(1, most + 1)]
        return plans

    def _workers(self, tokens: int) -> int:
        few = tokens <= TILE_TOKENS
        wanted = self._tuning.few_workers if few else self._tuning.many_workers
        return min(wanted, self._blocks)

    def _tiles(self, op: Op) -> int:
        return shape.product_shape(self._config, self._grouping, op).tiles

    def _group_sizes(self, plan: _Plan) -> int:
        return self._workers(plan.width * plan.groups) // plan.groups

    def _longest_program(self) -> int:
        config = self._config
        longest = 0
        for plan in self._plans:
            smallest = self._group_sizes(plan)
            pieces = len(schedule.attention_pieces(config, plan.width, smallest))
            products = len(LAYER_PRODUCTS) * (1 + plan.shared_inputs)
            longest = max(longest, 2 + config.n_layers * (products + -(-pieces // smallest)))
        return longest

    def _shared_memory(self, variant: KernelVariant) -> int:
        out, head = self._tiles(Op.OUT), self._tiles(Op.HEAD)
        tail = max(-(-out // self._group_sizes(p)) * p.width * 64 for p in self._plans)
        tail = max(tail, -(-head // self._blocks) * 64)
        return (
            variant.shared_struct_bytes + variant.scratch_bytes + 16 * self._program_length + tail
        )

    def _allocate(self, model: PackedModel) -> Params:
        context, config, ring = self._context, self._config, self._tuning.ring
        params = Params()
        for op, matrix in _MATRIX.items():
            params.codes[op] = context.upload(model.matrices[matrix].codes)
            params.scales[op] = context.upload(model.matrices[matrix].scales)
        bias = model.bias if model.bias is not None else np.zeros(4, dtype=np.float32)
        params.bias = context.upload(bias)
        params.embed = context.upload(model.embed)
        params.norms = context.upload(model.norms)
        params.final_norm = context.upload(model.final_norm)
        params.rope = context.upload(rotary.table(config, self._max_context, model.rope_factors))
        params.cache = context.allocate(memory.cache_bytes(config, self._max_context))
        self._exchange = {name: 16 * n for name, n in memory.exchange_units(config).items()}
        self._exchange["inbox"] = 16 * (shape.REQUEST_UNITS + 1)
        self._exchange["candidates"] = 16 * self._blocks * (shape.MAX_TOP + 1)
        self._exchange["done"] = self._exchange["abort"] = 128
        for name, nbytes in self._exchange.items():
            setattr(params, name, context.allocate(nbytes))
        params.logits = context.allocate(MAX_TOKENS * config.vocab_size * 4)
        requests, params.requests = context.allocate_shared_with_host(
            ring * shape.REQUEST_UNITS * 4
        )
        replies, params.replies = context.allocate_shared_with_host(ring * shape.REPLY_UNITS * 4)
        self._control, params.control = context.allocate_shared_with_host(4)
        self._mailbox = Mailbox(requests, replies, ring)
        self._program_bytes = 16 * self._blocks * self._program_length
        params.programs = context.allocate(len(self._plans) * self._program_bytes)
        params.wait_ns = self._tuning.wait_ms * 1_000_000
        params.ring, params.max_context = ring, self._max_context
        params.program_length = self._program_length
        return params

    def _program_for(self, tokens: int, want: Want) -> int:
        all_logits = bool(want & Want.ALL_LOGITS)
        width = TILE_TOKENS * (1 if tokens <= TILE_TOKENS else self._tuning.wide)
        shared = tokens >= self._tuning.share_from or tokens > TILE_TOKENS
        plan = _Plan(width, -(-tokens // width), all_logits, shared)
        index = self._plans.index(plan)
        if index not in self._loaded:
            self._load_program(index, plan)
        return index

    def _load_program(self, index: int, plan: _Plan) -> None:
        built = schedule.build(
            self._config,
            self._grouping,
            self._blocks,
            width=plan.width,
            groups=plan.groups,
            workers=self._workers(plan.width * plan.groups),
            all_logits=plan.all_logits,
            shared_inputs=plan.shared_inputs,
        )
        validate(self._config, self._grouping, built)
        words = built.encode(self._program_length)
        self._context.write(self._params.programs + index * self._program_bytes, words)
        self._loaded.add(index)

    # ------------------------------------------------------------------ requests

    @property
    def most_tokens(self) -> int:
        """Tokens that one request may hold."""
        widest = max(p.width * p.groups for p in self._plans)
        return min(MAX_TOKENS, widest)

    def run(
        self, tokens: Sequence[int], position: int, *, top: int = 1, want: Want = Want.TOP
    ) -> Reply:
        """Compute `tokens` at `position ..` and wait for the reply.

        Raises:
            KernelTimeoutError: the kernel gave up, or did not answer.
            DeviceLostError, CudaError: a driver call failed.
        """
        program = self._program_for(len(tokens), want)
        self._number += 1
        number = self._number
        self._mailbox.post(number, tokens, position, program, top, want)
        if self._residency is Residency.LAUNCH or self._context.idle():
            self._launch(number)
        self._await(number)
        return self._mailbox.reply(number)

    def _launch(self, number: int) -> None:
        params, tuning = self._params, self._tuning
        self._control[0] = 0  # a request that timed out may have left it set
        self._launch_id += 1
        params.first_request, params.launch_id = number, self._launch_id
        params.request_limit = 1 if self._residency is Residency.LAUNCH else 1 << 30
        stay, idle = {
            Residency.LAUNCH: (params.wait_ns, params.wait_ns),
            Residency.LEASE: (tuning.lease_ms * 1_000_000, tuning.idle_ms * 1_000_000),
            Residency.RESIDENT: (_FOREVER_NS, _FOREVER_NS),
        }[self._residency]
        params.stay_ns, params.idle_ns = stay, idle
        pointers = (ctypes.c_void_p * 1)(ctypes.addressof(params))
        self._context.launch(
            self._function,
            self._blocks,
            shape.THREADS,
            self._shared_bytes,
            ctypes.addressof(pointers),
        )

    def _await(self, number: int) -> None:
        deadline = time.monotonic_ns() + self._tuning.wait_ms * 1_000_000 * 2 + _SECOND
        spins = 0
        while not self._mailbox.answered(number):
            spins += 1
            if spins % 2048:
                continue
            if self._context.idle() and not self._mailbox.answered(number):
                self._relaunch_or_fail(number)
            elif time.monotonic_ns() > deadline:
                self._control[0] = 1
                raise KernelTimeoutError(f"request {number} was not answered in time")

    def _relaunch_or_fail(self, number: int) -> None:
        abort = np.zeros(1, dtype=np.uint32)
        self._context.read(self._params.abort, abort)
        if abort[0] or self._residency is Residency.LAUNCH:
            self._reset()
            raise KernelTimeoutError(f"the kernel gave up request {number} (reason {abort[0]})")
        self._launch(number)  # the lease ended between our look and our request

    def _reset(self) -> None:
        self._mailbox.clear()
        for name, nbytes in self._exchange.items():
            self._context.clear(getattr(self._params, name), nbytes)
        self._number = 0

    def logits(self, rows: int) -> NDArray[np.float32]:
        """Logits that the last request left, shape (rows, vocab); rows 1 unless ALL_LOGITS."""
        out = np.empty((rows, self._config.vocab_size), dtype=np.float32)
        address = self._params.logits
        if self._residency is Residency.LAUNCH:
            self._context.synchronise()
        self._context.read(address, out)
        return out

    def forget(self) -> None:
        """End a residency and overwrite the KV rows, which are made of what a person typed."""
        self.leave()
        self._context.clear(self._params.cache, memory.cache_bytes(self._config, self._max_context))

    def leave(self) -> None:
        """End a lease or a residency; the next request launches again. Safe to call twice."""
        if self._context.closed:
            return
        self._control[0] = 1
        self._context.synchronise()
        self._control[0] = 0
