"""Ending a process tree: SIGTERM, a grace time, SIGKILL, until nothing is left."""

from __future__ import annotations

import os
import signal

from runner.supervise import _procfs, strays
from runner.supervise.model import Leftover

_AGAIN_S = 0.02
"""Pause between two rounds of SIGKILL: a tree may grow while it is killed."""
_PATIENCE_S = 10.0
"""After so many seconds of SIGKILL what is left cannot be killed (it hangs in the kernel)."""


class TreeStop:
    """Ends everything below this process, step by step as time goes on.

    Process groups do not help: PRRTE gives every rank its own.  The tree below a subreaper is
    complete, since orphans come back to it.
    """

    def __init__(self, now: float, grace_s: float) -> None:
        self.next_at = now + grace_s
        self._kill_until: float | None = None
        self.hopeless = False
        signal_tree(signal.SIGTERM)
        # A stopped process takes SIGTERM only when it goes on.
        signal_tree(signal.SIGCONT)

    def hurry(self, now: float) -> None:
        """No more grace."""
        self.next_at = min(self.next_at, now)

    def on_time(self, now: float) -> None:
        """One round of SIGKILL; to be called whenever ``next_at`` is reached."""
        if self._kill_until is None:
            self._kill_until = now + _PATIENCE_S
        self.hopeless = now >= self._kill_until
        signal_tree(signal.SIGKILL)
        self.next_at = now + _AGAIN_S


def signal_tree(number: signal.Signals) -> None:
    """Send a signal to every descendant that may be signalled."""
    # One that runs as another user (a setuid program) stays: on_time gives up some day.
    strays.signal_all(_procfs.descendants(os.getpid()), number)


def living() -> tuple[Leftover, ...]:
    """Descendants of this process that still run."""
    pids = [pid for pid in _procfs.descendants(os.getpid()) if _procfs.is_alive(pid)]
    return tuple(Leftover(pid, _procfs.name_of(pid)) for pid in pids)
