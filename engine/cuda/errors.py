# SPDX-License-Identifier: Apache-2.0
"""Why the GPU cannot be used, or stopped. Each message says what to do; the caller may fall back to CPU."""

from __future__ import annotations

from engine.errors import DeviceError
from engine.texts import Text, as_text


class CudaError(DeviceError):
    """A driver call failed. `call` names it, `result` is CUDA's own name of the error."""

    code = "cuda"

    def __init__(self, call: str, result: str, advice: str = "") -> None:
        failure = Text("{call} failed: {result}", call=call, result=result)
        if advice:
            failure = Text("{failure}; {advice}", failure=failure, advice=as_text(advice))
        super().__init__(failure)
        self.call = call
        self.result = result


class NoDeviceError(DeviceError):
    """No NVIDIA GPU, no driver, or cuda-python is not installed."""

    code = "cuda-no-device"


class DriverTooOldError(DeviceError):
    """The driver is older than the CUDA version that the engine is built on."""

    code = "cuda-driver-old"


class UnsupportedDeviceError(DeviceError):
    """The GPU has no FP8 tensor cores, or cannot do what was asked for."""

    code = "cuda-device-unsupported"


class DeviceLostError(CudaError):
    """The context is gone (suspend, reset, watchdog): close the backend and open it anew."""

    code = "cuda-device-lost"


class KernelTimeoutError(DeviceError):
    """The kernel gave up a wait, or did not answer in time."""

    code = "cuda-timeout"


class CompileError(DeviceError):
    """NVRTC refused the kernel; the message carries its log."""

    code = "cuda-compile"


class ScheduleError(DeviceError):
    """A schedule that would hang, or would compute something twice or never."""

    code = "cuda-schedule"


class MailboxFullError(DeviceError):
    """As many requests wait for the GPU as there is room for; take an answer first."""

    code = "cuda-mailbox-full"

    def __init__(self, ring: int) -> None:
        super().__init__(f"{ring} requests wait for the GPU already")
