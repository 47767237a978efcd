"""Tables for some operations on some numbers of ranks, searched, proven and put together."""

from __future__ import annotations

import dataclasses
import datetime
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from autotune.collectives.candidates import OPERATIONS, Entry, as_rules, candidates, restricted
from autotune.collectives.machine import Allowance, Machine, program
from autotune.collectives.prove import Proven, fewest_pairs, prove
from autotune.collectives.result import CollectiveResult, Part
from autotune.collectives.tournament import Tournament
from autotune.errors import UsageError
from autotune.space import DEFAULT, load_space
from autotune.store import Store
from autotune.study.budget import BudgetSpent, BudgetTooSmall
from autotune.study.events import Watcher, silent
from autotune.study.target import Target
from autotune.words import asked_time
from runner.lock import MachineLock
from runner.machine import describe

LOOK_BETTER = "look better"
SIZES = tuple(2**power for power in range(3, 21))
"""8 bytes to 1 MiB."""


@dataclass(frozen=True)
class Terms:
    """How to measure: ``pairs`` of the proof, ``min_gain`` that an entry must show (a fraction)."""

    store: Store
    sizes: Sequence[int] = SIZES
    pairs: int = 12
    min_gain: float = 0.05
    seed: int = 0
    guard: bool = True
    watch: Watcher = silent
    say: Callable[[str], None] = lambda words: None
    budget_s: float | None = None
    """Machine seconds for all tables."""


def find_tables(
    targets: Sequence[Target], operations: Sequence[str], terms: Terms
) -> CollectiveResult:
    """One part per operation and target (each a number of ranks, ascending).

    Raises UsageError for an operation that has no table here, WorkError where the default fails.
    """
    for operation in operations:
        if operation not in OPERATIONS:
            raise UsageError(
                f"there is no table for {operation!r}; expected some of {', '.join(OPERATIONS)}"
            )
    # One turn at the machine for all of it: what is compared shall lie close together.
    with MachineLock(
        "exclusive",
        on_wait=lambda holder: terms.say(f"waiting for the machine: {holder[:200]} holds it"),
        cpus=targets[0].cluster.cpu_set,
    ):
        parts, left_out = _parts(targets, operations, terms)
    library = targets[0].library
    enums = {op: library.params.get(f"coll_tuned_{op}_algorithm") for op in operations}
    return CollectiveResult(
        cluster=targets[0].cluster.name,
        machine=describe().fingerprint,
        mpi={"name": library.family, "version": library.version},
        date=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S"),
        parts=tuple(parts),
        left_out=tuple(left_out),
        algorithms={
            op: {str(n): w for n, w in (info.enum if info else {}).items()}
            for op, info in enums.items()
        },
        guarded=terms.guard,
    )


def _parts(
    targets: Sequence[Target], operations: Sequence[str], terms: Terms
) -> tuple[list[Part], list[str]]:
    """The parts that the budget held, and the names of the others."""
    allowance = Allowance(terms.budget_s)
    wanted = [(operation, target) for operation in operations for target in targets]
    parts: list[Part] = []
    try:
        for operation, target in wanted:
            parts.append(_part(operation, target, terms, allowance))
    except BudgetSpent:
        if not parts:
            given = asked_time(terms.budget_s or 0)
            raise BudgetTooSmall(
                f"the budget of {given} ended before the first table was proven.  "
                "Every run is kept: the same command with a larger --budget goes on"
            ) from None
    return parts, [f"{name} on {target.ranks} ranks" for name, target in wanted[len(parts) :]]


def _part(operation: str, target: Target, terms: Terms, allowance: Allowance) -> Part:
    space = restricted(
        load_space("openmpi", target.library, {**target.facts, "nodes": 1}), operation
    )
    machine = Machine(
        terms.store,
        target,
        space,
        operation,
        terms.seed,
        terms.guard,
        terms.watch,
        allowance=allowance,
    )
    every = candidates(space)
    search = Tournament(every, terms.sizes, machine.measure, terms.min_gain)
    terms.say(f"{operation} on {target.ranks} ranks: {len(every)} candidates")
    search.run()
    table = search.table()
    found = _proof(machine, table, terms)
    terms.say(
        f"  {search.points} of {search.grid} measurements of the grid; "
        f"{sum(e.setting != DEFAULT for e in table)} entries found, "
        f"{sum(e.setting != DEFAULT for e in found.entries)} "
        f"{'proven' if terms.guard else LOOK_BETTER}"
    )
    words = [sys.executable, "-m", "runner.micro", *program(operation, terms.sizes)]
    return Part(
        operation,
        target.ranks,
        tuple(as_rules(space, operation, target.ranks, list(found.entries))),
        found.evidence,
        search.points,
        search.grid,
        machine.launches + found.launches,
        tuple(words),
    )


def _proof(machine: Machine, table: list[Entry], terms: Terms) -> Proven:
    if all(entry.setting == DEFAULT for entry in table):
        return Proven((Entry(terms.sizes[0], DEFAULT),), (), 0)
    if (fewest := fewest_pairs(terms.sizes)) > terms.pairs:
        terms.say(f"  {fewest} pairs instead of {terms.pairs}: fewer prove nothing at all sizes")
    return prove(machine, table, terms.sizes, terms.pairs)


def with_ranks(target: Target, ranks: Sequence[int]) -> list[Target]:
    """The target on each number of ranks, ascending."""
    return [dataclasses.replace(target, ranks=n) for n in sorted(set(ranks))]
