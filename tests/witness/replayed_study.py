"""A study whose run times were recorded in the dataset ``grid-node``; everything else is real.

Search, proof in rounds and recommendation are those of ``autotune search``; only the launch is
replaced by a draw from the recorded runs. The database then holds the study as if it was measured.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time

import numpy as np

from autotune.datasets import load
from autotune.datasets.replay import Landscape
from autotune.measurement.budget import SearchPlan
from autotune.space import DEFAULT
from autotune.store import AppInfo, MachineInfo, MpiInfo, OwnerProcess, StudyKey
from autotune.strategies.registry import create
from autotune.study.conclusion import (
    best_seen,
    count_runs,
    finalist_rows,
    judge_status,
    name_recommendation,
    round_rows,
)
from autotune.study.procedure import run_procedure
from autotune.study.search_result import Result
from autotune.study.simulation import SimulatedEvaluator
from autotune.study.study_status import SESSION
from autotune.study.study_warnings import study_warnings
from autotune.study.trial_store import StoredTrials

DATASET = "grid-node"


def replayed(store, cell_key: str, seed: int, whole: bool = True, strategy: str = "auto") -> str:
    """Store a study of a cell whose runs are drawn from the recorded ones; returns its hash."""
    data = load(DATASET)
    cell, card = data.cell(cell_key), data.card
    land = Landscape(data, cell_key)
    runs = data.runs(cell)
    default = runs[(runs["setting"] == 0) & (runs["state"] == "ok")]["value_s"].median()
    machine = card.machine
    key = StudyKey(
        app=AppInfo(
            cell.app,
            cell.app,
            hashlib.sha256(cell_key.encode()).hexdigest(),
            (),
            cell.input or None,
            None,
            None,
        ),
        machine=MachineInfo(
            machine.cores, machine.cpu_model, machine.memory_bytes, machine.kernel, "replay"
        ),
        mpi=MpiInfo(*card.mpi.split()),
        ranks=cell.ranks,
        cluster=cell.cluster,
        space_name=f"replay of {DATASET}/{cell_key}",
        space_hash=land.space.hash,
        strategy=strategy,
        seed=seed,
    )
    study = store.study(key)

    def seconds(setting, rng) -> float | str:
        drawn = land.draw(setting, rng)
        return drawn.ratio * default if drawn.state == "ok" else drawn.state

    class Stored(SimulatedEvaluator):
        """Stores every run, as the evaluator of a machine does."""

        def run(self, setting, phase, **place):
            entry = super().run(setting, phase, **place)
            record = dataclasses.replace(
                entry.record, host="replay", started_at=time.time(), cpu_s=0.0,
                foreign_cpu_s=0.0, foreign_limit_s=0.1, verified=True,
                stdout_tail=f"replayed from {DATASET}/{cell_key}\n",
            )  # fmt: skip
            trial = entry.trial if entry.trial is None else trials.ids[entry.trial]
            store.add_run(
                study.id, trial, phase, entry.block, entry.position, record,
                setting_key=setting.key, order=entry.order,
                launched={"mca": {name: str(value) for name, value in setting.items()}},
            )  # fmt: skip
            if not whole and entry.phase == "search" and len(trials.trials) > plan.trials // 2:
                raise Stop
            return entry

    class Stop(Exception):
        """The study is left as it is, in the middle."""

    plan = SearchPlan(trials=min(40, len(land.settings) - 1))
    session = {"trials": plan.trials, "budget_s": None, "max_runs": None}
    owner = dataclasses.asdict(OwnerProcess.current())
    store.store_document(study.id, f"{SESSION}1", session | {"owner": owner})
    evaluator = Stored(seconds, np.random.default_rng([41, seed]))
    trials = StoredTrials(store, study, land.space)
    search = create(strategy, land.space, seed=seed)
    try:
        answer = run_procedure(evaluator, trials, search, land.space, plan, seed)
    except Stop:
        return study.hash
    history = evaluator.history
    result = Result(
        "interrupted", DEFAULT, study.hash[:12],
        {"name": key.mpi.family, "version": key.mpi.version}, machine.fingerprint, cell.cluster,
        cell.app, cell.ranks, strategy, seed, ended_by=answer.ended_by,
        trials=len(trials.trials),
    )  # fmt: skip
    count_runs(result, history)
    best = answer.best
    result.best = best_seen(history, best.effective if best else None)
    result.status = judge_status(answer, history)
    result.finalists, result.rounds = finalist_rows(answer), round_rows(answer)
    result.warnings = study_warnings(history, trials.trials, answer)
    if answer.recommendation is not None:
        name_recommendation(result, answer.recommendation)
        result.mpirun = f"mpirun -n {cell.ranks} " + " ".join(
            f"--mca {n} {v}" for n, v in result.recommended.items()
        )
    plain = json.loads(json.dumps(result.to_json(), default=int))  # Counts of numpy.
    store.set_result(study.id, result.status, plain)
    return study.hash
