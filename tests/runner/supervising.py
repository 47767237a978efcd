"""Helpers of the supervision tests: small programs, and a search for what they leave."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from runner.process import all_pids, read_proc
from runner.supervise import ExecRequest

FAST = (sys.executable, "-I", "-S", "-c")
MARK = "AUTOTUNE_TEST_MARK"


def request(*argv: str, **options: object) -> ExecRequest:
    """A request with this process's environment."""
    return ExecRequest(argv, dict(os.environ), **options)  # type: ignore[arg-type]


def script(text: str, **options: object) -> ExecRequest:
    """A request for a piece of Python."""
    return request(*FAST, text, **options)


def marked(mark: str) -> list[int]:
    """Living processes with MARK=mark in their environment, apart from zombies (no environment)."""
    word = f"{MARK}={mark}".encode()
    return [p for p in all_pids() if word in read_proc(f"/proc/{p}/environ").split(b"\0")]


def eventually(true: Callable[[], object], seconds: float = 15.0) -> bool:
    """Whether ``true()`` becomes true; the limit only ends a failing test."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


# Makes four processes that are hard to end: one in a process group of its own, one in a session of
# its own that ignores SIGTERM, one that left by a double fork, one that is stopped.  Then waits.
STUBBORN = """
import os, signal, sys, time
told, tell = os.pipe()
def ready():
    os.write(tell, b"+")
def sleeper(*steps):
    if os.fork() == 0:
        for step in steps: step()
        time.sleep(600)
def leave():
    os.setsid()
    if os.fork(): os._exit(0)
sleeper(lambda: os.setpgid(0, 0), ready)
sleeper(os.setsid, lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN), ready)
sleeper(leave, ready)
sleeper(ready, lambda: os.kill(os.getpid(), signal.SIGSTOP))
for child in range(4): os.read(told, 1)
open(sys.argv[1], 'w').close() if len(sys.argv) > 1 else None
time.sleep(float(sys.argv[2]) if len(sys.argv) > 2 else 600)
"""


def stubborn(ready: Path, seconds: float = 600, **options: object) -> ExecRequest:
    """The program above; ``ready`` appears when all its processes are as stubborn as they get."""
    return request(*FAST, STUBBORN, str(ready), str(seconds), **options)
