"""In which order regions run: the examples of the dissertation, and random graphs."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from runner.runtimes import mate
from runner.runtimes.core.core import Core
from runner.runtimes.mate import task
from tests.case_table import case_table
from tests.mate.graphs import STENCIL, DelayedTransport, chain, graph_of

FREE = {"D": ["C"], "E": ["C"], "C": []}
LOOP = {"D": ["C"], "E": ["C", "D@"], "C": ["D*", "C*@"]}


def config(workers: int, ranks: int, seed: int | None = None) -> mate.Config:
    return mate.Config(
        workers=workers, ranks_per_process=ranks, affinity="none", schedule_seed=seed
    )


def executions(violation: str) -> list[str]:
    """The executions that a violation names, each with its local rank."""
    return re.findall(r"[a-z.]+\[[0-9]\]|\b[0-9]$|\b[0-9](?= )", violation)


def figure_3_7(seed: int | None) -> str:
    printed: list[str] = []
    graph = graph_of(FREE, lambda name, state, i: printed.append(name.lower()))

    async def main(ctx: mate.Context) -> None:
        printed.extend("ab")
        await ctx.execute(graph)
        printed.extend("fg")

    mate.run(main, config(1, 1, seed))
    return "".join(printed)


def test_figure_3_7_in_source_order() -> None:
    assert figure_3_7(None) == "abcdefg"


def test_figure_3_7_in_random_order() -> None:
    assert {figure_3_7(seed) for seed in range(30)} == {"abcdefg", "abcedfg"}


@case_table("ranks", [1, 2, 5, 64, 256])
@case_table("workers", [1, 2, 4])
def test_figure_3_10_prints_in_order(workers: int, ranks: int) -> None:
    printed: list[int] = []
    graph = graph_of({"A": ["A@"]}, lambda name, ctx, i: printed.append(ctx.local_rank))

    async def main(ctx: mate.Context) -> None:
        if ctx.local_rank:
            ctx.add_local_neighbor(ctx.local_rank - 1)
        await ctx.execute(graph)

    mate.run(main, config(workers, ranks, seed=ranks))
    assert printed == list(range(ranks))


@case_table("workers", [1, 2, 4])
@case_table("seed", range(4))
def test_figure_3_12_keeps_its_three_constraints(workers: int, seed: int) -> None:
    ended: list[tuple[str, int, int]] = []
    graph = graph_of(LOOP, lambda name, ctx, i: ended.append((name, ctx.local_rank, i)))

    async def main(ctx: mate.Context) -> None:
        chain(ctx)
        await ctx.execute(graph, 5)

    log = mate.EventLog()
    mate.run(main, config(workers, 3, seed), log=log)
    assert log.check() == []
    place = {key: position for position, key in enumerate(ended)}
    assert len(place) == len(ended) == 3 * 3 * 5
    for (name, rank, i), position in place.items():
        neighbors = [r for r in (rank - 1, rank + 1) if 0 <= r < 3]
        if name == "E":
            assert all(place["D", r, i] < position for r in neighbors)
        if name == "C" and i:
            assert place["D", rank, i - 1] < position
            assert all(place["C", r, i - 1] < position for r in neighbors)


@case_table("workers", [1, 2, 4])
def test_neighbours_are_never_more_than_one_iteration_apart(workers: int) -> None:
    leads: Counter[int] = Counter()
    at = [0] * 6

    def body(name: str, ctx: mate.Context, i: int) -> None:
        if name == "compute":
            at[ctx.local_rank] = i
            for other in (ctx.local_rank - 1, ctx.local_rank + 1):
                if 0 <= other < 6:
                    leads[i - at[other]] += 1

    graph = graph_of(STENCIL, body)

    async def main(ctx: mate.Context) -> None:
        chain(ctx)
        await ctx.execute(graph, 30)

    mate.run(main, config(workers, 6, seed=1))
    assert leads[1] > 0
    assert max(leads) <= 1


def test_a_loop_without_iterations_and_one_with_one() -> None:
    ran: list[int] = []
    graph = graph_of({"a": ["b*"], "b": ["a"]}, lambda name, ctx, i: ran.append(i))

    async def main(ctx: mate.Context) -> str:
        await ctx.execute(graph, 0)
        assert ran == []
        await ctx.execute(graph, 1)
        return "went on"

    assert mate.run(main).results == ["went on"]
    assert ran == [0, 0]


def test_a_range_gives_each_region_its_own_iteration() -> None:
    seen: dict[str, list[int]] = {"a": [], "b": []}
    graph = graph_of({"b": ["a"], "a": []}, lambda name, ctx, i: seen[name].append(i))

    async def main(ctx: mate.Context) -> None:
        await ctx.execute(graph, range(10, 2, -3))

    mate.run(main)
    assert seen == {"a": [10, 7, 4], "b": [10, 7, 4]}


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_graph_is_entered_three_times_per_call_ten_calls(workers: int) -> None:
    """As an exchange along three axes: counts persist, `*` reaches back over entries."""
    count: Counter[tuple[str, int]] = Counter()
    table = {"move": ["copy*@"], "copy": ["move", "move@"]}
    graph = graph_of(table, lambda name, ctx, i: count.update([(name, ctx.local_rank)]))

    async def main(ctx: mate.Context) -> None:
        chain(ctx)
        for _ in range(10):
            for _ in range(3):
                await ctx.execute(graph)

    log = mate.EventLog()
    mate.run(main, config(workers, 4, seed=3), log=log)
    assert log.check() == []
    assert set(count.values()) == {30}


@case_table(("workers", "ranks"), [(1, 1), (2, 2), (4, 4), (4, 2), (2, 1), (1, 7)])
def test_any_ratio_of_workers_and_ranks_ends(workers: int, ranks: int) -> None:
    graph = graph_of(STENCIL, lambda name, ctx, i: None)

    async def main(ctx: mate.Context) -> int:
        chain(ctx)
        await ctx.execute(graph, 20)
        await ctx.barrier()
        return ctx.rank

    assert mate.run(main, config(workers, ranks)).results == list(range(ranks))


@st.composite
def tables(draw: st.DrawFn) -> dict[str, list[str]]:
    """Graphs that cannot deadlock: within an iteration a region waits only for earlier ones."""
    order = draw(st.permutations([f"r{n}" for n in range(draw(st.integers(1, 5)))]))
    table: dict[str, list[str]] = {}
    for name in draw(st.permutations(order)):
        earlier = order[: order.index(name)]
        now = [e + mark for e in earlier for mark in ("", "@")]
        before = [o + mark for o in order for mark in ("*", "*@")]
        table[name] = draw(st.lists(st.sampled_from(now + before), unique=True, max_size=4))
    return table


@given(
    tables(),
    st.integers(1, 5),
    st.integers(1, 3),
    st.lists(st.integers(0, 4), min_size=1, max_size=3),
    st.integers(0, 10**6),
    st.data(),
)
@settings(max_examples=60, deadline=None)
def test_any_graph_is_obeyed_under_any_schedule(
    table: dict[str, list[str]],
    ranks: int,
    workers: int,
    entries: list[int],
    seed: int,
    data: st.DataObject,
) -> None:
    """Random neighbours (itself too), messages whose completion is delayed, several entries."""
    everyone = st.integers(0, ranks - 1)
    neighbors = [data.draw(st.lists(everyone, unique=True)) for _ in range(ranks)]
    talks = data.draw(st.sets(st.sampled_from(sorted(table))))
    graph = graph_of(table, talk_round(talks, sorted(table)))

    async def main(ctx: mate.Context) -> None:
        for other in neighbors[ctx.local_rank]:
            ctx.add_local_neighbor(other)
        for number, count in enumerate(entries):
            await ctx.execute(graph, count, lazy=number % 2 == 1)

    log = mate.EventLog()
    mate.run(main, config(workers, ranks, seed), log=log, transport=DelayedTransport(seed))
    assert log.check() == []
    finished = [e for e in log.events if e.kind == "finish"]
    assert len(finished) == len(table) * ranks * sum(entries)
    assert sum(e.kind == "request" for e in log.events) == 2 * len(talks) * ranks * sum(entries)


def talk_round(talks: set[str], tags: list[str]) -> Any:
    """A body that, in some regions, sends to the next rank and receives from the one before."""

    def body(name: str, ctx: mate.Context, i: int) -> None:
        if name in talks:
            tag = tags.index(name)
            ctx.isend(bytearray(1), (ctx.rank + 1) % ctx.size, tag)
            ctx.irecv(bytearray(1), (ctx.rank - 1) % ctx.size, tag)

    return body


def test_the_checker_finds_what_the_rule_read_literally_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The step rule as printed is one iteration too permissive."""
    right = task.link
    monkeypatch.setattr(task, "link", lambda node, source, delay: right(node, source, delay + 1))
    graph = graph_of(STENCIL, lambda name, ctx, i: None)

    async def main(ctx: mate.Context) -> None:
        chain(ctx)
        await ctx.execute(graph, 6)

    log = mate.EventLog()
    mate.run(main, dataclasses.replace(config(1, 3), core="python"), log=log)
    found = log.check()
    for missing in (
        ("pack[0]", "0"),
        ("unpack[0]", "0"),
        ("compute[0]", "1"),
    ):
        assert ["test.compute[1]", "0", *missing] in map(executions, found)


def test_the_checker_finds_a_compiled_core_that_is_too_permissive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = Core.link
    monkeypatch.setattr(Core, "link", lambda core, a, b, lead: right(core, a, b, lead - 1))
    graph = graph_of(STENCIL, lambda name, ctx, i: None)

    async def main(ctx: mate.Context) -> None:
        chain(ctx)
        await ctx.execute(graph, 6)

    log = mate.EventLog()
    mate.run(main, dataclasses.replace(config(1, 3), core="native"), log=log)
    found = log.check()
    assert ["test.compute[1]", "0", "pack[0]", "0"] in map(executions, found)


def test_the_checker_finds_an_early_finish_and_a_missing_start(snapshot: SnapshotAssertion) -> None:
    graph = graph_of({"a": []}, lambda name, ctx, i: None)
    graph.edges()
    log = mate.EventLog()

    async def main(ctx: mate.Context) -> None:
        await ctx.execute(graph)

    mate.run(main, log=log)
    start, body, finish = log.events
    busy = body._replace(posted=1)
    assert mate.check_events(graph, [start, body, finish], [[]]) == []
    logs = [[start, busy, finish], [body], [start, finish], [start, start]]
    assert [mate.check_events(graph, events, [[]]) for events in logs] == snapshot
