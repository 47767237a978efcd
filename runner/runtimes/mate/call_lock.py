"""The lock around every MPI call at thread level "serialized"."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class CallLock:
    """The lock around every MPI call at thread level "serialized"; a thread may take it again.

    Compiled code has a separate lock around its calls. Once it makes any (:meth:`share`), this lock
    includes that one.
    """

    ABORT_S = 2.0
    """Longest wait in seconds of the call that ends the job."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self._take: Callable[[], None] | None = None
        self._give: Callable[[], None] | None = None
        self._last: int | None = None
        """The thread that ends the job."""

    def share(self, take: Callable[[], None], give: Callable[[], None]) -> None:
        """From now on, also take and release another lock; no other thread is inside MPI
        meanwhile."""
        with self._lock:
            self._take, self._give = take, give

    def __enter__(self) -> None:
        if self._last is not None and self._is_last():
            return
        self._lock.acquire()
        self._depth += 1
        if self._depth == 1 and self._take is not None:
            self._take()

    def __exit__(self, *error: object) -> None:
        if self._last == threading.get_ident():
            return
        self._depth -= 1
        if self._depth == 0 and self._give is not None:
            self._give()
        self._lock.release()

    def enter_last(self) -> None:
        """Take the lock for this thread's calls that end the job; it is not released.

        Other threads no longer take it. A thread inside MPI may never return, so after ``ABORT_S``
        the calls are made without the lock: otherwise the job would never end.
        """
        if self._last is not None and self._is_last():
            return
        self._last = threading.get_ident()
        if self._lock.acquire(timeout=self.ABORT_S):
            self._depth += 1
            if self._depth == 1 and self._take is not None:
                self._take()

    def _is_last(self) -> bool:
        """True if this thread ends the job; any other one waits here until the process ends."""
        while self._last != threading.get_ident():
            time.sleep(self.ABORT_S)
        return True
