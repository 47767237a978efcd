"""Search and proof of a table on launches whose times are drawn: resumption, false entries."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from autotune.collectives.measurement import SIZES, SizeMeasurement
from autotune.collectives.table_proof import ProvenTable, between, proof_plan, prove_table
from autotune.collectives.tournament import TableEntry, Tournament
from autotune.errors import WorkError
from autotune.measurement.budget import Budget, BudgetSpent
from autotune.measurement.run_history import RunHistory
from autotune.space import DEFAULT, Setting
from autotune.study.simulation import SimulatedEvaluator
from runner.mpi.openmpi.rules import FILE
from runner.types import PrintedLines, ReadBack, RunRecord
from tests.case_table import case_table
from tests.refusals import refused

ALL = (64, 1024, 16384, 262144)
EVERY = sorted({*ALL, *between(ALL)})
TABLE = Setting({FILE: "t.rules"})
CHAIN = Setting({"algorithm": 2})
ENTRIES = [TableEntry(64, DEFAULT), TableEntry(1024, CHAIN)]
Speed = Callable[[Setting, int], float]


class Timed(SimulatedEvaluator):
    """Prints microseconds at each size that a setting asks for; ``speed`` is T / T_default."""

    def __init__(self, speed: Speed, seed: int, noise: float = 0.03) -> None:
        super().__init__(lambda setting, rng: 1.0, np.random.default_rng(seed))
        self.speed = speed
        self.noise = noise
        self.machine: Callable[[int], float] = lambda order: 1.0

    def _record(self, setting: Setting, timeout_s: float | None) -> RunRecord:
        asked = setting.get(SIZES)
        sizes = EVERY if asked is None else [int(word) for word in str(asked).split(",")]
        rows: list[dict[str, Any]] = []
        for size in sizes:
            factor = self.speed(setting, size)
            if factor == np.inf:
                return RunRecord(state="failed", reason="no such algorithm", wall_s=0.1)
            us = factor * self.machine(self.history.next_order) * (1 + size / 1000)
            rows.append({"size": size, "us": us * float(self.rng.lognormal(0, self.noise))})
        total = sum(row["us"] for row in rows) * 1e-6
        return RunRecord(state="ok", wall_s=0.5, metric_s=total, extra={"sizes": rows})


def proven(evaluator: Timed, pairs: int = 40, budget_s: float | None = None) -> ProvenTable:
    budget = Budget(evaluator.history, budget_s).renewal()
    return prove_table(evaluator, budget, ENTRIES, TABLE, ALL, pairs, seed=1, limit_s=20.0)


def faster(gain: float) -> Speed:
    return lambda setting, size: 1 / (1 + gain) if setting and size >= 1024 else 1.0


def test_a_table_that_is_faster_is_proven_and_ends_early() -> None:
    evaluator = Timed(faster(0.3), 0)
    found = proven(evaluator)
    assert list(found.entries) == ENTRIES
    assert {row.size: row.verdict for row in found.evidence if row.size >= 1024} == dict.fromkeys(
        (s for s in EVERY if s >= 1024), "better"
    )
    runs = evaluator.history.confirmation_runs
    assert runs < 2 * 40
    assert evaluator.history.search_runs == 1  # It warms up.
    assert [row.between for row in found.evidence] == [size not in ALL for size in EVERY]


def test_a_table_that_changes_results_is_refused() -> None:
    class Printing(Timed):
        def _record(self, setting: Setting, timeout_s: float | None) -> RunRecord:
            record = super()._record(setting, timeout_s)
            record.printed = PrintedLines((f"sum {2 if setting else 1}",))
            return record

    with pytest.raises(WorkError) as error:
        proven(Printing(faster(0.3), 0))
    assert error.value.code == "result.output_differs"


def test_false_entries_are_rare() -> None:
    """Two errors in forty are no news at 5 % for all sizes and looks together; five are."""
    false = [proven(Timed(faster(0.0), seed)) for seed in range(40)]
    assert sum(any(r.verdict != "open" for r in found.evidence) for found in false) <= 4
    assert all(found.entries == (TableEntry(64, DEFAULT),) for found in false)


def whole(speed: Speed) -> tuple[TableEntry, ...]:
    """What stays of a table that names an algorithm for every size."""
    evaluator, named = Timed(speed, 0), Setting({"algorithm": 7})
    entries = [TableEntry(64, named), TableEntry(1024, CHAIN)]
    budget = Budget(evaluator.history)
    given = (evaluator, budget, entries, TABLE, ALL, 40)
    return prove_table(*given, seed=1, limit_s=20.0, leaves_sizes=False).entries


def test_a_table_without_gaps_stands_or_falls_as_a_whole() -> None:
    """Sizes that are neither faster nor slower stay: no rule can leave them to the library."""
    assert len(whole(faster(0.3))) == 2
    assert whole(faster(0.0)) == (TableEntry(64, DEFAULT),)
    slower = faster(0.3)
    assert whole(lambda s, size: 1.4 if s and size < 1024 else slower(s, size)) == (
        TableEntry(64, DEFAULT),
    )


def test_slower_at_one_size_is_enough_to_leave_it_out() -> None:
    def speed(setting: Setting, size: int) -> float:
        return 1.0 if not setting else 1.4 if size == 16384 else 0.7

    assert proven(Timed(speed, 0)).entries == (TableEntry(64, DEFAULT),)


def test_blocks_at_another_speed_of_the_machine_are_measured_again() -> None:
    evaluator = Timed(faster(0.3), 0)
    evaluator.machine = lambda order: 1.0 if order < 60 else 2.0
    found = prove_table(
        evaluator, Budget(evaluator.history), ENTRIES, TABLE, ALL, 90, seed=1, limit_s=20.0
    )  # fmt: skip
    slow = Timed(faster(0.02), 0)
    slow.machine = lambda order: 1.5 if 40 <= order < 46 else 1.0
    again = proven(slow)
    assert any(note.code == "machine.drift" for note in again.warnings)
    assert {entry.phase for entry in slow.history.entries} >= {"confirm:table:again"}  # data
    assert list(found.entries) == ENTRIES


def test_an_interrupted_proof_goes_on_where_it_was() -> None:
    whole = Timed(faster(0.02), 3)
    expected = proven(whole)
    cut = Timed(faster(0.02), 3)
    with pytest.raises(BudgetSpent):
        proven(cut, budget_s=0.5 * 30)
    made = len(cut.history.entries)
    cut.history = RunHistory.of(json_again(cut.history))
    found = proven(cut)
    assert len(cut.history.entries) > made
    assert len(found.evidence) == len(expected.evidence)
    runs = len(cut.history.entries)
    assert proven(cut) == found
    assert len(cut.history.entries) == runs


def json_again(history: RunHistory) -> list[Any]:
    for entry in history.entries:
        entry.record.extra = json.loads(json.dumps(entry.record.extra))
    return history.entries


def test_a_table_that_does_not_run_is_named() -> None:
    broken = Timed(lambda setting, size: np.inf if setting else 1.0, 0)
    with refused(WorkError, "collectives.table_fails"):
        proven(broken)


def named(number: int) -> Setting:
    return Setting({"algorithm": number})


def curves(setting: Setting, size: int) -> float:
    """Candidate 3 fails; 1 is best above, 2 below."""
    number = setting.get("algorithm")
    if number == 3:
        return np.inf
    best = 2 if size < 10_000 else 1
    return 1.0 if number is None else 0.6 if number == best else 1.5


def searched(evaluator: Timed, budget_s: float | None = None) -> tuple[Tournament, SizeMeasurement]:
    machine = SizeMeasurement(
        evaluator, Budget(evaluator.history, budget_s).renewal(), "bcast", seed=4
    )
    search = Tournament([named(n) for n in range(1, 8)], ALL, machine.measure)
    search.run()
    return search, machine


class Idle(Timed):
    """A library whose algorithms do nothing, for example because a rules file is in force."""

    def _record(self, setting: Setting, timeout_s: float | None) -> RunRecord:
        record = super()._record(setting, timeout_s)
        record.read_back = {n: ReadBack("inactive", str(setting[n])) for n in setting if n != SIZES}
        return record


def test_algorithms_that_do_nothing_are_not_compared() -> None:
    with pytest.raises(WorkError) as caught:
        searched(Idle(faster(0.0), 0))
    assert caught.value.code == "collectives.inactive"


def test_the_search_sees_runs_against_the_default_around_them() -> None:
    evaluator = Timed(curves, 0)
    evaluator.machine = lambda order: 1.0 + order / 20
    search, _ = searched(evaluator)
    assert search.table() == [TableEntry(64, named(2)), TableEntry(16384, named(1))]
    assert search.ratio(named(1), 262144) == pytest.approx(0.6, rel=0.1)
    kinds = [entry.kind for entry in evaluator.history.entries]
    assert kinds[0] == "warmup"
    gaps = "".join("d" if kind == "default" else "s" for kind in kinds).split("d")
    assert max(map(len, gaps)) <= 5
    assert evaluator.history.confirmation_runs == 0


def test_an_interrupted_search_goes_on_where_it_was() -> None:
    expected = searched(Timed(curves, 5))[0]
    cut = Timed(curves, 5)
    with pytest.raises(BudgetSpent):
        searched(cut, budget_s=6.0)
    before = [entry.key for entry in cut.history.entries]
    search, _ = searched(cut)
    assert [entry.key for entry in cut.history.entries][: len(before)] == before
    first = [e.key for e in cut.history.entries if e.phase == "search:0"]
    assert len(first) == len(set(first)) == 7
    assert search.table() == expected.table()
    runs = len(cut.history.entries)
    again, _ = searched(cut)
    assert len(cut.history.entries) == runs
    assert again.ratios_by_setting == search.ratios_by_setting


@case_table("sizes", [1, 4, 35])
def test_alpha_is_for_all_sizes_and_looks_together(sizes: int) -> None:
    plan = proof_plan(sizes, 60)
    assert plan.looks == (8, 12, 18, 27, 40, 60)
    assert (plan.alpha, plan.finalists) == (0.05, sizes)
    assert 1 - plan.level <= 0.05 / sizes + 1e-12
