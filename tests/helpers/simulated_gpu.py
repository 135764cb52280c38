# SPDX-License-Identifier: Apache-2.0
"""A GPU in Python: answers as `cuda.bindings.driver`, and runs the kernel's executable specs.

Device memory is ordinary memory at real addresses, so what the host writes for the kernel (parameters,
programs, requests, cleared caches) is what the simulated kernel reads. It says nothing of how fast a GPU is.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from queue import Queue
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.cuda import build, cluster_schedule, driver, panel_schedule, schedule
from engine.cuda.cluster_interpreter import ClusterInterpreter
from engine.cuda.interpreter import Interpreter
from engine.cuda.mailbox import Candidate, Want
from engine.cuda.mailbox_interpreter import KernelEnd, Request
from engine.cuda.panel_interpreter import PanelInterpreter
from engine.cuda.panel_shape import PanelVariant
from engine.cuda.params import Params
from engine.cuda.shape import REPLY_UNITS, REQUEST_UNITS
from engine.fp8.model import PackedModel
from tests.helpers.fake_cuda import CUresult, Names


class _Launch:
    """What `cuLaunchKernelEx` takes; attributes are set by name."""

    def __init__(self) -> None:
        self.attrs: list[Any] = []


class _Attribute:
    def __init__(self) -> None:
        self.id: Any = None
        self.value = SimpleNamespace(cooperative=0, clusterDim=SimpleNamespace(x=1, y=1, z=1))
        self.accessPolicyWindow = SimpleNamespace()


_OK = CUresult.CUDA_SUCCESS


class SimulatedGpu:
    """One device with `model` as the weights of every kernel that is launched on it.

    `capability` (9, 0) gives the cluster kernel where it fits. `launches` has (blocks, cluster) of each launch.
    """

    CUresult = CUresult
    CUdevice_attribute = CUstream_flags = CUfunction_attribute = CUlaunchAttributeID = Names()
    CUlimit = CUaccessProperty = Names()
    CUlaunchConfig = _Launch
    CUlaunchAttribute = CUstreamAttrValue = _Attribute
    CU_MEMHOSTALLOC_PORTABLE = CU_MEMHOSTALLOC_DEVICEMAP = 1

    def __init__(
        self, model: PackedModel, capability: tuple[int, int] = (8, 9), *, watchdog: bool = False
    ) -> None:
        self._model = model
        self._attributes = {
            "COMPUTE_CAPABILITY_MAJOR": capability[0],
            "COMPUTE_CAPABILITY_MINOR": capability[1],
            "MULTIPROCESSOR_COUNT": 8 if capability < (9, 0) else 132,
            "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": (99 if capability < (9, 0) else 227) << 10,
            "KERNEL_EXEC_TIMEOUT": int(watchdog),
            "MAX_PERSISTING_L2_CACHE_SIZE": 20_000,
            "MAX_ACCESS_POLICY_WINDOW_SIZE": 40_000,
        }
        self._memory: dict[int, Any] = {}
        self._queue: Queue[tuple[int, bytes, int, int, int] | None] = Queue()
        self._left: Counter[int] = Counter()  # launches that have not ended, by stream
        self._streams = count(1)
        self._lock = threading.Lock()
        self.launches: list[tuple[int, int]] = []
        self.set_aside = 0  # bytes of L2
        self.windows: dict[int, Any] = {}  # by stream
        self.failed: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="simulated-gpu", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the device's thread; raises what a kernel died of."""
        self._queue.put(None)
        self._thread.join(30)
        assert not self._thread.is_alive()
        if self.failed is not None:
            raise self.failed

    def __getattr__(self, call: str) -> Any:
        if not call.startswith("cu"):
            raise AttributeError(call)
        return lambda *_: (_OK, 1)

    def cuStreamCreate(self, _: int) -> Any:
        return _OK, next(self._streams)

    def cuDriverGetVersion(self) -> Any:
        return _OK, 13000

    def cuDeviceGetName(self, *_: Any) -> Any:
        return _OK, b"Simulated GPU\0"

    def cuMemGetInfo(self) -> Any:
        return _OK, 8 << 30, 8 << 30

    def cuDeviceGetAttribute(self, attribute: Any, _: Any) -> Any:
        return _OK, self._attributes.get(attribute.name.removeprefix("CU_DEVICE_ATTRIBUTE_"), 1)

    def cuCtxSetLimit(self, _: Any, nbytes: int) -> Any:
        self.set_aside = nbytes
        return (_OK,)

    def cuCtxGetLimit(self, _: Any) -> Any:
        return _OK, self.set_aside

    def cuStreamSetAttribute(self, stream: int, _: Any, value: Any) -> Any:
        self.windows[stream] = value.accessPolicyWindow
        return (_OK,)

    def cuCtxResetPersistingL2Cache(self) -> Any:
        self.windows.clear()
        return (_OK,)

    def cuOccupancyMaxActiveClusters(self, *_: Any) -> Any:
        return _OK, 7

    # ------------------------------------------------------------------ memory

    def _new(self, nbytes: int) -> Any:
        buffer = ctypes.create_string_buffer(nbytes + 128)
        address = -(-ctypes.addressof(buffer) // 128) * 128
        ctypes.memset(address, 0xA5, nbytes)  # nobody may rely on zeros
        self._memory[address] = buffer
        return _OK, address

    def cuMemAlloc(self, nbytes: int) -> Any:
        return self._new(nbytes)

    def cuMemHostAlloc(self, nbytes: int, _: int) -> Any:
        return self._new(nbytes)

    def cuMemHostGetDevicePointer(self, address: int, _: int) -> Any:
        return _OK, address

    def cuMemFree(self, address: int) -> Any:
        del self._memory[int(address)]
        return (_OK,)

    def cuMemFreeHost(self, address: int) -> Any:
        # What the host has mapped may still be looked at by numpy; the buffer goes with the device.
        return (_OK,)

    def cuMemcpyHtoD(self, to: int, source: int, nbytes: int) -> Any:
        ctypes.memmove(to, source, nbytes)
        return (_OK,)

    def cuMemcpyDtoHAsync(self, to: int, source: int, nbytes: int, _: Any) -> Any:
        ctypes.memmove(to, source, nbytes)
        return (_OK,)

    def cuMemcpyHtoDAsync(self, to: int, source: int, nbytes: int, _: Any) -> Any:
        return self.cuMemcpyHtoD(to, source, nbytes)

    def cuMemsetD8(self, address: int, value: int, nbytes: int) -> Any:
        ctypes.memset(address, value, nbytes)
        return (_OK,)

    # ------------------------------------------------------------------ kernels

    def cuLaunchKernelEx(self, config: Any, _: Any, arguments: int, __: Any) -> Any:
        pointer = ctypes.c_void_p.from_address(arguments).value
        assert pointer is not None
        params = ctypes.string_at(pointer, ctypes.sizeof(Params))
        cluster = max((a.value.clusterDim.x for a in config.attrs), default=1)
        self.launches.append((config.gridDimX, cluster))
        with self._lock:
            self._left[config.hStream] += 1
        self._queue.put((config.hStream, params, config.gridDimX, cluster, config.blockDimX))
        return (_OK,)

    def cuStreamQuery(self, stream: int) -> Any:
        if self.failed is not None:
            return (CUresult.CUDA_ERROR_LAUNCH_FAILED,)
        with self._lock:
            return (CUresult.CUDA_ERROR_NOT_READY if self._left[stream] else _OK,)

    def cuStreamSynchronize(self, stream: int) -> Any:
        while self.cuStreamQuery(stream)[0] is CUresult.CUDA_ERROR_NOT_READY:
            time.sleep(1e-4)
        return (_OK,)

    def _run(self) -> None:
        while (queued := self._queue.get()) is not None:
            stream, *launch = queued
            try:
                _Kernel(self._model, *launch).run()
            except BaseException as error:  # noqa: BLE001 - shown by `stop` and by the next driver call
                self.failed = error
            with self._lock:
                self._left[stream] -= 1


def _array(address: int, words: int, kind: Any = ctypes.c_uint32) -> NDArray[Any]:
    return np.ctypeslib.as_array((kind * words).from_address(address))


class _Kernel:
    """One launch."""

    def __init__(
        self, model: PackedModel, params: bytes, blocks: int, cluster: int, threads: int
    ) -> None:
        self._model, self._blocks, self._cluster = model, blocks, cluster
        self._panels = threads == PanelVariant.threads  # no other kernel has as many
        self._p = p = Params.from_buffer_copy(params)
        self._done = _array(p.done, 1)
        self._control = _array(p.control, 4)
        self._end = KernelEnd(
            _array(p.requests, p.ring * REQUEST_UNITS * 4),
            _array(p.replies, p.ring * REPLY_UNITS * 4),
            self._control,
            p.ring,
            p.first_request,
        )
        config = model.config
        shape = (config.n_layers, config.n_kv_heads, 2, p.max_context, config.head_dim)
        halves = _array(p.cache, int(np.prod(shape)), ctypes.c_uint16)
        self._cache = halves.view(np.float16).reshape(shape)

    def run(self) -> None:
        arrived = since = time.perf_counter_ns()
        for _ in range(self._p.request_limit):
            assert self._done[0] == (self._end.number - 1) * self._blocks, "blocks were lost"
            request = self._next(arrived, since)
            if request is None:
                return
            started = time.perf_counter_ns()
            candidates = [] if request.want & Want.PING else self._serve(request)
            self._done[0] += self._blocks
            self._end.answer(request, candidates, time.perf_counter_ns() - started)
            since = time.perf_counter_ns()

    def _next(self, arrived: int, since: int) -> Request | None:
        while True:
            request = self._end.look()
            if request is not None:
                return request
            now = time.perf_counter_ns()
            late = now - arrived > self._p.stay_ns or now - since > self._p.idle_ns
            if late or self._end.told_to_leave:
                return None
            time.sleep(2e-5)

    def _serve(self, request: Request) -> list[Candidate]:
        words = self._blocks * self._p.program_length * 4
        program = _array(self._p.programs + request.program * words * 4, words)
        assert set(program.tolist()) != {0xA5A5A5A5}, "a program that was never written"
        every = bool(request.want & Want.ALL_LOGITS)
        logits = self._logits(request, every)
        out = _array(self._p.logits, logits.size, ctypes.c_float)
        out[:] = logits.reshape(-1)
        if every:
            return []
        return candidates_of(logits[-1], request.top)

    def _logits(self, request: Request, every: bool) -> NDArray[np.float32]:
        config, tokens = self._model.config, list(request.tokens)
        interpreter: Interpreter | ClusterInterpreter | PanelInterpreter
        if self._cluster > 1:
            interpreter = ClusterInterpreter(self._model, self._p.max_context)
            interpreter.cache = self._cache
            cut = cluster_schedule.build(config, 16, width=8, all_logits=every)
            return interpreter.run(cut, tokens, request.position)
        if self._panels:
            interpreter = PanelInterpreter(self._model, self._p.max_context)
            interpreter.cache = self._cache
            panels = panel_schedule.build(config, self._blocks, width=128, all_logits=every)
            return interpreter.run(panels, tokens, request.position)
        interpreter = Interpreter(self._model, self._p.max_context)
        interpreter.cache = self._cache
        built = schedule.build(
            config, self._model.grouping, 4, width=128, workers=2, all_logits=every
        )
        return interpreter.run(built, tokens, request.position)


def candidates_of(logits: NDArray[np.float32], top: int) -> list[Candidate]:
    """The best tokens of one row, the lowest id on ties, as `kernels/select.cuh` ranks them."""
    wide = logits.astype(np.float64)
    norm = wide.max() + np.log(np.exp(wide - wide.max()).sum())
    best = np.argsort(-logits, kind="stable")[:top]
    return [Candidate(int(t), float(logits[t]), float(logits[t] - norm)) for t in best]


@contextmanager
def simulated_gpu(
    monkeypatch: pytest.MonkeyPatch,
    model: PackedModel,
    capability: tuple[int, int] = (8, 9),
    *,
    watchdog: bool = False,
) -> Iterator[SimulatedGpu]:
    """The driver that `engine.cuda` finds is a SimulatedGpu, and no kernel is compiled."""
    gpu = SimulatedGpu(model, capability, watchdog=watchdog)
    monkeypatch.setattr(driver, "load", lambda: gpu)
    monkeypatch.setattr(
        build, "cached_kernel", lambda *_: build.Built(b"\x7fELF", "simulated", None)
    )
    # Host and device poll for each other, and share one interpreter lock.
    before = sys.getswitchinterval()
    sys.setswitchinterval(2e-4)
    try:
        yield gpu
    finally:
        sys.setswitchinterval(before)
        gpu.stop()
