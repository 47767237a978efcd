"""Search and proof of tables for several operations on several numbers of ranks."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Sequence
from dataclasses import dataclass

from autotune.collectives.algorithm_tables import CollectiveResult, TablePart
from autotune.collectives.measurement import (
    SizeMeasurement,
    micro_program,
    search_space,
    target_for,
)
from autotune.collectives.multi_object import FORMS as RIVAL_FORMS
from autotune.collectives.multi_object import (
    Rivalry,
    compare_rivals,
    rival_parameters,
    rival_settings,
)
from autotune.collectives.table_proof import (
    ProvenTable,
    between,
    fewest_pairs,
    folder,
    loading_space,
    prove_table,
)
from autotune.collectives.tournament import (
    OPERATIONS,
    TableEntry,
    Tournament,
    as_rules,
    table_candidates,
)
from autotune.dialects import dialect
from autotune.errors import UsageError
from autotune.measurement.budget import Budget, BudgetSpent, BudgetTooSmall
from autotune.measurement.evaluator import Evaluator
from autotune.measurement.events import Watcher, silent
from autotune.measurement.measured_study import MeasuredStudy
from autotune.measurement.study_key import study_key
from autotune.notes import Note, Say
from autotune.space import DEFAULT, Space
from autotune.space.commutativity import for_any_operation
from autotune.store import Store
from autotune.study.proof import order_seed
from autotune.targets.target import Target
from autotune.wording import asked_time
from runner.machine import describe_machine
from runner.own_python import OWN_PYTHON

STRATEGY = "collectives"
"""The strategy in the keys of the studies."""
LOOK_BETTER = "look better"
SIZES = tuple(2**power for power in range(3, 21))
"""8 bytes to 1 MiB."""


@dataclass(frozen=True)
class TableTerms:
    """The terms of the measurement: ``sizes`` in bytes, ``pairs`` of the proof, and ``min_gain``,
    the gain that an entry needs in the search (a fraction)."""

    store: Store
    sizes: Sequence[int] = SIZES
    pairs: int = 12
    min_gain: float = 0.05
    seed: int = 0
    guard: bool = True
    watch: Watcher = silent
    say: Say = lambda note: None
    budget_s: float | None = None
    """Machine seconds for all tables together."""
    commutative_only: bool = False
    """True if the tables may name algorithms that give wrong results with operations that do not
    commute, because the cluster's programs have no such operations."""
    multi_object: bool = False
    """True if the collectives with several objects on each node are compared, too."""


def find_tables(
    targets: Sequence[Target], operations: Sequence[str], terms: TableTerms
) -> CollectiveResult:
    """One part for each operation and target; the targets differ in their number of ranks,
    ascending.

    Raises UsageError for an operation without a table here, WorkError if the default fails,
    BudgetTooSmall if the budget does not allow the first table.
    """
    for operation in operations:
        if operation not in OPERATIONS:
            raise UsageError(
                f"tables for {operation!r} are not supported; expected one of "
                f"{', '.join(OPERATIONS)}",
                code="collectives.operation_unknown",
            )
    words = dialect(targets[0].library.family)
    # One machine lock for all tables, so that compared runs are close in time.
    with targets[-1].machine_lock(terms.say):
        parts, left_out = _parts(targets, operations, terms)
    library = targets[0].library
    return CollectiveResult(
        cluster=targets[0].cluster.name,
        machine=describe_machine().fingerprint,
        mpi={"name": library.family, "version": library.version},
        date=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S"),
        parts=tuple(parts),
        left_out=tuple(left_out),
        algorithms={operation: words.names(library, operation) for operation in operations},
        guarded=terms.guard,
        commutative_only=terms.commutative_only,
        mpi_choice=targets[0].choice_row,
    )


def _parts(
    targets: Sequence[Target], operations: Sequence[str], terms: TableTerms
) -> tuple[list[TablePart], list[str]]:
    """The parts within the budget, and the names of the others."""
    pairs = [(operation, target) for operation in operations for target in targets]
    parts: list[TablePart] = []
    left_s = terms.budget_s
    try:
        for operation, target in pairs:
            part, left_s = _part(operation, target, terms, left_s)
            parts.append(part)
    except BudgetSpent:
        if not parts:
            budget_text = asked_time(terms.budget_s or 0)
            raise BudgetTooSmall(
                f"the budget of {budget_text} was spent before the first table was proven.  Every "
                "run is stored: the same command with a larger --budget continues",
                code="budget.too_small",
            ) from None
    return parts, [f"{name} on {target.ranks} ranks" for name, target in pairs[len(parts) :]]


