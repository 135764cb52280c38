# SPDX-License-Identifier: Apache-2.0
"""The torch backend. Import it before torch, because OpenMP reads its settings once, when it is loaded.

Threads without work spin for a while before they sleep. libgomp's default is some 10 ms: when another
program wants the processor, each of the 200 parallel sections of a token can wait that long for a
thread that others' spinning has displaced (measured on two busy cores: 5 s for a prefill of 0.25 s).
Never spinning costs half the speed on a virtual machine, where waking a thread is slow. 4,000 turns,
about 0.1 ms, outlast the gap between two sections: full speed when idle, 1.5 s for that prefill.
"""

import os

# https://gcc.gnu.org/onlinedocs/libgomp/GOMP_005fSPINCOUNT.html; a value set by the user stays
os.environ.setdefault("GOMP_SPINCOUNT", "4000")
