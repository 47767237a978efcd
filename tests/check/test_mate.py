"""Graphs of MATE in one process: what is missing, what is superfluous, what is right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from runner.runtimes import mate
from tests.check.conftest import Check

CELLS, STEPS, RANKS = 4, 6, 3
GOOD = {
    "compute": ["pack*", "unpack*", "compute*@"],
    "receive": ["unpack*"],
    "pack": ["compute", "send*"],
    "send": ["pack"],
    "unpack": ["compute", "receive"],
}


class Part:
    """Cells of a shared line; the ends of the line are sent to the rank at the other end."""

    def __init__(self, ctx: mate.Context, fields: list[Any]) -> None:
        self.ctx, self.fields = ctx, fields
        self.low = 1 + ctx.local_rank * CELLS
        self.high = self.low + CELLS
        first, last = ctx.local_rank == 0, ctx.local_rank == ctx.local_count - 1
        self.peer = ctx.local_count - 1 if first else 0 if last else -1
        self.own = self.low if first else self.high - 1
        self.ghost = self.low - 1 if first else self.high
        self.sent, self.came = np.zeros(1), np.zeros(1)


def compute(part: Part, i: int) -> None:
    old, new = part.fields[i % 2], part.fields[(i + 1) % 2]
    low, high = part.low, part.high
    new[low:high] = 0.5 * old[low:high] + 0.25 * (old[low - 1 : high - 1] + old[low + 1 : high + 1])


def receive(part: Part, i: int) -> None:
    if part.peer >= 0:
        part.ctx.irecv(part.came, part.peer)


def pack(part: Part, i: int) -> None:
    if part.peer >= 0:
        part.sent[0] = part.fields[(i + 1) % 2][part.own]


def send(part: Part, i: int) -> None:
    if part.peer >= 0:
        part.ctx.isend(part.sent, part.peer)


def unpack(part: Part, i: int) -> None:
    if part.peer >= 0:
        part.fields[(i + 1) % 2][part.ghost] = part.came[0]


def ring(depends: dict[str, list[str]], neighbours: bool = True) -> Any:
    """A rank of the line whose ends are neighbours."""
    graph = mate.Graph("ring")
    for body in (compute, receive, pack, send, unpack):
        graph.region(depends=depends[body.__name__])(body)

    async def main(ctx: mate.Context) -> None:
        whole = np.arange(2.0 + RANKS * CELLS) ** 2
        fields = await ctx.local_bcast([whole, whole.copy()])
        for other in (ctx.local_rank - 1, ctx.local_rank + 1):
            if neighbours and 0 <= other < ctx.local_count:
                ctx.add_local_neighbor(other)
        await ctx.execute(graph, STEPS, state=Part(ctx, fields))

    return main


def without(region: str, dependency: str) -> dict[str, list[str]]:
    return {**GOOD, region: [d for d in GOOD[region] if d != dependency]}


def verdicts(answer: dict[str, Any], verdict: str) -> list[tuple[str, str]]:
    rows = answer["dependencies"]
    return [(row["region"], row["dependency"]) for row in rows if row["verdict"] == verdict]


def races(answer: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(race["kind"], race["region"], race["dependency"]) for race in answer["races"]]


def test_a_right_graph_has_no_findings_and_one_result(check: Check) -> None:
    answers = [check(ring(GOOD), RANKS, seed) for seed in (None, 1, 2)]
    for answer in answers:
        assert answer["races"] == []
        assert answer["conflicts"] > 0
        assert sorted(verdicts(answer, "needed")) == sorted(
            (region, d) for region, depends in GOOD.items() for d in depends
        )
        assert answer["contents"] == answers[0]["contents"]


BOTH_WAYS = [("compute", "pack*"), ("unpack", "compute")]
"""Each rank sends and receives in each iteration: these messages give the same order."""


@pytest.mark.parametrize(
    ("region", "dependency"),
    [
        (region, d)
        for region, depends in GOOD.items()
        for d in depends
        if (region, d) not in BOTH_WAYS
    ],
)
def test_each_missing_dependency_is_named(check: Check, region: str, dependency: str) -> None:
    answer = check(ring(without(region, dependency)), RANKS)
    # Another region may wait instead, if that gives the same order.
    name = dependency.rstrip("*@")
    sides = [{race["first"]["region"], race["second"]["region"]} for race in answer["races"]]
    assert {region, name} in sides
    assert {race["kind"] for race in answer["races"]} == {"missing"}
    (race, *_) = answer["races"]
    assert race["first"]["file"] == race["second"]["file"] == __file__
    bodies = {body.__name__: body for body in (compute, receive, pack, send, unpack)}
    for side in (race["first"], race["second"]):
        assert side["line"] == bodies[side["region"]].__code__.co_firstlineno


@pytest.mark.parametrize(("region", "dependency"), BOTH_WAYS)
def test_messages_order_regions_as_well(check: Check, region: str, dependency: str) -> None:
    assert check(ring(without(region, dependency)), RANKS)["races"] == []


def test_the_shared_cells_are_named(check: Check) -> None:
    (race,) = check(ring(without("compute", "compute*@")), RANKS)["races"]
    assert (race["dependency"], race["region"]) == ("compute*@", "compute")
    assert race["first"]["rank"] != race["second"]["rank"]
    name, _, index = race["memory"].partition("[")
    assert (name, index[:3]) == ("fields", index[0] + "][")


@pytest.mark.parametrize(("region", "dependency"), [("receive", "send*"), ("unpack", "pack")])
def test_a_superfluous_dependency_is_named(check: Check, region: str, dependency: str) -> None:
    answer = check(ring({**GOOD, region: [*GOOD[region], dependency]}), RANKS)
    assert answer["races"] == []
    assert verdicts(answer, "superfluous") == [(region, dependency)]


def test_a_dependency_that_follows_from_others_is_no_fault(check: Check) -> None:
    answer = check(ring({**GOOD, "receive": ["unpack*", "compute*"]}), RANKS)
    assert ("receive", "compute*") in verdicts(answer, "implied")
    assert verdicts(answer, "superfluous") == []


def test_a_rank_that_is_not_registered_is_named(check: Check) -> None:
    answer = check(ring(GOOD, neighbours=False), RANKS)
    assert ("stranger", "compute", "compute*@") in races(answer)


def test_nothing_is_said_of_what_did_not_happen(check: Check) -> None:
    def lonely(i: int) -> Any:
        graph = mate.Graph("lonely")
        graph.region(name="first")(lambda ctx, i: None)
        graph.region(name="second", depends=["first"])(lambda ctx, i: None)

        async def main(ctx: mate.Context) -> None:
            await ctx.execute(graph, 2)

        return main

    answer = check(lonely(0), 2)
    assert verdicts(answer, "untested") == [("second", "first")]


def run_graph(check: Check, ranks: int, *bodies: Any, **depends: list[str]) -> dict[str, Any]:
    """Ranks that share an array; each body is a region."""
    graph = mate.Graph("small")
    for body in bodies:
        graph.region(depends=depends.get(body.__name__, []))(body)

    async def main(ctx: mate.Context) -> None:
        shared = await ctx.local_bcast(np.zeros(8))

        class State:
            def __init__(self) -> None:
                self.ctx, self.shared, self.count = ctx, shared, 0
                self.scratch, self.table = np.zeros(4), [0, 0]

        for other in range(ctx.local_count):
            if other != ctx.local_rank:
                ctx.add_local_neighbor(other)
        await ctx.execute(graph, 3, state=State())

    return check(main, ranks)


def test_a_region_that_uses_its_own_message(check: Check) -> None:
    def talk(state: Any, i: int) -> None:
        other = 1 - state.ctx.rank
        state.ctx.irecv(state.scratch, other)
        state.ctx.isend(state.shared[4 * state.ctx.rank : 4 * state.ctx.rank + 4], other)
        state.scratch[0] += 1

    assert ("own", "talk", "") in races(run_graph(check, 2, talk))


def test_ranks_that_write_the_same_in_one_iteration(check: Check) -> None:
    def write(state: Any, i: int) -> None:
        state.shared[0] = i

    answer = run_graph(check, 2, write, write=["write*@"])
    assert races(answer) == [("same", "write", "")]


def test_attributes_and_lists_are_memory_too(check: Check) -> None:
    def count(state: Any, i: int) -> None:
        state.count += 1

    def show(state: Any, i: int) -> None:
        state.table[0] = state.count

    answer = run_graph(check, 1, count, show)
    assert races(answer) == [("missing", "count", "show*"), ("missing", "show", "count")]
    answer = run_graph(check, 1, count, show, show=["count"], count=["show*"])
    assert races(answer) == []


def test_values_within_a_region_concern_no_other_one_of_the_rank(check: Check) -> None:
    def first(state: Any, i: int) -> None:
        state.scratch[:] = i
        state.shared[0] = state.scratch.sum()

    def second(state: Any, i: int) -> None:
        np.add(state.shared[4:], 1.0, out=state.scratch)
        state.shared[1] = state.scratch.max()

    assert races(run_graph(check, 1, first, second)) == []


def test_variables_of_enclosing_functions_are_watched(check: Check) -> None:
    values = np.zeros(4)
    total = 0.0

    def write(state: Any, i: int) -> None:
        values[state.ctx.rank] = i

    def read(state: Any, i: int) -> None:
        nonlocal total
        total = float(values[state.ctx.rank])

    answer = run_graph(check, 1, write, read)
    assert races(answer) == [("missing", "write", "read*"), ("missing", "read", "write")]
    assert races(run_graph(check, 1, write, read, read=["write"], write=["read*"])) == []


def test_a_barrier_orders_ranks(check: Check) -> None:
    graph = mate.Graph("with-barrier")

    @graph.region(depends=["meet*"])
    async def meet(state: Any, i: int) -> None:
        ctx, shared = state
        if ctx.rank == 0:
            shared[0] = i
        await ctx.local_barrier()
        if ctx.rank == 1:
            shared[1] = shared[0]
        await ctx.local_barrier()

    async def main(ctx: mate.Context) -> None:
        shared = await ctx.local_bcast(np.zeros(8))
        await ctx.execute(graph, 3, state=Pair(ctx, shared))

    answer = check(main, 2)
    assert answer["races"] == []
    assert answer["conflicts"] > 0
    assert answer["races"] == []
    assert answer["conflicts"] > 0


class Pair(list[Any]):
    """A state that is a sequence."""

    def __init__(self, *items: Any) -> None:
        super().__init__(items)
