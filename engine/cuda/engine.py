# SPDX-License-Identifier: Apache-2.0
"""One model on one GPU: memory, schedules, launches, and the three ways of staying on the device."""

from __future__ import annotations

import ctypes
import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from engine.cuda import build, l2, memory, panel_shape, rotary, shape
from engine.cuda.cluster_shape import CLUSTER, fitting_variant
from engine.cuda.driver import Context, Grid
from engine.cuda.errors import KernelTimeoutError, UnsupportedDeviceError
from engine.cuda.layout import ClusterLayout, GridLayout, Layout, PanelLayout, Tuning
from engine.cuda.mailbox import Mailbox, Reply, Want
from engine.cuda.params import Params
from engine.cuda.shape import MAX_TOKENS, Op
from engine.fp8.model import Matrix, PackedModel
from engine.messages import Residency as Residency
from engine.texts import Text

_log = logging.getLogger(__name__)

_MATRIX: Final = {
    Op.QKV: Matrix.QKV,
    Op.OUT: Matrix.OUT,
    Op.GATE_UP: Matrix.GATE_UP,
    Op.DOWN: Matrix.DOWN,
    Op.HEAD: Matrix.HEAD,
}
_LEAST_CLUSTERS: Final = 4  # with fewer, the grid kernel is as fast
_SECOND: Final = 1_000_000_000
_ALIGNED: Final = 256  # bytes, as separate allocations would be
_LEAVING_NS: Final = 1_000_000  # from the last look at the clock until the kernel has left, at most
_FOREVER_NS: Final = (1 << 63) - 1


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
        tuning: Tuning | None = None,
    ) -> None:
        config, facts, tuning = model.config, context.facts, tuning or Tuning()
        if residency is Residency.RESIDENT and facts.watchdog:
            raise UnsupportedDeviceError(
                Text(
                    "{facts_name} drives a display and its driver ends long kernels: resident is not "
                    "possible, use lease or launch",
                    facts_name=facts.name,
                )
            )
        # Before a kernel is compiled for nothing; below with what that kernel exchanges.
        memory.require(memory.plan(model, max_context, 0), facts.free_memory, facts.name)
        self._context, self._config, self._tuning = context, config, tuning
        self._residency = residency
        self._max_context = max_context
        self._number = 0
        self._longest_ns = 0  # on the device, of all requests so far
        self._launch_id = 0
        self._loaded: set[int] = set()
        self._layout = (
            self._cluster_layout(model, kernels)
            or self._panel_layout(model, kernels)
            or self._grid_layout(model, kernels)
        )
        needed = memory.plan(model, max_context, sum(self._layout.exchange_bytes().values()))
        _log.info("on the GPU: %s", needed.line())
        memory.require(needed, facts.free_memory, facts.name)
        self._params = self._allocate(model)

    # ------------------------------------------------------------------ set-up

    def _load(self, variant: build.Variant, kernels: Path, shared_bytes: int) -> Any:
        self.kernel = build.cached_kernel(variant, kernels)
        return self._context.load_kernel(self.kernel.cubin, variant.kernel, shared_bytes)

    def _cluster_layout(self, model: PackedModel, kernels: Path) -> Layout | None:
        facts = self._context.facts
        if self._tuning.kernel != "auto":
            return None
        variant = fitting_variant(
            model.config, model.grouping, facts.arch, facts.shared_memory, _LEAST_CLUSTERS * CLUSTER
        )
        if variant is None:
            return None
        shared = variant.shared_bytes(_LEAST_CLUSTERS * CLUSTER)
        self._function = self._load(variant, kernels, shared)
        fit = self._context.resident_clusters(self._function, CLUSTER, variant.threads, shared)
        return ClusterLayout(variant, fit) if fit >= _LEAST_CLUSTERS else None

    def _panel_layout(self, model: PackedModel, kernels: Path) -> Layout | None:
        facts, kernel = self._context.facts, self._tuning.kernel
        is_large = model.config.parameters > shape.LARGE_PARAMETERS
        if kernel == "grid" or (kernel == "auto" and not is_large):
            return None
        variant = panel_shape.fitting_variant(
            model.config, model.grouping, facts.arch, facts.shared_memory, facts.multiprocessors
        )
        if variant is None:
            return None
        self._function = self._load(variant, kernels, variant.shared_bytes)
        fit = self._context.resident_blocks(self._function, variant.threads, variant.shared_bytes)
        return PanelLayout(variant) if fit >= variant.blocks else None

    def _grid_layout(self, model: PackedModel, kernels: Path) -> Layout:
        facts = self._context.facts
        for wide in (self._tuning.wide, 1):  # a wide model leaves shared memory for fewer tokens
            tuning = replace(self._tuning, wide=wide)
            layout = GridLayout(
                model.config, model.grouping, facts.arch, facts.multiprocessors, tuning
            )
            if layout.shared_bytes <= facts.shared_memory:
                break
        self._function = self._load(layout.variant, kernels, layout.shared_bytes)
        resident = self._context.resident_blocks(self._function, shape.THREADS, layout.shared_bytes)
        if resident < layout.blocks:
            raise UnsupportedDeviceError(
                Text(
                    "only {resident} of {blocks} blocks fit at once",
                    resident=resident,
                    blocks=layout.blocks,
                )
            )
        return layout

    def _allocate(self, model: PackedModel) -> Params:
        context, config, ring = self._context, self._config, self._tuning.ring
        params = Params()
        for op, matrix in _MATRIX.items():
            params.codes[op] = self._upload_codes(op, model.matrices[matrix].codes)
            params.scales[op] = context.upload(model.matrices[matrix].scales)
        bias = model.bias if model.bias is not None else np.zeros(4, dtype=np.float32)
        params.bias = context.upload(bias)
        params.embed = context.upload(model.embed)
        params.norms = context.upload(model.norms)
        params.final_norm = context.upload(model.final_norm)
        params.rope = context.upload(rotary.table(config, self._max_context, model.rope_factors))
        self._exchange = self._layout.exchange_bytes()
        self._exchange["inbox"] = 16 * (shape.REQUEST_UNITS + 1)
        self._exchange["candidates"] = 16 * self._layout.blocks * (shape.MAX_TOP + 1)
        self._exchange["done"] = self._exchange["abort"] = 128
        self._place(params)
        params.logits = context.allocate(MAX_TOKENS * config.vocab_size * 4)
        requests, params.requests = context.allocate_shared_with_host(
            ring * shape.REQUEST_UNITS * 4
        )
        replies, params.replies = context.allocate_shared_with_host(ring * shape.REPLY_UNITS * 4)
        self._control, params.control = context.allocate_shared_with_host(4)
        self._mailbox = Mailbox(requests, replies, self._control, ring)
        self._program_bytes = 16 * self._layout.blocks * self._layout.program_units
        params.programs = context.allocate(self._layout.programs * self._program_bytes)
        params.wait_ns = self._tuning.wait_ms * 1_000_000
        params.ring, params.max_context = ring, self._max_context
        params.program_length = self._layout.program_units
        return params

    def _upload_codes(self, op: Op, codes: NDArray[np.uint8]) -> int:
        """Device copy as the kernel reads it, layer by layer: on the host there is never a second model."""
        address = at = self._context.allocate(codes.nbytes)
        for layer in codes:
            part = np.ascontiguousarray(self._layout.arrange(op, layer))
            self._context.write(at, part)
            at += part.nbytes
        return address

    def _place(self, params: Params) -> None:
        """What is used again and again lies together, so that one window of L2 can hold it."""
        cache = memory.cache_bytes(self._config, self._max_context)
        sizes = {**self._exchange, "cache": cache}
        whole = sum(-(-nbytes // _ALIGNED) * _ALIGNED for nbytes in sizes.values())
        base = at = self._context.allocate(whole)
        for name, nbytes in sizes.items():
            setattr(params, name, at)
            at += -(-nbytes // _ALIGNED) * _ALIGNED
        if self._tuning.pin_l2:
            kept = l2.pin(self._context, base, whole)
            _log.info("in L2: %.1f MiB of %.1f MiB", kept.set_aside / 2**20, whole / 2**20)

    def _program_for(self, tokens: int, want: Want) -> int:
        program = self._layout.program_for(tokens, want)
        if program not in self._loaded:
            words = self._layout.encode(program)
            self._context.write(self._params.programs + program * self._program_bytes, words)
            self._loaded.add(program)
        return program

    # ------------------------------------------------------------------ requests

    @property
    def most_tokens(self) -> int:
        """Tokens that one request may hold."""
        return self._layout.most_tokens

    @property
    def left(self) -> bool:
        """Whether no kernel is on the device."""
        return self._context.idle()

    @property
    def stay_ns(self) -> int:
        """After so long the last launch begins no further request."""
        return int(self._params.stay_ns)

    @property
    def layout(self) -> Layout:
        """Which kernel serves, and how."""
        return self._layout

    def run(
        self, tokens: Sequence[int], position: int, *, top: int = 1, want: Want = Want.TOP
    ) -> Reply:
        """Compute `tokens` at `position ..` and wait for the reply.

        Raises:
            KernelTimeoutError: the kernel gave up, or did not answer.
            DeviceLostError, CudaError: a driver call failed.
        """
        return self.collect(self.submit(tokens, position, top=top, want=want))

    def submit(
        self, tokens: Sequence[int], position: int, *, top: int = 1, want: Want = Want.TOP
    ) -> int:
        """Leave a request for the kernel without waiting; its number. Up to `Tuning.ring` may wait.

        They are answered in order. With Want.REPLACEABLE one is passed over if a newer one is there when its
        turn comes; what is submitted later may not rely on the rows of such a one.

        Raises:
            MailboxFullError: as many wait already.
            DeviceLostError, CudaError: a driver call failed.
        """
        program = self._program_for(len(tokens), want)
        number = self._number + 1
        self._mailbox.post(number, tokens, position, program, top, want)
        self._number = number
        if self._residency is Residency.LAUNCH:
            self._launch(number)
        elif self._context.idle():
            self._launch(self._mailbox.served() + 1)
        return number

    def collect(self, number: int) -> Reply:
        """Wait for the reply to a submitted request; at most `Tuning.ring` later ones may have been submitted.

        Raises: as `run`.
        """
        self._await(number)
        reply = self._mailbox.reply(number)
        self._longest_ns = max(self._longest_ns, reply.device_ns)
        return reply

    def ping(self) -> int:
        """Host nanoseconds from the request to the answer of a kernel that computes nothing.

        Raises: as `run`.
        """
        number, mailbox = self._number + 1, self._mailbox
        resident = self._residency is not Residency.LAUNCH and not self._context.idle()
        start = time.perf_counter_ns()
        if not resident:
            self._launch(number)
        mailbox.ring_bell(number, Want.PING)
        self._number = number
        for _ in range(10_000):
            if mailbox.answered(number):
                return time.perf_counter_ns() - start
        self._await(number)
        return time.perf_counter_ns() - start

    def _launch(self, number: int) -> None:
        params, tuning, layout = self._params, self._tuning, self._layout
        self._control[0] = 0  # a request that timed out may have left it set
        self._launch_id += 1
        params.first_request, params.launch_id = number, self._launch_id
        params.request_limit = 1 if self._residency is Residency.LAUNCH else 1 << 30
        stay, idle = {
            Residency.LAUNCH: (params.wait_ns, params.wait_ns),
            Residency.LEASE: (self._lease_ns(), tuning.idle_ms * 1_000_000),
            Residency.RESIDENT: (_FOREVER_NS, _FOREVER_NS),
        }[self._residency]
        params.stay_ns, params.idle_ns = stay, idle
        pointers = (ctypes.c_void_p * 1)(ctypes.addressof(params))
        self._context.launch(
            self._function,
            Grid(layout.blocks, layout.threads, layout.shared_bytes, layout.cluster),
            ctypes.addressof(pointers),
        )

    def _lease_ns(self) -> int:
        """After so long no request is begun, so that one begun just before ends within the lease."""
        whole = self._tuning.lease_ms * 1_000_000
        return whole - min(whole // 2, self._longest_ns + _LEAVING_NS)

    def _await(self, number: int) -> None:
        patience = self._tuning.wait_ms * 1_000_000 * 2 + _SECOND
        deadline = time.monotonic_ns() + patience
        spins, served = 0, self._mailbox.served()
        while not self._mailbox.answered(number):
            spins += 1
            if spins % 2048:
                continue
            if self._mailbox.served() != served:  # others were before it
                served = self._mailbox.served()
                deadline = time.monotonic_ns() + patience
            if self._context.idle() and not self._mailbox.answered(number):
                self._relaunch_or_fail(number)
            elif time.monotonic_ns() > deadline:
                self._control[0] = 1
                raise KernelTimeoutError(
                    Text("request {number} was not answered in time", number=number)
                )

    def _relaunch_or_fail(self, number: int) -> None:
        abort = np.zeros(1, dtype=np.uint32)
        self._context.read(self._params.abort, abort)
        if abort[0] or self._residency is Residency.LAUNCH:
            self._reset()
            raise KernelTimeoutError(
                Text(
                    "the kernel gave up request {number} (reason {abort})",
                    number=number,
                    abort=abort[0],
                )
            )
        # The lease ended between our look and our request.
        self._launch(self._mailbox.served() + 1)

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

    def release(self) -> None:
        """Leave, and give back what was set aside of the device. Safe to call twice."""
        self.leave()
        if self._tuning.pin_l2 and not self._context.closed:
            l2.release(self._context)

    def leave(self) -> None:
        """End a lease or a residency; the next request launches again. Safe to call twice."""
        if self._context.closed:
            return
        self._control[0] = 1
        self._context.synchronise()
        self._control[0] = 0
