"""Time in compiled code: a worker's time by kind, as an exact partition.

It reads the processor's counter, which costs a third of ``clock_gettime``. Without a constant
counter it uses the latter (``tick_s`` is then 0).
"""

from __future__ import annotations

from runner.runtimes.core.atomic import (
    call_2,
    inner,
    load,
    load_real,
    store,
    store_real,
    ticks,
)
from runner.runtimes.core.words import CORE, WORKER

_MONOTONIC, _THREAD = 1, 3


@inner
def now(core: int, worker: int) -> float:
    """Seconds on this process's clock."""
    tick = load_real(core + CORE.tick_s)
    if tick > 0.0:
        return load_real(core + CORE.second0) + tick * (ticks() - load(core + CORE.tick0))
    return read_clock(core, worker, _MONOTONIC)


@inner
def read_clock(core: int, worker: int, clock: int) -> float:
    """Seconds on a system clock, read by this worker's thread."""
    place = worker + WORKER.time0
    call_2(load(core + CORE.clock_gettime), clock, place)
    return float(load(place)) + 1e-9 * float(load(place + 8))


@inner
def thread_seconds(core: int, worker: int) -> float:
    """CPU time of the calling worker."""
    return read_clock(core, worker, _THREAD)


@inner
def switch(core: int, worker: int, kind: int) -> float:
    """Count the time from now on as this kind; returns the present time."""
    time = now(core, worker)
    place = worker + WORKER.compute + 8 * load(worker + WORKER.kind)
    store_real(place, load_real(place) + time - load_real(worker + WORKER.since))
    store_real(worker + WORKER.since, time)
    store(worker + WORKER.kind, kind)
    return time
