"""The processes of a testbed: recognised by a token in their environment, and ended.

The delay line, the node processes and every process started in a node carry the token of their
instance. So other processes are never mistaken for them, and they are found even if their
instance's record was lost.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time

from runner.errors import RunnerError
from runner.guard import process_time
from runner.process import all_pids, read_proc, start_of
from runner.testbed.model import NodeProcess

TOKEN = "AUTOTUNE_TESTBED"
_PATIENCE_S = 5.0


def node_process(pid: int) -> NodeProcess | None:
    """The present process with this id; None if there is none."""
    times = process_time(pid)
    return None if times is None else NodeProcess(pid, times.started_ticks)


def alive(process: NodeProcess) -> bool:
    """True if this process still runs; a zombie, or another process with its id, does not count."""
    return start_of(process.pid) == process.started_ticks


def with_token(token: str) -> list[NodeProcess]:
    """Every living process that was started with this token in its environment."""
    entry = f"{TOKEN}={token}".encode()
    processes = []
    for pid in all_pids():
        # A new program replaces its environment: read the start first, so that the result cannot be
        # another process with the same id.
        process = node_process(pid)
        if process and entry in read_proc(f"/proc/{pid}/environ").split(b"\0") and alive(process):
            processes.append(process)
    return processes


def end_all(token: str) -> int:
    """Kill every process with this token until none is left; returns how many there were.

    Raises RunnerError if one cannot be killed.
    """
    targets: set[NodeProcess] = set()
    until = time.monotonic() + _PATIENCE_S
    while left := {p for p in with_token(token) if p.pid != os.getpid()} | _dying(targets):
        targets |= left
        if time.monotonic() > until:
            raise RunnerError(
                "processes of the testbed cannot be killed: "
                + ", ".join(str(p.pid) for p in sorted(left, key=lambda p: p.pid))
                + "; they hang in the kernel",
                code="run.unkillable",
            )
        for one in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one.pid, signal.SIGKILL)
        time.sleep(0.01)
    return len(targets)


def _dying(targets: set[NodeProcess]) -> set[NodeProcess]:
    """The killed processes that still run; one that is about to end has no environment any more."""
    return {p for p in targets if alive(p)}
