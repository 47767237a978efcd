"""The file that an MPI library writes at the end of MPI_Init, announced by the kernel (inotify)."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)
_IN_CLOSE_WRITE = 0x00000008
_EVENTS = 4096


class ReadyFile:
    """``fd`` becomes readable when a file in the directory of ``path`` has been written and closed.

    None where the kernel gives no more watches: then the file is found by the next look.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self.fd: int | None = None
        fd = _LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if fd < 0:
            return
        if _LIBC.inotify_add_watch(fd, os.fsencode(self._path.parent), _IN_CLOSE_WRITE) < 0:
            os.close(fd)
            return
        self.fd = fd

    def written(self) -> bool:
        """Take what was announced; whether the file is there."""
        try:
            os.read(self.fd or 0, _EVENTS)
        except BlockingIOError:
            return False
        return self._path.exists()
