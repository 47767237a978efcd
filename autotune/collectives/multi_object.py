"""The library against collectives with several senders on each node
(runner.runtimes.intranode.mcoll).

Tables cannot select these, because a program must call them. The same micro-benchmark times the
default, the library's proven table and the forms of mcoll, interleaved, at all sizes. The first
blocks choose a form for each size; the others compare it with the library's best.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from autotune.collectives.measurement import at_size
from autotune.collectives.switch_points import LIBRARY, switch_points
from autotune.collectives.table_proof import at, proof_plan
from autotune.collectives.tournament import TableEntry
from autotune.json_types import Number
from autotune.measurement.budget import Budget, BudgetSpent
from autotune.measurement.evaluator import Evaluator
from autotune.measurement.events import PhaseStarted, Watcher, silent
from autotune.measurement.run_history import CONFIRM, SEARCH, WARMUP
from autotune.space import DEFAULT, Setting
from autotune.space.parameter import Parameter
from autotune.stats import Decision, NoBlocks
from autotune.study.proof import Blocks, decide_pairs, measure_blocks

FORMS = {
    "allgather": ("bruck", "ring", "rd"),
    "allreduce": ("bruck", "scatter-bruck", "ring", "rd"),
}
"""Collectives in this form that the micro-benchmark has, and their algorithms."""
FORM, OBJECTS = "mcoll", "mcoll_objects"
"""Parameters of the micro-benchmark."""
CHOICE = 4
"""Blocks that choose a form for each size."""


@dataclass(frozen=True)
class RivalSize:
    """One size: medians in microseconds, and the library's best against the chosen form.

    ``ratio``: time of the library's best / time of mcoll, with an interval ``lo``, ``hi`` that
    holds at all sizes together with 95 %.  ``winner``: ``"mcoll"``, ``"library"``, or ``""`` if
    that is not decided.  ``mcoll_us`` is None if no run of the form was valid.
    """

    size: int
    default_us: Number
    library_us: Number
    form: str
    mcoll_us: Number | None
    ratio: Number
    lo: Number | None
    hi: Number | None
    winner: str


@dataclass(frozen=True)
class Rivalry:
    """The comparison at all sizes, with its number of blocks."""

    blocks: int
    rows: tuple[RivalSize, ...]
    switches: dict[str, int] = field(default_factory=dict)
    """What to publish, so that the library takes the fastest forms (:mod:`.switch_points`)."""


def rival_parameters(operation: str) -> tuple[Parameter, ...]:
    """The parameters of a launch that times mcoll."""
    return Parameter(FORM, FORMS[operation], "arg"), Parameter(OBJECTS, (1,), "arg")


def rival_settings(operation: str, ranks: int) -> list[Setting]:
    """The forms, each with all ranks of a node as senders, and with one.

    Recursive doubling is left out if the ranks, and so the nodes, are not a power of two.
    """
    forms = [form for form in FORMS[operation] if form != "rd" or ranks & (ranks - 1) == 0]
    every = [Setting({FORM: form}) for form in forms]
    return every + [Setting({FORM: form, OBJECTS: 1}) for form in forms]


def form_words(setting: Setting) -> str:
    """A form for readers: ``bruck`` or ``bruck k=1``."""
    return str(setting[FORM]) + (" k=1" if OBJECTS in setting else "")


def compare_rivals(
    evaluator: Evaluator,
    budget: Budget,
    operation: str,
    entries: Sequence[TableEntry],
    table: Setting,
    sizes: Sequence[int],
    forms: list[Setting],
    pairs: int,
    seed: int,
    limit_s: float | None,
    watch: Watcher = silent,
) -> Rivalry | None:
    """Choose and compare; None if the budget ends before the first look.

    ``table``: the setting that loads the proven ``entries``; the default if nothing is proven.
    ``forms``: those of :func:`rival_settings`.
    Raises WorkError if the default does not run.
    """
    evaluator.budget = budget
    proven_tables = [table] if table != DEFAULT else []
    every = [*proven_tables, *forms]
    choosing = Blocks(evaluator, f"{SEARCH}:rivals", every, seed, limit_s)
    if not choosing.complete(CHOICE - 1, every):
        try:
            evaluator.run(DEFAULT, WARMUP)
        except BudgetSpent:
            return None
    if measure_blocks(choosing, CHOICE, every, budget, reach=False) < CHOICE:
        return None
    ratios = {setting: [_ratio(choosing, setting, size) for size in sizes] for setting in every}
    best_form = {
        size: min((ratios[s][n], s.key, s) for s in forms)[2] for n, size in enumerate(sizes)
    }
    live = [*proven_tables, *dict.fromkeys(best_form.values())]
    plan = proof_plan(len(sizes), max(pairs, _fewest(len(sizes))))
    blocks = Blocks(evaluator, f"{CONFIRM}:rivals", live, seed, limit_s, leads=True)
    watch(PhaseStarted("confirm", "comparing with mcoll", blocks.runs(plan.looks[-1], len(live))))
    count, decisions = 0, dict[int, Decision]()
    for look in plan.looks:
        block_count = measure_blocks(blocks, look, live, budget, reach=count > 0)
        if block_count < look:
            break
        count = look
        try:
            for size in sizes:
                own = table if at(entries, size) != DEFAULT else DEFAULT
                pairs_at_size = blocks.pairs(best_form[size], own, count, at_size(size))
                decisions[size] = decide_pairs(plan, pairs_at_size)
        except NoBlocks:
            break
        if all(decision.stop for decision in decisions.values()):
            break
    if len(decisions) < len(sizes):
        return None
    rows = [
        _row(blocks, size, best_form[size], table if at(entries, size) != DEFAULT else DEFAULT,
             decisions[size], count)
        for size in sizes
    ]  # fmt: skip
    times = {(str(s[FORM]), int(s.get(OBJECTS, 0))): ratios[s] for s in forms}
    ones = [1.0] * len(sizes)
    times[LIBRARY, 0] = [min(pair) for pair in zip(ones, ratios.get(table, ones), strict=True)]
    return Rivalry(count, tuple(rows), switch_points(operation, sizes, times))


def _fewest(sizes: int) -> int:
    """The smallest number of pairs that can decide at all sizes together."""
    return next(n for n in itertools.count(6) if proof_plan(sizes, n).ranks[-1])


def _ratio(blocks: Blocks, setting: Setting, size: int) -> float:
    """The median ratio to the default; infinite if it failed."""
    return blocks.pairs(setting, first=CHOICE, figure=at_size(size)).median_ratio()


def _row(
    blocks: Blocks, size: int, form: Setting, own: Setting, decision: Decision, count: int
) -> RivalSize:
    comparison, interval = decision.comparison, decision.comparison.interval
    low, high = comparison.lo, comparison.hi
    winner = ""
    if interval:
        winner = "mcoll" if low > 0 else "library" if high < 0 else ""
    library = _median(blocks, size, own, count)
    default = _median(blocks, size, DEFAULT, count)
    assert library is not None
    assert default is not None
    return RivalSize(
        size,
        default,
        library,
        form_words(form),
        _median(blocks, size, form, count),
        1 + comparison.gain,
        1 + low if interval else None,
        1 + high if interval and math.isfinite(high) else None,
        winner,
    )


def _median(blocks: Blocks, size: int, setting: Setting, count: int) -> float | None:
    """Median microseconds of the valid runs; None if there are none."""
    figure = at_size(size)
    entries = [blocks.block(n)[setting.key] for n in range(count)]
    values = [figure(entry.record) for entry in entries if entry.record.valid]
    return statistics.median(values) if values else None