def _part(
    operation: str, target: Target, terms: TableTerms, left_s: float | None
) -> tuple[TablePart, float | None]:
    """One table within ``left_s`` machine seconds, and the seconds left."""
    words = dialect(target.library.family)
    space = _space(operation, target, terms)
    every = table_candidates(space)
    words_of_start = f"{operation} on {target.ranks} ranks: {len(every)} candidates"
    data = {"operation": operation, "ranks": target.ranks, "candidates": len(every)}
    terms.say(Note("collectives.begun", words_of_start, data))
    sizes = terms.sizes
    micro_target = target_for(target, operation, sizes)
    with _study(micro_target, search_space(space, sizes), {"sizes": list(sizes)}, terms) as on:
        machine = SizeMeasurement(
            on.evaluator, _budget(on.evaluator, left_s), operation, terms.seed
        )
        search = Tournament(
            every, sizes, machine.measure, terms.min_gain, leaves_sizes=words.leaves_sizes
        )
        search.run()
        left_s, launches = machine.budget.left_s, len(on.evaluator.history.entries)
        limit_s = machine.limit_s
    table = search.table()
    proven_table = ProvenTable((TableEntry(sizes[0], DEFAULT),), ())
    if any(entry.setting != DEFAULT for entry in table):
        if (fewest := fewest_pairs(sizes)) > terms.pairs:
            few = f"  {fewest} pairs instead of {terms.pairs}"
            few += ": with fewer pairs nothing can be proven at all sizes"
            terms.say(Note("collectives.pairs", few, {"pairs": fewest, "asked": terms.pairs}))
        rules = as_rules(words, space, operation, target.ranks, table)
        stem = f"{operation}-{target.ranks}"
        loads, setting = loading_space(words.loading(rules, target.library, folder(), stem))
        micro_target = target_for(target, operation, sorted({*sizes, *between(sizes)}))
        options = {"sizes": list(sizes), "pairs": terms.pairs}
        with _study(micro_target, loads, options, terms) as on:
            budget = _budget(on.evaluator, left_s)
            proven_table = prove_table(
                *(on.evaluator, budget, table, setting, sizes, terms.pairs),
                *(order_seed(on.study.hash, terms.seed), limit_s),
                terms.watch,
                words.leaves_sizes,
            )
            left_s, launches = budget.left_s, launches + len(on.evaluator.history.entries)
    better = sum(e.setting != DEFAULT for e in table)
    proven_count = sum(e.setting != DEFAULT for e in proven_table.entries)
    terms.say(
        Note(
            "collectives.measured",
            f"  measured {search.points} of {search.grid} points of the grid; {better} entries "
            f"found, {proven_count} {'proven' if terms.guard else LOOK_BETTER}",
            {
                "points": search.points,
                "grid": search.grid,
                "entries": better,
                "proven": proven_count,
            },
        )
    )
    for warning in proven_table.warnings:
        terms.say(warning)
    rivalry = None
    if terms.multi_object and operation in RIVAL_FORMS:
        rivalry, left_s, more = _rivals(
            operation, target, terms, proven_table.entries, left_s, limit_s
        )
        launches += more
    program = [*OWN_PYTHON, "-m", "runner.programs.micro", *micro_program(operation, sizes)]
    rules = as_rules(words, space, operation, target.ranks, proven_table.entries)
    part = TablePart(
        operation, target.ranks, tuple(rules), proven_table.evidence, search.points, search.grid,
        launches, tuple(program), rivalry,
    )  # fmt: skip
    return part, left_s


def _space(operation: str, target: Target, terms: TableTerms) -> Space:
    """The algorithms of one collective that a table may name."""
    words = dialect(target.library.family)
    space = words.space(target.library, operation, {**target.facts, "nodes": 1})
    return space if terms.commutative_only else for_any_operation(space)


def _rivals(
    operation: str,
    target: Target,
    terms: TableTerms,
    entries: Sequence[TableEntry],
    left_s: float | None,
    limit_s: float,
) -> tuple[Rivalry | None, float | None, int]:
    """The comparison with several objects, the seconds left, and its launches."""
    words = dialect(target.library.family)
    space = _space(operation, target, terms)
    table, loads = DEFAULT, Space(STRATEGY, ())
    if any(entry.setting != DEFAULT for entry in entries):
        rules = as_rules(words, space, operation, target.ranks, entries)
        stem = f"{operation}-{target.ranks}-proven"
        loads, table = loading_space(words.loading(rules, target.library, folder(), stem))
    forms = rival_settings(operation, target.ranks)
    both = dataclasses.replace(loads, parameters=(*loads.parameters, *rival_parameters(operation)))
    options = {"sizes": list(terms.sizes), "pairs": terms.pairs, "compared": "multi-object"}
    with _study(target_for(target, operation, terms.sizes), both, options, terms) as on:
        budget = _budget(on.evaluator, left_s)
        rivalry = compare_rivals(
            *(on.evaluator, budget, operation, entries, table, terms.sizes, forms, terms.pairs),
            *(order_seed(on.study.hash, terms.seed), limit_s, terms.watch),
        )
        left_s, launches = budget.left_s, len(on.evaluator.history.entries)
    if rivalry is None:
        message = "  the budget was spent before several objects were compared"
        terms.say(Note("budget.spent", message))
    else:
        wins = sum(row.winner == "mcoll" for row in rivalry.rows)
        result_text = (
            f"  several objects: faster than the library at {wins} of {len(terms.sizes)} sizes"
        )
        terms.say(
            Note("collectives.objects", result_text, {"won": wins, "sizes": len(terms.sizes)})
        )
    return rivalry, left_s, launches


def _study(
    target: Target, space: Space, options: dict[str, object], terms: TableTerms
) -> MeasuredStudy:
    """One study: the search of a table, or its proof."""
    key = study_key(target, space, STRATEGY, options, terms.seed, terms.guard)
    return MeasuredStudy(terms.store, key, target, space, terms.watch)


def _budget(evaluator: Evaluator, left_s: float | None) -> Budget:
    """A budget of ``left_s`` seconds beyond the runs already stored."""
    return Budget(evaluator.history, left_s).renewal()


def with_ranks(target: Target, ranks: Sequence[int]) -> list[Target]:
    """The target with each number of ranks, ascending."""
    return [dataclasses.replace(target, ranks=n) for n in sorted(set(ranks))]
