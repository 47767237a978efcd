"""The algorithms' own plans, run for many nodes and ranks in random orders."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from runner.programs.apps.mcoll import theory
from runner.runtimes.intranode.mcoll import allgather, allreduce, scatter
from runner.runtimes.intranode.mcoll.plan import Plan
from runner.runtimes.intranode.mcoll.topology import Topology
from tests.case_table import case_table
from tests.intranode.mcoll.simulation import Deadlock, Simulation

DICE = random.Random(5)
SHAPES: list[Any] = [
    *itertools.product(range(1, 6), range(1, 5)),
    *((7, 3), (8, 2), (9, 8), (13, 3), (16, 3), (19, 1), (31, 1)),
    *(pytest.param(*more, marks=pytest.mark.slow) for more in ((27, 2), (32, 8), (40, 3))),
]


def topologies(nodes: int, locals_: int) -> list[Topology]:
    """Ranks of a node side by side, and dealt out to nodes in turn; of many the latter alone."""
    count = nodes * locals_
    turns = Topology.of([rank % nodes for rank in range(count)])
    return [turns] if count > 20 else [Topology.of_equal_nodes(count, nodes), turns]


def choices(locals_: int) -> list[tuple[int, int]]:
    """All (objects, radix), or some of many."""
    every = [(k, b) for k in range(1, locals_ + 1) for b in range(2, k + 2)]
    return every if len(every) <= 3 else [every[-1], *DICE.sample(every, 2)]


def power(nodes: int) -> bool:
    return nodes & (nodes - 1) == 0


@pytest.mark.parametrize(("nodes", "locals_"), SHAPES)
def test_allgather_of_any_shape(nodes: int, locals_: int) -> None:
    for topology, (objects, radix) in itertools.product(
        topologies(nodes, locals_), choices(locals_)
    ):
        size, overlap = DICE.choice((0, 1, 3, 8, 24)), DICE.random() < 0.5
        count = nodes * locals_
        send = [np.random.default_rng(r).integers(0, 256, size, np.uint8) for r in range(count)]
        forms: dict[str, Callable[[Plan], None]] = {
            "bruck": lambda plan, size=size: allgather.bruck(plan, size),  # type: ignore[misc]
            "ring": lambda plan, size=size, o=overlap: allgather.ring(  # type: ignore[misc]
                plan, size, o
            ),
        }
        if power(nodes):
            forms["rd"] = lambda plan, size=size: allgather.recursive_doubling(  # type: ignore[misc]
                plan, size
            )
        for form, write in forms.items():
            done = Simulation(topology, objects, radix, lambda _, w=write: w, send, size * count)
            done.run(nodes)
            assert all(np.array_equal(got, np.concatenate(send)) for got in done.recv)
            expected = theory.allgather(form, size, nodes, locals_, objects, radix)
            assert (done.messages, done.bytes) == (expected.messages, expected.bytes)
            assert most_steps(done) == expected.steps


def most_steps(done: Simulation) -> int:
    """Messages one after the other: between two barriers those of the object with the most."""
    most: Counter[int] = Counter()
    for plan in done.plans:
        barriers, own = 0, Counter[int]()
        for step in plan.steps:
            barriers += step.kind == "arrive"
            own[barriers] += step.kind == "start"
        most |= own
    return most.total()


@pytest.mark.parametrize(("nodes", "locals_"), SHAPES)
def test_allreduce_of_any_shape(nodes: int, locals_: int) -> None:
    for topology, (objects, radix) in itertools.product(
        topologies(nodes, locals_), choices(locals_)
    ):
        count = DICE.choice((0, 1, 2, 5, 13, 50))
        chunks = DICE.choice(("p-way", "binomial"))
        overlap = DICE.random() < 0.5
        ranks = nodes * locals_
        whole = [np.random.default_rng(r).integers(-99, 99, count, np.int32) for r in range(ranks)]
        send = [values.view(np.uint8) for values in whole]
        forms: dict[str, Callable[[Plan], None]] = {
            "bruck": lambda plan, n=count, c=chunks: allreduce.bruck(plan, n, c),  # type: ignore[misc]
            "collected": lambda plan, n=count, c=chunks: allreduce.bruck_in_order(  # type: ignore[misc]
                plan, n, c
            ),
            "ring": lambda plan, n=count, c=chunks, o=overlap: allreduce.ring(  # type: ignore[misc]
                plan, n, c, o
            ),
            "scatter-bruck": lambda plan, n=count, c=chunks: allreduce.scatter_bruck(  # type: ignore[misc]
                plan, n, c
            ),
        }
        if power(nodes):
            forms["rd"] = lambda plan, n=count, c=chunks: allreduce.recursive_doubling(  # type: ignore[misc]
                plan, n, c
            )
        for form, write in forms.items():
            done = Simulation(
                topology, objects, radix, lambda _, w=write: w, send, 4 * count, np.int32
            )
            done.run(nodes + 1)
            expected = np.sum(whole, axis=0, dtype=np.int32)
            assert all(np.array_equal(got.view(np.int32), expected) for got in done.recv), form
            name = "bruck" if form == "collected" else form
            told = theory.allreduce(name, count, 4, nodes, objects, radix, form != "collected")
            assert (done.messages, done.bytes) == (told.messages, told.bytes), form
            if nodes > 1 and count >= objects * nodes:
                assert most_steps(done) == told.steps


@pytest.mark.parametrize(("nodes", "locals_"), SHAPES)
def test_scatter_of_any_shape(nodes: int, locals_: int) -> None:
    for topology, (objects, radix) in itertools.product(
        topologies(nodes, locals_), choices(locals_)
    ):
        size, ranks = DICE.choice((0, 1, 3, 8)), nodes * locals_
        root = DICE.randrange(ranks)
        whole = np.random.default_rng(3).integers(0, 256, size * ranks, np.uint8)
        send = [whole if rank == root else whole[:0] for rank in range(ranks)]
        done = Simulation(
            topology,
            objects,
            radix,
            lambda _, size=size, root=root: lambda plan: scatter.tree(plan, size, root),
            send,
            size,
        )
        done.run(nodes)
        assert np.array_equal(np.concatenate(done.recv), whole)
        told = theory.scatter(size, nodes, locals_, radix)
        assert (done.messages, done.bytes) == (told.messages, told.bytes)


@case_table("form", ["collected", "scatter-bruck", "ring", "rd"])
@case_table("locals_", [1, 3])
def test_sums_of_floats_have_the_same_bits_everywhere(form: str, locals_: int) -> None:
    nodes, count = 8, 33
    topology = Topology.of_equal_nodes(nodes * locals_, nodes)
    whole = [np.random.default_rng(r).normal(size=count) for r in range(nodes * locals_)]

    def write(plan: Plan) -> None:
        if form == "ring":
            allreduce.ring(plan, count, "p-way", True)
        elif form == "scatter-bruck":
            allreduce.scatter_bruck(plan, count, "p-way")
        elif form == "rd":
            allreduce.recursive_doubling(plan, count, "p-way")
        else:
            allreduce.bruck_in_order(plan, count, "p-way")

    send = [values.view(np.uint8) for values in whole]
    done = Simulation(topology, locals_, locals_ + 1, lambda _: write, send, 8 * count, np.float64)
    done.run(1)
    assert len({got.tobytes() for got in done.recv}) == 1
    assert np.allclose(done.recv[0].view(np.float64), np.sum(whole, axis=0), rtol=1e-13, atol=1e-13)


def test_bruck_of_floats_differs_in_bits_between_nodes() -> None:
    """Why it is not what sums of floats take."""
    topology = Topology.of_equal_nodes(7, 7)
    whole = [np.random.default_rng(r).normal(size=64) for r in range(7)]
    done = Simulation(
        topology,
        1,
        2,
        lambda _: lambda plan: allreduce.bruck(plan, 64, "p-way"),
        [values.view(np.uint8) for values in whole],
        8 * 64,
        np.float64,
    )
    done.run()
    assert len({got.tobytes() for got in done.recv}) > 1


def test_the_simulation_finds_a_missing_barrier() -> None:
    """The plans of ranks that do not wait for each other give wrong data in some order."""

    def hasty(plan: Plan) -> None:
        plan.barrier = lambda: None  # type: ignore[method-assign]
        allgather.bruck(plan, 4)

    topology = Topology.of_equal_nodes(6, 2)
    send = [np.full(4, rank, np.uint8) for rank in range(6)]
    wrong = 0
    for seed in range(20):
        done = Simulation(topology, 3, 4, lambda _: hasty, send, 24)
        done.run(seed)
        wrong += not all(np.array_equal(got, np.concatenate(send)) for got in done.recv)
    assert wrong


def test_the_simulation_finds_a_deadlock() -> None:
    def lonely(plan: Plan) -> None:
        plan.recv(plan.seat.node + 1, 0, plan.room(8), 8)
        plan.exchange()

    send = [np.zeros(0, np.uint8)] * 2
    with pytest.raises(Deadlock):
        Simulation(Topology.of_equal_nodes(2, 2), 1, 2, lambda _: lonely, send, 0).run()
