"""One supervision process for the commands of many tests, which each run in the test's process.

A command of its own starts one and ends it: more CPU time than a short program under mpirun takes.
Here the next command of the same process goes on with the one that has become idle. Tests of the
supervision itself, and commands that are processes of their own, start theirs.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from runner.supervise import Supervisor


@dataclass
class _Spare:
    server: Any = None
    runs: int = 0
    """Number of its runs, since each has a mark of its own."""
    owner: int = 0


_spare = _Spare()


def _take() -> Any:
    """The idle server, None if there is none, or if its programs would run on other CPUs."""
    server, _spare.server = _spare.server, None
    if server is None or _spare.owner != os.getpid():
        return None
    if server.process.poll() is None:
        if os.sched_getaffinity(server.process.pid) == os.sched_getaffinity(0):
            return server
        server.close()
    return None


def use(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let supervisors of this test begin with the idle server, and leave theirs."""
    ready: Callable[[Supervisor], Any] = Supervisor._ready

    def begin(self: Supervisor) -> Any:
        if self._server is None:
            self._server = _take()
            self._number = max(self._number, _spare.runs)
        return ready(self)

    def leave(self: Supervisor) -> None:
        with self._lock:
            server, self._server = self._server, None
            if server is None:
                return
            end()
            if server.process.poll() is None:
                _spare.server, _spare.runs, _spare.owner = server, self._number, os.getpid()
            else:
                server.clean_up()

    monkeypatch.setattr(Supervisor, "_ready", begin)
    monkeypatch.setattr(Supervisor, "close", leave)


def end() -> None:
    """End the idle server."""
    if (server := _take()) is not None:
        server.close()
