# SPDX-License-Identifier: Apache-2.0
"""A part of the L2 cache kept for one range of device memory: keys and values, and what blocks exchange.

Off unless `Tuning.pin_l2` asks for it: on an H200 it made 128 tokens of a 7B shape a quarter slower
(docs/benchmarks). A set-aside takes L2 from all else on the device, so it is clamped to what the device
allows and given back at the end.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.cuda.driver import Context, check


@dataclass(frozen=True, slots=True)
class Window:
    """`set_aside`: bytes of L2; `nbytes`: of memory that may use them; `hit_ratio`: share of its accesses."""

    set_aside: int
    nbytes: int
    hit_ratio: float


def window(nbytes: int, most_set_aside: int, most_window: int) -> Window:
    """What a device with these limits can keep of `nbytes`.

    A window larger than the set-aside would have its lines push each other out: then only a share of its
    accesses is kept, so that this share stays.
    """
    covered = max(0, min(nbytes, most_window))
    set_aside = max(0, min(covered, most_set_aside))
    return Window(set_aside, covered, set_aside / covered if covered else 0.0)


def pin(context: Context, address: int, nbytes: int) -> Window:
    """Keep `nbytes` from `address` in L2 for launches on the context's stream; what was asked of the device.

    Raises:
        CudaError: the driver refused; launches work as before.
    """
    api = context.api
    chosen = window(nbytes, context.facts.persisting_l2_bytes, context.facts.l2_window_bytes)
    if chosen.set_aside == 0:
        return chosen  # a device without the feature, or one that is shared (MIG)
    limit = api.CUlimit.CU_LIMIT_PERSISTING_L2_CACHE_SIZE
    check(api, "cuCtxSetLimit", api.cuCtxSetLimit(limit, chosen.set_aside))
    # The driver rounds, or gives less: the ratio goes by what there is.
    given = int(check(api, "cuCtxGetLimit", api.cuCtxGetLimit(limit)))
    chosen = window(nbytes, given, chosen.nbytes)
    value = api.CUstreamAttrValue()
    policy = value.accessPolicyWindow
    policy.base_ptr, policy.num_bytes, policy.hitRatio = address, chosen.nbytes, chosen.hit_ratio
    policy.hitProp = api.CUaccessProperty.CU_ACCESS_PROPERTY_PERSISTING
    policy.missProp = api.CUaccessProperty.CU_ACCESS_PROPERTY_STREAMING
    value.accessPolicyWindow = policy
    kind = api.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW
    check(api, "cuStreamSetAttribute", api.cuStreamSetAttribute(context.stream, kind, value))
    return chosen


def release(context: Context) -> None:
    """Give the set-aside back; lines that were kept become ordinary ones.

    Raises:
        CudaError: the driver refused.
    """
    api = context.api
    limit = api.CUlimit.CU_LIMIT_PERSISTING_L2_CACHE_SIZE
    check(api, "cuCtxResetPersistingL2Cache", api.cuCtxResetPersistingL2Cache())
    check(api, "cuCtxSetLimit", api.cuCtxSetLimit(limit, 0))
