# SPDX-License-Identifier: Apache-2.0
"""What this machine takes to wake a thread that waits: below it no reply can be."""

from __future__ import annotations

import os
import queue
import threading
import time

_PATIENCE_S = 5.0


class BareHop:
    """A thread that reads a pipe and does nothing else."""

    def start(self) -> None:
        """Start it."""
        self._from, self._to = os.pipe()
        self._woken: queue.SimpleQueue[float] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._wait, name="bare-hop", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End it, once."""
        os.close(self._to)
        self._thread.join(_PATIENCE_S)
        os.close(self._from)

    def seconds(self) -> float:
        """From one byte written here to the other thread with it in its hand.

        Raises:
            queue.Empty: the thread did not wake within 5 s.
        """
        written_at = time.perf_counter()
        os.write(self._to, b"!")
        return self._woken.get(timeout=_PATIENCE_S) - written_at

    def _wait(self) -> None:
        while os.read(self._from, 1):
            self._woken.put(time.perf_counter())
