"""A load generator: one process on one core that is busy for a share of every period.

It ends by itself after ``--seconds``, or when the process that started it has ended.

Usage: python -m benchmarks.load --duty 0.5 [--period 0.02] [--core 0] [--seconds 60]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def busy_until(began: float, period_s: float, duty: float, now: float) -> float:
    """The time at which the busy part of the period that contains ``now`` ends.

    Periods are counted from ``began``, not from the end of the period before. If a sleep lasts too
    long, the next pause is shorter, and the duty cycle stays as requested.
    """
    return began + int((now - began) / period_s) * period_s + duty * period_s


def burn(duty: float, period_s: float, seconds: float) -> float:
    """Be busy for ``duty`` of each period for ``seconds``; returns the share of CPU time used."""
    parent = os.getppid()
    began, cpu = time.monotonic(), time.process_time()
    end = began + seconds
    while (now := time.monotonic()) < end and os.getppid() == parent:
        until = busy_until(began, period_s, duty, now)
        while time.monotonic() < until:
            pass
        rest = until - duty * period_s + period_s - time.monotonic()
        if rest > 0:
            time.sleep(rest)
    return (time.process_time() - cpu) / (time.monotonic() - began)


def checked(duty: float, period_s: float, core: int, seconds: float) -> None:
    """The arguments; raises ``ValueError`` that names an impossible one."""
    if not 0 < duty <= 1:
        raise ValueError(f"--duty {duty:g}: expected a share above 0, at most 1")
    if period_s <= 0 or seconds <= 0:
        raise ValueError("--period and --seconds: expected a time above 0 s")
    if core not in os.sched_getaffinity(0):
        raise ValueError(f"--core {core}: expected one of {sorted(os.sched_getaffinity(0))}")


@contextmanager
def foreign_load(
    duty: float, period_s: float = 0.02, core: int = 0, seconds: float = 1200.0
) -> Iterator[subprocess.Popen[str]]:
    """Run the generator during the body; it is always ended afterwards."""
    checked(duty, period_s, core, seconds)
    words = [f"--duty={duty}", f"--period={period_s}", f"--core={core}", f"--seconds={seconds}"]
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.load", *words],
        cwd=Path(__file__).parents[1],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        if not process.stdout.readline():
            raise RuntimeError("the load generator did not start; see its message above")
        yield process
        if process.poll() is not None:
            raise RuntimeError("the load generator ended before the measurement: figures are void")
    finally:
        process.terminate()
        process.communicate()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--duty", type=float, required=True)
    arguments.add_argument("--period", type=float, default=0.02, help="seconds")
    arguments.add_argument("--core", type=int, default=0)
    arguments.add_argument("--seconds", type=float, default=60.0)
    given = arguments.parse_args()
    try:
        checked(given.duty, given.period, given.core, given.seconds)
    except ValueError as error:
        arguments.error(str(error))
    os.sched_setaffinity(0, {given.core})
    print(f"load: {given.duty:.0%} of core {given.core}", flush=True)
    print(f"used: {burn(given.duty, given.period, given.seconds):.3f}")


if __name__ == "__main__":
    main()
