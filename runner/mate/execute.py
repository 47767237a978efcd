"""A rank inside a graph: run what is ready, wait when nothing is."""

from __future__ import annotations

import types
from collections.abc import Generator
from typing import Any

from runner.mate.scheduler import Scheduler, acquire_patiently
from runner.mate.steps import Node, Part
from runner.mate.task import Task
from runner.mate.timers import COMPUTE, SCHEDULING


@types.coroutine
def run_graph(
    scheduler: Scheduler, part: Part, state: Any, iterations: range, lazy: bool
) -> Generator[Any, None, None]:
    """Run every region ``len(iterations)`` times; each is called with its own iteration.

    A rank keeps its worker as long as one of its regions is ready (Martin 2018, chapter 4).
    """
    task, lock, wake = part.task, scheduler.lock, scheduler.wake
    sleepers = scheduler.sleepers
    count = len(iterations)
    node: Node | None = None
    with lock:
        part.enter(count, lazy)
    task.clock.switch(SCHEDULING)
    task.kind = SCHEDULING
    acquire, release = lock.acquire, lock.release
    while True:
        if not acquire(False):
            acquire_patiently(lock)
        try:
            if node is not None:
                part.end_body(node, wake)
                if sleepers.asleep and scheduler.ready:
                    scheduler.call_workers()
            node = part.take()
            if node is None:
                if part.over():
                    break
                part.waiting = True
                task.blocker = part
        finally:
            release()
        if node is None:
            yield
            continue
        task.owner = node
        clock = task.clock
        clock.regions += 1
        clock.switch(COMPUTE)
        if node.is_async:
            task.kind = COMPUTE
            yield from node.body(state, iterations[count - node.remaining]).__await__()
            task.kind = SCHEDULING
        else:
            node.body(state, iterations[count - node.remaining])
        task.clock.switch(SCHEDULING)
        task.owner = None
    task.blocker = None
    task.kind = COMPUTE
    task.clock.switch(COMPUTE)


@types.coroutine
def drain(scheduler: Scheduler, task: Task) -> Generator[None, None, None]:
    """Until no message of the rank is under way: the end of a rank waits for all of them."""
    for part in task.parts.values():
        with scheduler.lock:
            part.lazy = False
            part.waiting = bool(part.busy)
        while part.busy:
            yield
    with scheduler.lock:
        task.draining = True
    while task.posted != task.finished:
        yield
