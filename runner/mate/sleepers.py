"""Workers without a rank to run, and how they are called back.

Two things may call a worker: a ready rank, and messages under way that nobody looks after.  A
worker is called once and counts as awake from then on: one that is on its way is not called again,
and no call is spent on one that is about to wake by itself.

Everything here happens with the scheduler's lock held.
"""

from __future__ import annotations

import threading
from collections.abc import Callable


class Sleeper:
    """One worker's place to sleep; only one other may call it at a time."""

    __slots__ = ("bell", "called")

    def __init__(self) -> None:
        self.bell = threading.Lock()
        self.bell.acquire()
        self.called = False


class Sleepers:
    """The idle workers of a process."""

    __slots__ = ("_lock", "_timed", "_untimed", "asleep", "idle")

    def __init__(self, lock: threading.Lock) -> None:
        self._lock = lock
        self._timed: list[Sleeper] = []
        """Those who wake by themselves to look after messages."""
        self._untimed: list[Sleeper] = []
        self.idle = 0
        """Workers without a rank, awake or asleep."""
        self.asleep = 0
        """Those of them that sleep and were not called."""

    @property
    def awake(self) -> int:
        """Idle workers that will look for a ready rank before they sleep (again)."""
        return self.idle - self.asleep

    @property
    def looking(self) -> bool:
        """Whether an idle worker looks after messages, now or when its time is over."""
        return self.idle > len(self._untimed)

    def sleep(self, sleeper: Sleeper, seconds: Callable[[], float | None]) -> None:
        """Until called, or until the time is over; None: until called.

        ``seconds`` is asked after the worker counts as asleep: who starts a message first appends
        it and then looks for sleepers, so one of the two sees the other.
        """
        self.asleep += 1
        self._untimed.append(sleeper)
        time = seconds()
        if time is not None:
            self._untimed.remove(sleeper)
            self._timed.append(sleeper)
        self._lock.release()
        try:
            sleeper.bell.acquire(True, -1 if time is None else time)
        finally:
            self._lock.acquire()
            if sleeper.called:
                sleeper.called = False
                # Called after its time was over: the bell has rung and nobody has heard it.
                sleeper.bell.acquire(False)
            else:
                self.asleep -= 1
                (self._untimed if time is None else self._timed).remove(sleeper)

    def call_for_ranks(self, ready: int) -> None:
        """Call one worker for each ready rank that no awake idle worker will take."""
        for _ in range(min(ready - self.awake, self.asleep)):
            # Who looks after messages goes on with that as long as there are others.
            self._call(self._untimed or self._timed)

    def call_for_messages(self) -> None:
        """Call one worker to look after messages now."""
        if self.asleep:
            self._call(self._timed or self._untimed)

    def call_all(self) -> None:
        """There will be nothing more to wait for."""
        while self.asleep:
            self._call(self._untimed or self._timed)

    def _call(self, places: list[Sleeper]) -> None:
        sleeper = places.pop()
        self.asleep -= 1
        sleeper.called = True
        sleeper.bell.release()
