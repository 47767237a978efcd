"""Runs that the guard rejects: the machine's fault or the setting's."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from autotune.config.app import App
from autotune.measurement.budget import Budget, BudgetSpent, SearchPlan
from autotune.measurement.evaluator import MachineBusy, MachineEvaluator
from autotune.measurement.events import Event, Waiting
from autotune.measurement.run_history import REJECTION_PREFIX, HistoryEntry, RunHistory
from autotune.space import DEFAULT, Setting, Space
from autotune.study.conclusion import judge_status
from autotune.study.procedure import run_procedure
from autotune.study.recommendation import disturbing_settings
from autotune.study.simulation import MemoryTrialStore, SimulatedEvaluator
from autotune.study.study_warnings import proof_warnings, rejection_rows
from autotune.targets import jobs
from runner.guard import QuietWait
from runner.mpi.library import Library
from runner.types import COMPILING, LaunchSpec, RunRecord
from tests.other_jobs import other_jobs
from tests.refusals import refused
from tests.study.conftest import ListStrategy, evaluator

FAST = Setting({"eager": 8})


class Launches:
    """Stands for launch and store: what is tested is what the evaluator makes of the records."""

    def __init__(self, rejected: Callable[[LaunchSpec], bool]) -> None:
        self.objective, self.app = None, App(name="launches", command=("true",))
        self.cwd, self.program, self.before, self.fresh_copy = os.curdir, ("true",), (), False
        self.compiles_s = 0.0
        """Seconds in which the program of FAST compiles what is not stored yet."""
        self.keeps = True
        self.rejected = rejected
        self.stored: list[str] = []
        self.limits: list[float | None] = []
        self.judged_cpus = None

    def run(self, spec: LaunchSpec) -> RunRecord:
        self.limits.append(spec.timeout_s)
        if self.rejected(spec):
            return RunRecord(state="foreign_load", reason="1.2 s by others", wall_s=1.0)
        if self.compiles_s and spec.program == (FAST.key,):
            said = f"{COMPILING}regions; the code is kept"
            if spec.timeout_s is not None and spec.timeout_s < self.compiles_s:
                return RunRecord(state="timeout", wall_s=spec.timeout_s, stderr_tail=said)
            took, self.compiles_s = self.compiles_s, 0.0 if self.keeps else self.compiles_s
            return RunRecord(state="ok", wall_s=took, stderr_tail=said)
        return RunRecord(state="ok", wall_s=1.0)

    def add_run(self, *args: Any, record: RunRecord, **more: Any) -> None:
        self.stored.append(record.state)

    def store_document(self, study_id: int, name: str, document: Any) -> None:
        pass

    def of_same_command(self, study_id: int) -> list[int]:
        return []

    def spec(self, space: Space, setting: Setting, timeout_s: float | None = None) -> LaunchSpec:
        return LaunchSpec(program=(setting.key,), ranks=1, timeout_s=timeout_s)


@pytest.fixture
def machine(space: Space) -> Callable[[Callable[[LaunchSpec], bool]], MachineEvaluator]:
    def make(rejected: Callable[[LaunchSpec], bool], quiet: bool = False) -> MachineEvaluator:
        fake: Any = Launches(rejected)
        waits = QuietWait(1.0, quiet, 0.0)
        return MachineEvaluator(
            fake, fake, 1, fake, space, RunHistory(), quiet=lambda timeout_s, *, quiet_s: waits
        )

    return make


@pytest.mark.parametrize(("limit", "runs"), [(30.0, ["ok", "ok"]), (3.0, ["timeout", "ok", "ok"])])
def test_a_run_that_compiles_is_a_warm_up(machine: Any, limit: float, runs: list[str]) -> None:
    quiet = machine(lambda spec: False)
    quiet.runner.compiles_s = 20.0
    entry = quiet.run(FAST, "search", block=3, timeout_s=limit)
    assert (entry.record.state, entry.record.wall_s, entry.block) == ("ok", 1.0, 3)
    assert quiet.store.stored == runs
    assert quiet.runner.limits == [limit, *([None, limit] if len(runs) == 3 else [limit])]
    phases = [(e.phase, e.counts) for e in quiet.history.entries]
    assert phases == [*[("warmup", False)] * (len(runs) - 1), ("search", True)]


def test_a_program_that_compiles_in_every_run_is_measured_with_it(machine: Any) -> None:
    quiet = machine(lambda spec: False)
    quiet.runner.compiles_s, quiet.runner.keeps = 20.0, False
    entry = quiet.run(FAST, "search", timeout_s=3.0)
    assert (entry.phase, entry.record.state) == ("search", "timeout")
    assert entry.counts
    assert len(quiet.store.stored) == 4


def test_a_machine_that_disturbs_everything_is_too_busy(machine: Any) -> None:
    busy = machine(lambda spec: True)
    with refused(MachineBusy, "machine.busy"):
        busy.run(FAST, "search")
    # Four waits in vain, then the default tells that it is the machine.
    assert busy.store.stored == ["foreign_load"] * 5
    assert busy.history.rejections() == {FAST.key: (4, 4), DEFAULT.key: (1, 1)}


@pytest.mark.mpi
def test_a_job_in_the_way_is_named(
    machine: Any, library: Library, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "MOST", 1000)
    line = (library.launcher, "-n", "1", "PROGRAM")
    with (
        other_jobs(library, work, [line]) as [pid],
        refused(MachineBusy, "machine.busy") as told,
    ):
        machine(lambda spec: True).run(DEFAULT, "search")
    assert f"pid {pid}," in str(told.value)
    assert re.search(r"cluster split \d", str(told.value))


def test_rejected_runs_are_no_way_around_a_budget(machine: Any) -> None:
    busy = machine(lambda spec: True, quiet=True)
    busy.budget = Budget(busy.history, seconds=4.5)
    told: list[Event] = []
    busy.watch = told.append
    with pytest.raises(BudgetSpent):
        busy.run(DEFAULT, "warmup", timeout_s=4.5)
    assert busy.store.stored == ["foreign_load"] * 5
    # Nothing is waited for that cannot be started.
    assert sum(isinstance(event, Waiting) for event in told) == 4
    # No default is known yet: a run may take what is left, not the whole.
    assert busy.runner.limits == [4.5, 3.5, 2.5, 1.5, 0.5]


def test_bursts_are_outlasted_longer_than_work_without_a_pause(machine: Any) -> None:
    left = [15]

    def first_fifteen(spec: LaunchSpec) -> bool:
        left[0] -= 1
        return left[0] >= 0

    bursts = machine(first_fifteen, quiet=True)
    assert bursts.run(FAST, "search").record.valid
    assert len(bursts.store.stored) == 16
    with refused(MachineBusy, "machine.busy"):
        machine(lambda spec: True, quiet=True).run(DEFAULT, "search")


def test_a_setting_that_disturbs_itself_fails_and_the_study_goes_on(machine: Any) -> None:
    own = machine(lambda spec: spec.program == (FAST.key,))
    entry = own.run(FAST, "search")
    assert entry.record.state == "failed"
    assert entry.record.reason.startswith(REJECTION_PREFIX)
    assert entry.counts
    assert own.history.rejections() == {FAST.key: (5, 5), DEFAULT.key: (0, 1)}
    assert own.history.rejected == 5


def test_a_disturbed_run_is_repeated(machine: Any) -> None:
    left = [2]

    def first_two(spec: LaunchSpec) -> bool:
        left[0] -= 1
        return left[0] >= 0

    evaluator = machine(first_two)
    assert evaluator.run(FAST, "search").record.valid
    assert evaluator.store.stored == ["foreign_load", "foreign_load", "ok"]


class Disturbing(SimulatedEvaluator):
    """Runs of FAST are rejected in two of three attempts, those of others never."""

    def run(self, setting: Setting, phase: str, **more: Any) -> HistoryEntry:
        while setting.get("eager") == 8 and self.rng.random() < 0.67:
            record = RunRecord(state="foreign_load", reason="others", wall_s=1.0)
            place = SimpleNamespace(**{"trial": None, "block": 0, "position": 0} | more)
            self.history.add(
                HistoryEntry(
                    self.history.next_order,
                    setting.key,
                    phase,
                    record,
                    place.trial,
                    place.block,
                    place.position,
                )
            )
        return super().run(setting, phase, **more)


def quick(setting: Setting, rng: np.random.Generator) -> float:
    return float((0.7 if setting.get("eager") == 8 else 1.0) * rng.lognormal(0, 0.01))


def test_a_setting_whose_rejections_depend_on_it_is_not_recommended(space: Space) -> None:
    settings = [Setting({"eager": e}) for e in (1, 4, 8)]
    plan = SearchPlan(trials=3)
    strategy: Any = ListStrategy(settings)
    simulated = Disturbing(quick, np.random.default_rng(1))
    answer = run_procedure(simulated, MemoryTrialStore(), strategy, space, plan, seed=1)
    assert answer.proof is not None
    assert answer.proof.winners == [FAST]
    assert disturbing_settings(answer.proof) == [FAST]
    assert answer.setting is None
    assert judge_status(answer, simulated.history) == "inconclusive"
    assert any(note.code == "setting.rejected_often" for note in proof_warnings(answer.proof))
    rows = rejection_rows(simulated.history)
    assert [row["setting"] for row in rows] == [FAST.key]
    assert (
        rows[0]["rejected"]
        > simulated.history.rejections(answer.proof.blocks.phase)[FAST.key][0]
        > 0
    )


def test_the_same_setting_undisturbed_is_recommended(space: Space) -> None:
    settings = [Setting({"eager": e}) for e in (1, 4, 8)]
    strategy: Any = ListStrategy(settings)
    simulated = evaluator(quick)
    answer = run_procedure(
        simulated, MemoryTrialStore(), strategy, space, SearchPlan(trials=3), seed=1
    )
    assert answer.setting == FAST
    assert rejection_rows(simulated.history) == []
