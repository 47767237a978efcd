"""Issue 24, point 9: where the pairs are too few for an interval their range is shown, named so."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from autotune.measurement.budget import SearchPlan
from autotune.space import DEFAULT, Parameter, Setting, Space
from autotune.study.conclusion import finalist_rows
from autotune.study.procedure import run_procedure
from autotune.study.search_result import Result
from autotune.study.simulation import MemoryTrialStore, SimulatedEvaluator
from autotune.terminal.outcome import print_result
from tests.cli.conftest import Cli
from tests.study.conftest import ListStrategy

SPACE = Space("small", (Parameter("eager", (1, 2, 3)),))
SETTINGS = [Setting({"eager": level}) for level in (1, 2, 3)]


def lucky(seed: int) -> SimulatedEvaluator:
    """All settings are fast as long as they are searched, and slower in their proof."""
    runs: Counter[str] = Counter()

    def model(setting: Setting, rng: np.random.Generator) -> float:
        runs[setting.key] += 1
        early = runs[setting.key] <= 3
        factor = 1.0 if setting == DEFAULT else 0.8 if early else 1.1
        return float(factor * rng.lognormal(0, 0.02))

    return SimulatedEvaluator(model, np.random.default_rng(seed))


def test_a_finalist_without_an_interval_has_its_range_in_the_column(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Of three finalists the first look, after 8 pairs, has no interval: the column was empty."""
    strategy, plan = ListStrategy(SETTINGS), SearchPlan(trials=3)
    answer = run_procedure(lucky(0), MemoryTrialStore(), strategy, SPACE, plan, seed=1)  # type: ignore[arg-type]
    rows = finalist_rows(answer)
    short = [row for row in rows if row.gain_range is not None]
    assert short
    assert all(row.gain_ci == (None, None) for row in short)
    low, high = short[0].gain_range or (None, None)
    assert low is not None
    assert high is not None
    assert low < (short[0].gain or 0) < high
    result = Result(
        "keep_default", DEFAULT, "abc", {"name": "openmpi", "version": "5"}, "", "local", "a", 2,
        "random", 0, finalists=rows, default={"median_s": 1.0, "n": 5},
    )  # fmt: skip
    assert Result.from_json(json.loads(json.dumps(result.to_json()))).finalists == rows
    print_result(result)
    said = " ".join(capfd.readouterr().out.split())
    assert f"range {low * 100:+.1f} % .. {high * 100:+.1f} %" in said


@pytest.mark.mpi
def test_a_comparison_of_few_pairs_shows_their_range(cli: Cli, mpi_shell: str) -> None:
    words = ["compare", "default", "btl_self_eager_limit=8192", "--runs", "8", "--no-guard"]
    words += ["--store", "r.db", "--json", "c.json", "--ranks", "1"]
    done = cli(*words, "--", mpi_shell, "true")
    assert done.code == 0, done.text
    data = json.loads(Path("c.json").read_text())
    assert data["gain_ci95"] is None
    low, high = data["gain_range"]
    assert low <= data["gain"] <= high
    sign = "+" if low < 0 < high else ""
    said = " ".join(done.out.split())
    assert f"(range {low * 100:.1f} to {high * 100:{sign}.1f} %)" in said
