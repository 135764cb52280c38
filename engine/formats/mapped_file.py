# SPDX-License-Identifier: Apache-2.0
"""A file mapped into memory for reading, with errors that name the file and the field."""

from __future__ import annotations

import mmap
import os
import stat
from pathlib import Path

from engine.errors import ModelFileError
from engine.texts import Text, system_reason


class MappedFile:
    """One regular file, mapped read-only. Reads are copies, so closing never waits for a view."""

    def __init__(self, path: Path) -> None:
        """Map `path`.

        Raises:
            ModelFileError: not a regular file (a pipe would block), not readable, or empty.
        """
        self.path = path
        try:
            # Without O_NONBLOCK, opening a named pipe would wait for a writer (Windows has neither).
            self._descriptor = os.open(
                path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
            )
        except OSError as error:
            raise ModelFileError(
                path, "file", Text("cannot be opened: {error}", error=system_reason(error))
            ) from error
        try:
            status = os.fstat(self._descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise ModelFileError(path, "file", "is not a regular file")
            if status.st_size == 0:
                raise ModelFileError(path, "file", "is empty")
            self.size = status.st_size
            self.buffer = mmap.mmap(self._descriptor, self.size, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:  # ValueError: it shrank since fstat
            os.close(self._descriptor)
            raise ModelFileError(
                path, "file", Text("cannot be mapped: {error}", error=error)
            ) from error
        except ModelFileError:
            os.close(self._descriptor)
            raise

    def read(self, start: int, size: int, field: str) -> bytes:
        """A copy of `size` bytes from `start`; `field` names them in an error.

        Raises:
            ModelFileError: the bytes are not all in the file, the file was cut short after it was
                opened (touching such a page would end the process with SIGBUS), or it is closed.
        """
        if self.buffer.closed:
            raise ModelFileError(self.path, field, "the file was closed")
        if start < 0 or size < 0 or start + size > self.size:
            raise ModelFileError(
                self.path,
                field,
                Text(
                    "needs bytes {start} to {start2}, the file ends at {size}",
                    start=start,
                    start2=start + size,
                    size=self.size,
                ),
            )
        if os.fstat(self._descriptor).st_size < start + size:
            raise ModelFileError(self.path, field, "the file was cut short while in use")
        return self.buffer[start : start + size]

    def close(self) -> None:
        """Unmap and close. Safe to call twice."""
        if not self.buffer.closed:
            self.buffer.close()
            os.close(self._descriptor)
