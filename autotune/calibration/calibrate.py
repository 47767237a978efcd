"""The calibration of a cluster: one response table for each number of ranks."""

from __future__ import annotations

import datetime
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from autotune.calibration.candidate_levels import algorithm_settings, level_settings
from autotune.calibration.launch_rounds import CalibrationRounds
from autotune.calibration.points import (
    COLLECTIVES,
    MESSAGES,
    Point,
    PointMeasurement,
    by_point,
    option_text,
    points_of,
    probe_space,
    probe_target,
)
from autotune.calibration.response import (
    LEAST_NOISE,
    Calibration,
    Level,
    ResponseTable,
    pool_logs,
)
from autotune.measurement.budget import Budget, BudgetSpent, BudgetTooSmall
from autotune.measurement.events import Watcher, silent
from autotune.measurement.measured_study import MeasuredStudy
from autotune.measurement.run_history import RunHistory
from autotune.measurement.study_key import study_key
from autotune.notes import Note, Say
from autotune.stats.blocks import NEAREST
from autotune.store import Store
from autotune.targets.target import Target
from autotune.wording import asked_time, count
from runner.machine import describe_machine

STRATEGY = "calibrate"
"""The strategy in the keys of the studies."""


@dataclass(frozen=True)
class CalibrationTerms:
    """The terms of the measurement. ``budget_s``: machine seconds for all tables together;
    ``space``: the name of the space, None for that of a search."""

    store: Store
    space: str | None = None
    seed: int = 0
    guard: bool = True
    watch: Watcher = silent
    say: Say = lambda note: None
    budget_s: float | None = None


def calibrate(targets: Sequence[Target], terms: CalibrationTerms) -> Calibration:
    """Measure one table for each target; the targets differ in their number of ranks.

    Raises WorkError if the default fails, BudgetTooSmall if the budget does not allow the first
    table.  Tables that the budget does not allow are left out.
    """
    tables: list[ResponseTable] = []
    launches, seconds, points, grid, last = 0, 0.0, 0, 0, 0.0
    left_s = terms.budget_s
    # One machine lock for all tables, so that they are of one time.
    with targets[-1].machine_lock(terms.say):
        for target in targets:
            try:
                table, history, rounds, left_s = _table(target, terms, left_s)
            except BudgetSpent as error:
                _report_spent_budget(target, tables, terms, error)
                break
            tables.append(table)
            launches, seconds = launches + len(history.entries), seconds + history.launched_s
            points, grid = points + rounds.points, grid + rounds.grid
            last = max(last, *(entry.record.started_at or 0.0 for entry in history.entries))
    library = targets[0].library
    return Calibration(
        cluster=targets[0].cluster.name,
        machine=describe_machine().fingerprint,
        mpi={"name": library.family, "version": library.version},
        # The time of the last launch: a repeated command measures nothing and adds no time.
        date=datetime.datetime.fromtimestamp(last, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S"),
        tables=tuple(tables),
        launches=launches,
        seconds=round(seconds, 1),
        points=points,
        grid=grid,
        guarded=terms.guard,
        mpi_choice=targets[0].choice_row,
    )


def _report_spent_budget(
    target: Target, tables: Sequence[ResponseTable], terms: CalibrationTerms, error: BudgetSpent
) -> None:
    if not tables:
        raise BudgetTooSmall(
            f"the budget of {asked_time(terms.budget_s or 0)} was spent before the first table was "
            "complete.  Every run is stored: the same command with a larger --budget continues",
            code="budget.too_small",
        ) from error
    terms.say(
        Note(
            "budget.spent",
            f"the budget was spent before the table of {target.ranks} ranks: it is left out.  "
            "Every run is stored: the same command with a larger --budget continues",
            {"ranks": target.ranks},
        )
    )


def _table(
    target: Target, terms: CalibrationTerms, left_s: float | None
) -> tuple[ResponseTable, RunHistory, CalibrationRounds, float | None]:
    """One table within ``left_s`` machine seconds, and the seconds left."""
    space = target.space(terms.space)
    levels = level_settings(space)
    algorithms = {name: algorithm_settings(target, space, name) for name in COLLECTIVES}
    every = points_of((*MESSAGES, *COLLECTIVES))
    nodes = int(target.facts.get("nodes", 1))
    several = sum(map(len, algorithms.values()))
    terms.say(
        Note(
            "calibration.begun",
            f"{count(target.ranks, 'rank')} on {count(nodes, 'node')}: {len(levels)} levels, "
            f"{several} algorithms, {len(every)} points",
            {
                "ranks": target.ranks,
                "nodes": nodes,
                "levels": len(levels),
                "algorithms": several,
                "points": len(every),
            },
        )
    )
    probe, probe_grid = probe_target(target, every), probe_space(space, every)
    options = {"points": option_text(every)}
    key = study_key(probe, probe_grid, STRATEGY, options, terms.seed, terms.guard)
    with MeasuredStudy(terms.store, key, probe, probe_grid, terms.watch) as on:
        history = on.evaluator.history
        budget = Budget(history, left_s).renewal()
        machine = PointMeasurement(on.evaluator, budget, STRATEGY, terms.seed)
        rounds = CalibrationRounds(space, levels, algorithms)
        running = rounds.run()
        jobs = next(running, None)
        while jobs is not None:
            ratios = machine.measure(jobs)
            # As of this round: a continued command must decide like the first one.
            rounds.scatter.update(default_scatter(machine.round_history))
            try:
                jobs = running.send(ratios)
            except StopIteration:
                jobs = None
        table = response_table(target.ranks, nodes, int(target.facts["cores"]), history, rounds)
    terms.say(
        Note(
            "calibration.measured",
            f"  {len(history.entries)} launches; measured {rounds.points} of "
            f"{rounds.grid} points of a full grid ({rounds.points / max(rounds.grid, 1):.0%})",
            {"launches": len(history.entries), "points": rounds.points, "grid": rounds.grid},
        )
    )
    return table, history, rounds, budget.left_s


def default_scatter(history: RunHistory) -> dict[Point, float]:
    """The standard deviation of one run's log ratio at each point, from neighbouring default
    runs."""
    runs = [by_point(record) for record in history.default_records()]
    scatter = {}
    for point in runs[0] if runs else ():
        logs = [math.log(run[point]) for run in runs if point in run]
        steps = [abs(after - before) for before, after in pairwise(logs)]
        # The median step is robust against the few steps at which the machine changed.
        scatter[point] = statistics.median(steps) / 0.954 if steps else LEAST_NOISE
    return scatter


def response_table(
    ranks: int, nodes: int, cores: int, history: RunHistory, rounds: CalibrationRounds
) -> ResponseTable:
    """The table from the runs of the default in ``history`` and the ratios of the rounds."""
    scatter = default_scatter(history)
    runs = [by_point(record) for record in history.default_records()]
    default: dict[Point, Level] = {
        point: Level(
            statistics.median(run[point] for run in runs),
            max(scatter[point] / math.sqrt(len(runs)), LEAST_NOISE),
        )
        for point in scatter
    }
    responses = {
        setting: {
            point: pool_logs(own, scatter[point], scatter[point] / math.sqrt(2 * NEAREST))
            for point, own in logs.items()
        }
        for setting, logs in rounds.logs.items()
    }
    return ResponseTable(ranks, nodes, cores, default, responses)
