# SPDX-License-Identifier: Apache-2.0
"""A thin, typed layer over the CUDA driver API (`cuda.bindings.driver`), loaded on first use.

Every call is checked; a failure raises a CudaError that names the call and CUDA's own error name.
"""

from __future__ import annotations

import ctypes
import importlib
import os
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from engine.cuda.errors import (
    CudaError,
    DeviceLostError,
    DriverTooOldError,
    NoDeviceError,
    UnsupportedDeviceError,
)
from engine.errors import OutOfMemoryError
from engine.texts import Text

MINIMUM_DRIVER: Final = 12040  # CUDA 12.4: the first whose drivers load e4m3 mma cubins
_LOST: Final = {
    "CUDA_ERROR_UNKNOWN",  # 999, after suspend and resume
    "CUDA_ERROR_LAUNCH_FAILED",
    "CUDA_ERROR_LAUNCH_TIMEOUT",
    "CUDA_ERROR_ILLEGAL_ADDRESS",
    "CUDA_ERROR_MISALIGNED_ADDRESS",
    "CUDA_ERROR_HARDWARE_STACK_ERROR",
    "CUDA_ERROR_ECC_UNCORRECTABLE",
    "CUDA_ERROR_CONTEXT_IS_DESTROYED",
}


def load() -> Any:
    """The module `cuda.bindings.driver`.

    Raises:
        NoDeviceError: cuda-python or the NVIDIA driver is missing.
    """
    try:
        return importlib.import_module("cuda.bindings.driver")
    except ImportError as error:
        raise NoDeviceError("cuda-python is not installed: pip install 'thock[cuda]'") from error


def check(api: Any, call: str, answer: tuple[Any, ...]) -> Any:
    """Unpack `(result, value...)`; raise unless the result is CUDA_SUCCESS."""
    result, *values = answer
    if result == api.CUresult.CUDA_SUCCESS:
        return values[0] if len(values) == 1 else tuple(values)
    name = getattr(result, "name", str(result))
    if name == "CUDA_ERROR_OUT_OF_MEMORY":
        raise OutOfMemoryError(Text("{call}: the GPU has too little free memory", call=call))
    if name in _LOST:
        raise DeviceLostError(call, name, "the GPU context is lost; the engine must be reopened")
    raise CudaError(call, name)


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """What a device can do. Memory in bytes, clocks in kHz."""

    name: str
    capability: tuple[int, int]
    multiprocessors: int
    shared_memory: int  # largest dynamic shared memory of one block
    l2_bytes: int
    persisting_l2_bytes: int  # that can be set aside
    l2_window_bytes: int  # of memory that may use them
    total_memory: int
    free_memory: int
    clock_khz: int
    memory_clock_khz: int
    watchdog: bool
    cooperative: bool
    driver: int

    @property
    def arch(self) -> str:
        """The compiler's name; `a` where the architecture has instructions of its own."""
        major, minor = self.capability
        return f"sm_{major}{minor}" + ("a" if (major, minor) == (9, 0) else "")


@dataclass(frozen=True, slots=True)
class Grid:
    """One launch: blocks of `threads` threads, in clusters of `cluster` blocks."""

    blocks: int
    threads: int
    shared_bytes: int
    cluster: int = 1


def _dotted(version: int) -> str:
    """CUDA's own number of a version, 12080, as it is written: 12.8."""
    return f"{version // 1000}.{version % 1000 // 10}"


