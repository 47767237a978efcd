"""Random jobs give the same counts, data and deadlock reports on both cores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from runner.runtimes import mate
from tests.mate.graphs import DelayedTransport

FACTOR = 0x9E3779B97F4A7C15
MODULUS = 2**61 - 1
PYTHON, TALKING, ASYNC, COUNTING, SENDING = "python", "talking", "async", "counting", "sending"
QUEUES = ("home", "fixed", "shared")


@dataclass(frozen=True)
class Entry:
    """One ``execute`` of all ranks; ``late``: pairs of ranks that become neighbours before it."""

    iterations: range
    lazy: bool
    late: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Job:
    """``regions``: kind, priority and dependencies of each, by name."""

    regions: dict[str, tuple[str, int, tuple[str, ...]]]
    ranks: int
    neighbors: tuple[tuple[int, ...], ...]
    entries: tuple[Entry, ...]
    stuck: bool = False
    """Whether the last region waits for itself in two ranks."""

    @property
    def executions(self) -> int:
        """Of each region of each rank."""
        return sum(len(entry.iterations) for entry in self.entries)

    @property
    def late(self) -> bool:
        return any(entry.late for entry in self.entries)


def count(part: Any, i: int) -> None:
    part.total[0] += (i + 3) * part.weight


def send(part: Any, i: int) -> None:
    part.total[1] += part.into[0] * (i + 5)
    part.sent[0] = i * 1000 + part.weight
    part.ctx.isend(part.sent, part.after, 99)
    part.ctx.irecv(part.into, part.before, 99)


class Part:
    """A rank's state. ``values``: what each execution of a Python region has computed."""

    def __init__(self, ctx: mate.Context, parts: list[Part]) -> None:
        self.ctx = ctx
        self.parts = parts
        self.weight = 7 + ctx.rank
        self.after, self.before = (ctx.rank + 1) % ctx.size, (ctx.rank - 1) % ctx.size
        self.total, self.sent, self.into = (np.zeros(n, np.int64) for n in (2, 1, 1))
        self.values: dict[str, list[int]] = {}
        self.received: dict[str, list[np.ndarray[Any, Any]]] = {}
        self.neighbors: list[int] = []

    def value(self, name: str, execution: int) -> int:
        """What an execution has computed and received."""
        got = self.received.get(name, ())
        return self.values[name][execution] + (int(got[execution][0]) if got else 0)

    def result(self) -> Any:
        received = {name: [int(b[0]) for b in all_] for name, all_ in self.received.items()}
        return self.values, received, self.total.tolist(), self.into.tolist()


def build(job: Job) -> mate.Graph:
    """The graph, whose Python regions compute a value from those of their dependencies."""
    graph = mate.Graph("random")
    for number, (name, (kind, priority, depends)) in enumerate(job.regions.items()):
        add = graph.region(name, depends, priority=priority, compiled=kind in (COUNTING, SENDING))
        if kind in (COUNTING, SENDING):
            add(count if kind == COUNTING else send)
        else:
            add(_body(job, name, kind, number, depends))
    return graph


def _body(
    job: Job, name: str, kind: str, number: int, depends: tuple[str, ...]
) -> Callable[[Part, int], Any]:
    def compute(part: Part, i: int) -> None:
        done = part.values.setdefault(name, [])
        execution = len(done)
        value = FACTOR * (number + 1) + 31 * i + part.weight
        for word in depends:
            source = word.rstrip("*@")
            if job.regions[source][0] in (COUNTING, SENDING):
                continue
            wanted = execution - ("*" in word)
            for other in part.neighbors if "@" in word else [part.ctx.rank]:
                # Fails where the dependency has not run yet.
                if wanted >= 0:
                    value += 17 * part.parts[other].value(source, wanted)
        done.append(value % MODULUS)

    def start(part: Part, target: int, source: int) -> Any:
        sent = np.array([part.values[name][-1]])
        part.received.setdefault(name, []).append(got := np.zeros(1, np.int64))
        part.ctx.isend(sent, target, number)
        return got, source

    def talking(part: Part, i: int) -> None:
        compute(part, i)
        got, source = start(part, part.after, part.before)
        part.ctx.irecv(got, source, number)

    async def waiting(part: Part, i: int) -> None:
        compute(part, i)
        got, source = start(part, part.ctx.rank, part.ctx.rank)
        await part.ctx.recv(got, source, number)

    return {PYTHON: compute, TALKING: talking, ASYNC: waiting}[kind]


