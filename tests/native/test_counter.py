"""The clock of compiled code as Python reads it, and readings of what other threads change."""

from __future__ import annotations

import itertools
import time

from runner.runtimes.core.core import counter
from runner.runtimes.core.counter import steady


def test_the_clock_of_compiled_code_is_the_system_s_within_a_hundredth() -> None:
    clock = counter()

    def bracket() -> tuple[float, float, float]:
        return time.perf_counter(), clock.now(), time.perf_counter()

    before, start, after = bracket()
    time.sleep(0.02)
    later, end, last = bracket()
    # However long the reader is kept from running, the true time lies between these two.
    assert 0.99 * (later - after) <= end - start <= 1.01 * (last - before)


def test_what_changes_while_it_is_read_is_read_again() -> None:
    """The reading is that of the last time asked, not of one before the change."""
    values = iter(["torn", "whole", "moved", "moved"])
    times = itertools.count(0.0, 1.0)
    assert steady(lambda: next(values), lambda: next(times)) == (2.0, "moved")


def test_what_never_rests_is_read_in_the_shortest_time() -> None:
    took = [5.0, 3.0, 1.0, 4.0, 2.0, 6.0, 7.0, 8.0]
    ends = list(itertools.accumulate(took))
    begins = [0.0, *ends[:-1]]
    times = iter([t for pair in zip(begins, ends, strict=True) for t in pair])
    values = itertools.count()
    # The third try begins at 8 and takes one second; each try reads twice.
    assert steady(lambda: next(values), lambda: next(times)) == (8.0, 4)
