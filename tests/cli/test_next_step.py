"""Issue 24, point 19: "not decided" names the next step, and the command that makes it."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

from autotune.measurement.budget import SearchPlan
from autotune.space import DEFAULT, Parameter, Setting, Space
from autotune.stats import LookPlan, decision_power, required_pairs
from autotune.study.conclusion import search_step
from autotune.study.procedure import run_procedure
from autotune.study.simulation import MemoryTrialStore, SimulatedEvaluator
from autotune.terminal.command_line import remember_command, this_command
from tests.cli.conftest import Cli
from tests.study.conftest import ListStrategy

PROGRAM = """
import os, pathlib, random
from mpi4py import MPI
tuned = "OMPI_MCA_btl_sm_eager_limit" in os.environ
if MPI.COMM_WORLD.rank == 0:
    here = pathlib.Path(__file__).parent / f"runs-{tuned}"
    runs = int(here.read_text()) if here.exists() else 0
    here.write_text(str(runs + 1))
    noise = random.Random(2 * runs + tuned).lognormvariate(0, 0.08)
    print(f"time {(0.085 if tuned else 0.1) * noise:.9f}")
"""


@pytest.mark.slow
@pytest.mark.mpi
def test_the_printed_command_decides_a_comparison(
    cli: Cli, open_mpi: object, work: Path, quiet: None
) -> None:
    (work / "program.py").write_text(PROGRAM)
    line = ["compare", "default", "btl_sm_eager_limit=8192", "--runs", "16", "--store", "r.db"]
    line += ["--metric", "time ([0-9.]+)", "--json", "c.json", "--ranks", "2"]
    first = cli(*line, "--", sys.executable, "program.py")
    assert first.code == 0, first.text
    data = json.loads(Path("c.json").read_text())
    assert data["outcome"] == "continue"
    step = data["next_step"]
    assert step["words"] in " ".join(first.out.split())
    assert int(step["options"]["--runs"]) >= 4
    [command] = [row.strip() for row in first.out.splitlines() if row.startswith("  autotune ")]
    assert "--runs 16" not in command
    words = shlex.split(command)
    assert words[0] == "autotune"
    # The program's noise is fixed: what was likely comes true here.
    again = cli(*words[1:])
    assert again.code == 0, again.text
    data = json.loads(Path("c.json").read_text())
    assert data["outcome"] == "better", again.out
    assert data["next_step"] is None


SPACE = Space("small", (Parameter("eager", (1,)),))


def open_study(
    max_runs: int | None, seed: int
) -> tuple[SimulatedEvaluator, MemoryTrialStore, SearchPlan]:
    def model(setting: Setting, rng: np.random.Generator) -> float:
        return float((1.0 if setting == DEFAULT else 0.97) * rng.lognormal(0, 0.05))

    evaluator = SimulatedEvaluator(model, np.random.default_rng(seed))
    return evaluator, MemoryTrialStore(), SearchPlan(trials=1, max_runs=max_runs)


@pytest.mark.parametrize("enough", [2, pytest.param(80, marks=pytest.mark.slow)])
@pytest.mark.parametrize("max_runs", [32, 110, None])
def test_an_open_search_names_what_it_needs(max_runs: int | None, enough: int) -> None:
    """Cut short by its budget, at the end of its looks, and without a bound on runs."""
    found = 0
    for seed in range(80):
        if found == enough:
            break
        evaluator, trial_store, plan = open_study(max_runs, seed)
        strategy = ListStrategy([Setting({"eager": 1})])
        answer = run_procedure(evaluator, trial_store, strategy, SPACE, plan, seed=1)  # type: ignore[arg-type]
        step = search_step(answer, plan, answer.ended_by)
        if answer.proof is None or not answer.proof.open:
            assert step is None
            continue
        assert step is not None
        assert re.search(r"\d", step.words)
        found += 1
        if max_runs is None:
            assert step.options == {"--trials": "11"}
            continue
        more = int(step.options["--runs"])
        assert more > max_runs
        measured = len(evaluator.history.entries)
        larger = SearchPlan(trials=1, max_runs=more)
        again = ListStrategy([Setting({"eager": 1})])
        run_procedure(evaluator, trial_store, again, SPACE, larger, seed=1)  # type: ignore[arg-type]
        # The command goes on with the proof, within what it named.
        assert measured < len(evaluator.history.entries) <= more
    assert found >= 2


def test_the_chance_is_that_of_blocks_like_those_seen() -> None:
    clear = [0.1, 0.12, 0.09, 0.11, 0.1, 0.13, 0.08, 0.1]
    assert decision_power(LookPlan(), clear).chance == 1
    assert decision_power(LookPlan(), clear).blocks <= 12
    rng = np.random.default_rng(0)
    noise = list(rng.normal(0.03, 0.3, 40))
    wide = decision_power(LookPlan(futility=0), noise)
    assert wide.chance < 0.5
    assert decision_power(LookPlan(futility=0), noise) == wide  # The same every time.
    assert required_pairs(clear, 0.02) == 12
    needed = required_pairs(list(rng.normal(0.03, 0.06, 200)), 0.02)
    assert needed is None or needed > 12


def test_a_command_is_said_again_with_other_options() -> None:
    try:
        remember_command(["search", "--runs", "40", "--", "a b", "--runs", "7"])
        line = "autotune search --runs 90 --budget 60s -- 'a b' --runs 7"
        assert this_command({"--runs": "90", "--budget": "60s"}) == line
        remember_command(["compare", "a", "b", "--runs=9"])
        assert this_command({"--runs": "12"}) == "autotune compare a b --runs 12"  # data
        assert this_command() == "autotune compare a b --runs=9"  # data
    finally:
        remember_command(None)
