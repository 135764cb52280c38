# SPDX-License-Identifier: Apache-2.0
"""The kernel's only argument. Field by field as `struct Params` in `kernels/request.cuh`."""

from __future__ import annotations

import ctypes
from typing import Any, ClassVar

_ADDRESS = ctypes.c_uint64
_WORD = ctypes.c_uint32


class Params(ctypes.Structure):
    """Device addresses, limits in nanoseconds, and counts."""

    _fields_: ClassVar[list[tuple[str, Any]]] = [
        ("codes", _ADDRESS * 5),
        ("scales", _ADDRESS * 5),
        ("bias", _ADDRESS),
        ("embed", _ADDRESS),
        ("norms", _ADDRESS),
        ("final_norm", _ADDRESS),
        ("rope", _ADDRESS),
        ("cache", _ADDRESS),
        ("x_attention", _ADDRESS),
        ("x_ffn", _ADDRESS),
        ("queries", _ADDRESS),
        ("new_kv", _ADDRESS),
        ("mixed", _ADDRESS),
        ("gated", _ADDRESS),
        ("codes_shared", _ADDRESS),
        ("inbox", _ADDRESS),
        ("candidates", _ADDRESS),
        ("logits", _ADDRESS),
        ("done", _ADDRESS),
        ("abort", _ADDRESS),
        ("requests", _ADDRESS),
        ("replies", _ADDRESS),
        ("control", _ADDRESS),
        ("programs", _ADDRESS),
        ("wait_ns", _ADDRESS),
        ("stay_ns", _ADDRESS),
        ("idle_ns", _ADDRESS),
        ("first_request", _WORD),
        ("request_limit", _WORD),
        ("launch_id", _WORD),
        ("ring", _WORD),
        ("max_context", _WORD),
        ("program_length", _WORD),
    ]