def run(job: Job, config: mate.Config) -> Any:
    """Each rank's result and the number of finished executions, or the report of a deadlock."""
    graph = build(job)
    parts: list[Part] = [None] * job.ranks  # type: ignore[list-item]

    async def main(ctx: mate.Context) -> Any:
        part = parts[ctx.rank] = Part(ctx, parts)
        for other in job.neighbors[ctx.rank]:
            ctx.add_local_neighbor(other)
            part.neighbors.append(other)
        await ctx.barrier()
        for entry in job.entries:
            for rank, other in entry.late:
                if rank == ctx.rank and other not in part.neighbors:
                    ctx.add_local_neighbor(other)
                    part.neighbors.append(other)
            await ctx.execute(graph, entry.iterations, state=part, lazy=entry.lazy)
        await ctx.barrier()
        return part.result()

    log = mate.EventLog()
    transport = DelayedTransport(config.schedule_seed or 0)
    try:
        report = mate.run(main, config, log=log, transport=transport)
    except mate.Deadlock as deadlock:
        return str(deadlock)
    # The checker knows one list of neighbours for the whole run.
    assert job.late or log.check() == []
    return report.results, sum(event.kind == "finish" for event in log.events)


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    """Jobs that end, or whose last region waits for itself in two ranks."""
    total = draw(st.one_of(st.integers(1, 6), st.integers(1, 6), st.integers(60, 70)))
    ranks = draw(st.integers(1, 6))
    # Few patterns of compiled regions, because each is compiled once.
    kinds = draw(st.sampled_from([(), (COUNTING,), (COUNTING, SENDING)]))[:total]
    names = [f"r{n}" for n in range(total)]
    order = draw(st.permutations(names)) if total < 10 else names
    few = total >= 10
    regions = {}
    for number, name in enumerate(names):
        earlier = order[: order.index(name)]
        now = [e + mark for e in earlier[-6:] for mark in ("", "@")]
        before = [o + mark for o in order[-6:] for mark in ("*", "*@")]
        depends = draw(
            st.lists(st.sampled_from(now + before), unique=True, max_size=1 + 3 * (not few))
        )
        if number < len(kinds):
            kind = kinds[number]
        else:
            kind = PYTHON if few else draw(st.sampled_from([PYTHON, PYTHON, TALKING, ASYNC]))
        regions[name] = (kind, 0 if few else draw(st.integers(-1, 2)), tuple(depends))
    stuck = ranks > 1 and draw(st.integers(0, 3)) == 0
    everyone = st.integers(0, ranks - 1)
    near = [
        draw(st.lists(everyone.filter(lambda n, r=rank: n != r), unique=True)) if ranks > 1 else []
        for rank in range(ranks)
    ]
    pairs = st.lists(st.tuples(everyone, everyone).filter(lambda p: p[0] != p[1]), max_size=2)
    entries = []
    for number in range(draw(st.integers(1, 3))):
        length, first, step = draw(
            st.tuples(st.integers(0, 4), st.integers(0, 9), st.sampled_from([1, 2, -3]))
        )
        late = draw(pairs) if number and ranks > 1 else []
        entries.append(
            Entry(range(first, first + step * length, step), draw(st.booleans()), tuple(late))
        )
    if stuck:
        name = f"r{total}"
        regions[name] = (PYTHON, 0, (f"{name}@",))
        near[0], near[1] = sorted({*near[0], 1}), sorted({*near[1], 0})
        entries[-1] = Entry(range(2), False, ())
    return Job(regions, ranks, tuple(map(tuple, near)), tuple(entries), stuck)


def agree(job: Job, workers: int, queue: str, seed: int | None) -> None:
    def config(core: str, workers: int, seed: int | None) -> mate.Config:
        return mate.Config(
            workers=workers,
            ranks_per_process=job.ranks,
            affinity="none",
            in_process=True,
            schedule_seed=seed,
            core=core,
            queue=queue,
            idle_spin_us=20,
            idle_sleep_us=200,
        )

    wanted = run(job, config("python", 1 + workers % 2, seed))
    assert run(job, config("native", workers, seed)) == wanted
    if job.stuck:
        assert "waits for" in wanted
    else:
        assert wanted[1] == len(job.regions) * job.ranks * job.executions


ARGUMENTS = (jobs(), st.integers(1, 4), st.sampled_from(QUEUES), st.none() | st.integers(0, 10**6))
FIXED = Job(
    {
        "r0": (COUNTING, 0, ("r1*@",)),
        "r1": (SENDING, 1, ("r0",)),
        "r2": (TALKING, 0, ("r0@", "r3*")),
        "r3": (ASYNC, 2, ("r2", "r1@")),
    },
    3,
    ((1,), (0, 2), ()),
    (Entry(range(3), True, ()), Entry(range(9, 0, -3), False, ((2, 1),))),
)
QUIET = settings(deadline=None, suppress_health_check=list(HealthCheck))


@given(*ARGUMENTS)
@example(FIXED, 2, "home", 1)
@settings(QUIET, max_examples=12)
def test_both_cores_agree(job: Job, workers: int, queue: str, seed: int | None) -> None:
    agree(job, workers, queue, seed)


@pytest.mark.slow
@given(*ARGUMENTS)
@settings(QUIET, max_examples=1500)
def test_both_cores_agree_in_many_jobs(
    job: Job, workers: int, queue: str, seed: int | None
) -> None:
    agree(job, workers, queue, seed)
