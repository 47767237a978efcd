"""The proof of a table, as the library loads it, against the default.

Unproven entries are removed; if a library needs an algorithm for every size, the whole table is
accepted or rejected.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autotune.collectives.measurement import at_size
from autotune.collectives.tournament import TableEntry
from autotune.errors import WorkError
from autotune.json_types import Number
from autotune.measurement.budget import Budget, BudgetSpent
from autotune.measurement.evaluator import Evaluator
from autotune.measurement.events import Watcher, silent
from autotune.measurement.run_history import CONFIRM, WARMUP, Figure
from autotune.notes import Note
from autotune.space import DEFAULT, Setting, Space
from autotune.space.parameter import Parameter
from autotune.stats import Decision, LookPlan, NoBlocks, looks_up_to
from autotune.study.objections import output
from autotune.study.proof import Blocks, Confirmation, decide, take_looks
from autotune.study.study_warnings import proof_warnings
from runner import files

PAIRS = 12
PROOF = f"{CONFIRM}:table"
"""Phase of the blocks in the run history."""
_TABLE_SPACE = "rules file"


@dataclass(frozen=True)
class SizeEvidence:
    """The table against the default at one size.

    ``gain`` is a fraction; ``lo`` and ``hi`` are the ends of an interval that holds at all sizes
    together with 95 %.  ``between``: the size lies between two sizes of the search.
    """

    size: int
    setting: str
    gain: Number
    lo: Number | None
    hi: Number | None
    verdict: str
    between: bool


@dataclass(frozen=True)
class ProvenTable:
    """The entries that are proven, the evidence at each size, and warnings about the machine."""

    entries: tuple[TableEntry, ...]
    evidence: tuple[SizeEvidence, ...]
    warnings: tuple[Note, ...] = ()


def between(sizes: Sequence[int]) -> list[int]:
    """A size halfway between each two sizes, a multiple of 8 but not a power of two."""
    return [(a + b) // 16 * 8 for a, b in itertools.pairwise(sizes) if b - a >= 32]


def proof_plan(sizes: int, pairs: int) -> LookPlan:
    """Looks at up to ``pairs`` pairs; alpha is split over all looks and sizes.

    There is no stop for futility and no smallest gain, because an entry is judged by its sizes
    together.
    """
    looks = looks_up_to(pairs)
    return LookPlan(looks=looks, finalists=sizes, min_gain=0.0, win_from=looks[0], futility=0.0)


def fewest_pairs(sizes: Sequence[int]) -> int:
    """The smallest number of pairs with which a gain can be proven at all sizes together."""
    every = len({*sizes, *between(sizes)})
    return next(n for n in itertools.count(6) if proof_plan(every, n).ranks[-1])


def at(entries: Sequence[TableEntry], size: int) -> Setting:
    """The setting of the table at one size; the default below its first entry."""
    return next((e.setting for e in reversed(entries) if e.size <= size), DEFAULT)


def prove_table(
    evaluator: Evaluator,
    budget: Budget,
    entries: Sequence[TableEntry],
    table: Setting,
    sizes: Sequence[int],
    pairs: int = PAIRS,
    seed: int = 0,
    limit_s: float | None = None,
    watch: Watcher = silent,
    leaves_sizes: bool = True,
) -> ProvenTable:
    """Prove a table: run the setting ``table`` (the entries as the library loads them) in blocks
    with the default.  Each run times all sizes and the sizes between them.

    An entry stays if it is proven faster at half of its sizes or more and slower at none.  Unless
    the table ``leaves_sizes`` to the library, all entries stay if one does and the table is slower
    nowhere.  Raises
    WorkError if the table does not run, BudgetSpent if the budget ends before the proof.
    """
    extra = between(sizes)
    every = sorted({*sizes, *extra})
    plan = proof_plan(len(every), max(pairs, fewest_pairs(sizes)))
    evaluator.budget = budget
    blocks = Blocks(evaluator, PROOF, [table], seed, limit_s, leads=True)
    if not blocks.complete(plan.looks[0] - 1, [table]):
        evaluator.run(DEFAULT, WARMUP)
    figures = {str(size): at_size(size) for size in every}
    own_sizes = [str(size) for size in every if at(entries, size) != DEFAULT]
    try:
        confirmation = confirm_figures(blocks, plan, figures, own_sizes, budget, watch)
    except NoBlocks:
        raise BudgetSpent("the budget is spent", code="budget.spent") from None
    _check_runs(blocks, table)
    _check_output(blocks, table)
    if confirmation.proof.cut_short:
        raise BudgetSpent("the budget is spent", code="budget.spent")
    rows = [
        _row(size, at(entries, size), confirmation.decisions[str(size)], extra) for size in every
    ]
    proven_entries = [_proven_entry(entry, entries, rows) for entry in entries]
    if not leaves_sizes:
        slower = any(row.verdict == "worse" for row in rows)
        stands = not slower and any(entry.setting != DEFAULT for entry in proven_entries)
        proven_entries = list(entries) if stands else [TableEntry(entries[0].size, DEFAULT)]
    return ProvenTable(
        _merge(proven_entries), tuple(rows), tuple(proof_warnings(confirmation.proof))
    )


def _check_runs(blocks: Blocks, table: Setting) -> None:
    """Raise WorkError if no run with the table is valid."""
    records = [
        e.record for e in blocks.evaluator.history.entries if e.key == table.key and e.counts
    ]
    if records and not any(record.valid for record in records):
        raise WorkError(
            f"the micro-benchmark does not run with the table found: {records[0].state}: "
            f"{records[0].reason}",
            code="collectives.table_fails",
        )


def _check_output(blocks: Blocks, table: Setting) -> None:
    """Raise WorkError if the table changes the results that the micro-benchmark prints."""
    stops = [f.note for f in output(blocks.evaluator.history, table, DEFAULT) if f.stops]
    if stops:
        raise WorkError(
            f"the table is not proven: {stops[0].words}. An algorithm of the table gives other "
            "results than the default; leave it out of the space, and report it to the makers of "
            "the library",
            code="result.output_differs",
        )


def _row(size: int, setting: Setting, decision: Decision, extra: Sequence[int]) -> SizeEvidence:
    comparison = decision.comparison
    return SizeEvidence(
        size,
        setting.key,
        comparison.gain,
        comparison.lo if comparison.interval else None,
        comparison.hi if comparison.interval else None,
        _verdict(comparison.lo, comparison.hi) if comparison.interval else "open",
        size in extra,
    )


def _verdict(low: float, high: float) -> str:
    return "better" if low > 0 else "worse" if high < 0 else "open"


def _proven_entry(
    entry: TableEntry, entries: Sequence[TableEntry], rows: Sequence[SizeEvidence]
) -> TableEntry:
    later_sizes = [e.size for e in entries if e.size > entry.size]
    end = min(later_sizes) if later_sizes else float("inf")
    own = [row for row in rows if entry.size <= row.size < end]
    better = sum(row.verdict == "better" for row in own)
    worse = any(row.verdict == "worse" for row in own)
    if entry.setting != DEFAULT and (worse or 2 * better < len(own)):
        return TableEntry(entry.size, DEFAULT)
    return entry


def _merge(entries: Sequence[TableEntry]) -> tuple[TableEntry, ...]:
    """The entries without those that repeat the setting of the entry before."""
    merged_entries: list[TableEntry] = []
    for entry in entries:
        if not merged_entries or merged_entries[-1].setting != entry.setting:
            merged_entries.append(entry)
    return tuple(merged_entries)


def folder() -> Path:
    """Folder of the rules files while they are proven."""
    return files.cache("collectives")


def loading_space(parameters: Sequence[Parameter]) -> tuple[Space, Setting]:
    """The space of the parameters with which a launch obeys the table, and its only setting."""
    setting = Setting({parameter.name: parameter.levels[0] for parameter in parameters})
    return Space(_TABLE_SPACE, tuple(parameters)), setting


@dataclass
class FigureProof:
    """One setting against the reference by several figures of its runs, each with its decision.

    ``proof`` describes the measurement of the blocks; it has no decision itself.
    """

    proof: Confirmation
    decisions: dict[str, Decision] = field(default_factory=dict)


def confirm_figures(
    blocks: Blocks,
    plan: LookPlan,
    figures: Mapping[str, Figure],
    decisive: Collection[str],
    budget: Budget,
    watch: Watcher = silent,
) -> FigureProof:
    """Prove like :func:`confirm_blocks`, but several figures of one setting.

    ``plan`` shares its alpha among as many finalists as there are figures. The blocks end as soon
    as all ``decisive`` figures are decided. Raises ValueError if the plan has another number of
    finalists, or if the blocks have several settings.
    """
    if plan.finalists != len(figures) or len(blocks.settings) != 1:
        raise ValueError(f"{len(figures)} figures of {len(blocks.settings)} settings in {plan}")
    found = FigureProof(Confirmation(blocks, list(blocks.settings)))

    def judge(live: list[Setting], count: int) -> list[Setting]:
        for name, figure in figures.items():
            found.decisions[name] = decide(plan, blocks, live[0], count, figure)
        return [] if all(found.decisions[name].stop for name in decisive) else live

    take_looks(found.proof, plan, budget, watch, judge)
    return found