class Context:
    """The primary context of one device, one stream, and everything allocated through it.

    Raises on creation:
        NoDeviceError, DriverTooOldError, UnsupportedDeviceError, CudaError.
    """

    def __init__(self, ordinal: int = 0) -> None:
        self._api = api = load()
        self._pid = os.getpid()
        self._device_memory: list[int] = []
        self._host_memory: list[int] = []
        self._modules: list[Any] = []
        try:
            self._check("cuInit", api.cuInit(0))
            count = self._check("cuDeviceGetCount", api.cuDeviceGetCount())
        except (CudaError, RuntimeError) as error:
            # Without a driver library the bindings raise RuntimeError at the first call.
            raise NoDeviceError(Text("no usable NVIDIA driver ({error})", error=error)) from error
        if ordinal >= count:
            raise NoDeviceError(
                Text(
                    "GPU {ordinal} asked for, {count} found",
                    ordinal=ordinal,
                    count=count,
                )
            )
        version = self._check("cuDriverGetVersion", api.cuDriverGetVersion())
        if version < MINIMUM_DRIVER:
            raise DriverTooOldError(
                Text(
                    "the NVIDIA driver supports CUDA {version}, Thock needs {minimum}: update it",
                    version=_dotted(version),
                    minimum=_dotted(MINIMUM_DRIVER),
                )
            )
        self._device = self._check("cuDeviceGet", api.cuDeviceGet(ordinal))
        self._context = self._check(
            "cuDevicePrimaryCtxRetain", api.cuDevicePrimaryCtxRetain(self._device)
        )
        self._open = True
        try:
            self._check("cuCtxSetCurrent", api.cuCtxSetCurrent(self._context))
            self.facts = self._read_facts(version)
            if self.facts.capability < (8, 9) or not self.facts.cooperative:
                major, minor = self.facts.capability
                raise UnsupportedDeviceError(
                    Text(
                        "{facts_name} (compute capability {major}.{minor}) has no FP8 tensor cores; 8.9 or "
                        "newer is needed",
                        facts_name=self.facts.name,
                        major=major,
                        minor=minor,
                    )
                )
            # Copies have a stream of their own: behind a resident kernel they would wait for ever.
            self.stream, self._copies = (
                self._check(
                    "cuStreamCreate",
                    api.cuStreamCreate(api.CUstream_flags.CU_STREAM_NON_BLOCKING.value),
                )
                for _ in range(2)
            )
        except BaseException:
            self.close()
            raise

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return not self._open

    @property
    def api(self) -> Any:
        """`cuda.bindings.driver`, for calls that this class has no method for."""
        return self._api

    def _check(self, call: str, answer: tuple[Any, ...]) -> Any:
        return check(self._api, call, answer)

    def _attribute(self, name: str) -> int:
        attribute = getattr(self._api.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        answer = self._api.cuDeviceGetAttribute(attribute, self._device)
        return int(self._check(f"cuDeviceGetAttribute({name})", answer))

    def _read_facts(self, driver: int) -> DeviceFacts:
        api = self._api
        raw = self._check("cuDeviceGetName", api.cuDeviceGetName(128, self._device))
        free, total = self._check("cuMemGetInfo", api.cuMemGetInfo())
        return DeviceFacts(
            name=raw.split(b"\0")[0].decode(),
            capability=(
                self._attribute("COMPUTE_CAPABILITY_MAJOR"),
                self._attribute("COMPUTE_CAPABILITY_MINOR"),
            ),
            multiprocessors=self._attribute("MULTIPROCESSOR_COUNT"),
            shared_memory=self._attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
            l2_bytes=self._attribute("L2_CACHE_SIZE"),
            persisting_l2_bytes=self._attribute("MAX_PERSISTING_L2_CACHE_SIZE"),
            l2_window_bytes=self._attribute("MAX_ACCESS_POLICY_WINDOW_SIZE"),
            total_memory=int(total),
            free_memory=int(free),
            clock_khz=self._attribute("CLOCK_RATE"),
            memory_clock_khz=self._attribute("MEMORY_CLOCK_RATE"),
            watchdog=bool(self._attribute("KERNEL_EXEC_TIMEOUT")),
            cooperative=bool(self._attribute("COOPERATIVE_LAUNCH")),
            driver=driver,
        )

    def make_current(self) -> None:
        """Bind the context to the calling thread.

        Raises:
            DeviceLostError: the process was forked after the context was made.
        """
        if os.getpid() != self._pid:
            raise DeviceLostError("fork", "CUDA does not survive a fork", "open a new backend")
        self._check("cuCtxSetCurrent", self._api.cuCtxSetCurrent(self._context))

    def allocate(self, nbytes: int) -> int:
        """Zeroed device memory, address. Freed by `close`."""
        address = int(self._check("cuMemAlloc", self._api.cuMemAlloc(max(nbytes, 16))))
        self._device_memory.append(address)
        self.clear(address, max(nbytes, 16))
        return address

    def upload(self, array: NDArray[Any]) -> int:
        """Device copy of `array`, address."""
        contiguous = np.ascontiguousarray(array)
        address = self.allocate(contiguous.nbytes)
        self.write(address, contiguous)
        return address

    def write(self, address: int, array: NDArray[Any]) -> None:
        """Copy a contiguous host array to device memory and wait for it."""
        self._check(
            "cuMemcpyHtoD", self._api.cuMemcpyHtoD(address, array.ctypes.data, array.nbytes)
        )

    def read(self, address: int, out: NDArray[Any]) -> None:
        """Copy device memory into a contiguous host array and wait for it."""
        self._check(
            "cuMemcpyDtoHAsync",
            self._api.cuMemcpyDtoHAsync(out.ctypes.data, address, out.nbytes, self._copies),
        )
        self._check("cuStreamSynchronize", self._api.cuStreamSynchronize(self._copies))

    def clear(self, address: int, nbytes: int) -> None:
        """Set device memory to zero."""
        self._check("cuMemsetD8", self._api.cuMemsetD8(address, 0, nbytes))
        self._check("cuStreamSynchronize", self._api.cuStreamSynchronize(0))

    def allocate_shared_with_host(self, words: int) -> tuple[NDArray[np.uint32], int]:
        """Pinned host memory that the GPU can read and write: zeroed array, device address."""
        api = self._api
        flags = api.CU_MEMHOSTALLOC_PORTABLE | api.CU_MEMHOSTALLOC_DEVICEMAP
        pointer = int(self._check("cuMemHostAlloc", api.cuMemHostAlloc(words * 4, flags)))
        self._host_memory.append(pointer)
        device = int(
            self._check("cuMemHostGetDevicePointer", api.cuMemHostGetDevicePointer(pointer, 0))
        )
        buffer = (ctypes.c_uint32 * words).from_address(pointer)
        array = np.ctypeslib.as_array(buffer)
        array[:] = 0
        return array, device

    def load_kernel(self, cubin: bytes, name: str, shared_bytes: int) -> Any:
        """The function `name` of a cubin, allowed to use `shared_bytes` of dynamic shared memory.

        Raises:
            UnsupportedDeviceError: the device has less shared memory.
        """
        if shared_bytes > self.facts.shared_memory:
            raise UnsupportedDeviceError(
                Text(
                    "the kernel of this model needs {shared_bytes} bytes of shared memory, {facts_name} "
                    "has {shared_memory}",
                    shared_bytes=shared_bytes,
                    facts_name=self.facts.name,
                    shared_memory=self.facts.shared_memory,
                )
            )
        api = self._api
        module = self._check("cuModuleLoadData", api.cuModuleLoadData(cubin))
        self._modules.append(module)
        function = self._check(
            "cuModuleGetFunction", api.cuModuleGetFunction(module, name.encode())
        )
        attribute = api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self._check("cuFuncSetAttribute", api.cuFuncSetAttribute(function, attribute, shared_bytes))
        return function

    def resident_blocks(self, function: Any, threads: int, shared_bytes: int) -> int:
        """Blocks of this kernel that the whole device holds at once."""
        per_multiprocessor = self._check(
            "cuOccupancyMaxActiveBlocksPerMultiprocessor",
            self._api.cuOccupancyMaxActiveBlocksPerMultiprocessor(function, threads, shared_bytes),
        )
        return int(per_multiprocessor) * self.facts.multiprocessors

    def resident_clusters(
        self, function: Any, cluster: int, threads: int, shared_bytes: int
    ) -> int:
        """Clusters of `cluster` blocks that the whole device holds at once; 0 if it refuses the size."""
        api = self._api
        attribute = api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
        self._check("cuFuncSetAttribute", api.cuFuncSetAttribute(function, attribute, 1))
        config = self._launch_config(Grid(cluster, threads, shared_bytes, cluster))
        result = api.cuOccupancyMaxActiveClusters(function, config)
        if result[0] == api.CUresult.CUDA_ERROR_INVALID_CLUSTER_SIZE:
            return 0
        return int(self._check("cuOccupancyMaxActiveClusters", result))

    def _launch_config(self, grid: Grid) -> Any:
        api = self._api
        config = api.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = grid.blocks, 1, 1
        config.blockDimX, config.blockDimY, config.blockDimZ = grid.threads, 1, 1
        config.sharedMemBytes = grid.shared_bytes
        config.hStream = self.stream
        kinds = api.CUlaunchAttributeID
        cooperative = api.CUlaunchAttribute()
        cooperative.id = kinds.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        cooperative.value.cooperative = 1
        attributes = [cooperative]
        if grid.cluster > 1:
            cluster = api.CUlaunchAttribute()
            cluster.id = kinds.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
            shape = cluster.value.clusterDim
            shape.x, shape.y, shape.z = grid.cluster, 1, 1
            attributes.append(cluster)
        config.numAttrs, config.attrs = len(attributes), attributes
        return config

    def launch(self, function: Any, grid: Grid, arguments: Any) -> None:
        """Launch cooperatively: all blocks resident at once, or an error."""
        api, config = self._api, self._launch_config(grid)
        self._check("cuLaunchKernelEx", api.cuLaunchKernelEx(config, function, arguments, 0))

    def idle(self) -> bool:
        """Whether everything launched has ended."""
        result = self._api.cuStreamQuery(self.stream)
        if result[0] == self._api.CUresult.CUDA_ERROR_NOT_READY:
            return False
        self._check("cuStreamQuery", result)
        return True

    def synchronise(self) -> None:
        """Wait until everything launched has ended."""
        self._check("cuStreamSynchronize", self._api.cuStreamSynchronize(self.stream))

    def close(self) -> None:
        """Free all memory and the context. Safe to call twice, and after the device is lost."""
        if not getattr(self, "_open", False) or os.getpid() != self._pid:
            return
        self._open = False
        api = self._api
        # Results are ignored on purpose: after a lost context every one of these calls fails.
        api.cuCtxSetCurrent(self._context)
        if hasattr(self, "stream"):
            api.cuStreamSynchronize(self.stream)
            api.cuStreamDestroy(self.stream)
            api.cuStreamDestroy(self._copies)
        for module in self._modules:
            api.cuModuleUnload(module)
        for address in self._device_memory:
            api.cuMemFree(address)
        for pointer in self._host_memory:
            api.cuMemFreeHost(pointer)
        api.cuDevicePrimaryCtxRelease(self._device)

    def __enter__(self) -> Context:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
