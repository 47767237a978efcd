"""``--budget`` with real programs that sleep."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autotune.store import Store
from runner.types import RunRecord
from tests.cli.conftest import Cli

pytestmark = pytest.mark.mpi
SLEEPS = 'test -n "$OMPI_MCA_btl_sm_eager_limit" && exec sleep {tuned} || exec sleep {default}'


def runs_of(store: Path) -> list[RunRecord]:
    with Store.open(store) as opened:
        (study,) = opened.studies()
        return [run.record for run in opened.runs(opened.find_study(study.hash).id)]


@pytest.fixture
def store(work: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AUTOTUNE_STORE", str(work / "results.db"))
    return work / "results.db"


def test_a_search_is_refused_after_its_first_run(cli: Cli, mpi_shell: str, store: Path) -> None:
    words = (mpi_shell, SLEEPS.format(default=1.0, tuned=1.0))
    done = cli("search", "--budget", "30s", "-n", "1", "--no-guard", "--", *words)
    assert done.code == 1
    said = " ".join(done.err.split())
    assert "[budget.too_small]" in said
    assert "30 s" in said
    assert "32 runs" in said
    assert "--budget" in said
    first, second = runs_of(store)
    assert first.state == "ok"
    assert second.state == "timeout"
    # It was given its share of what was left, not the rest of the budget.
    assert second.wall_s < (30.0 - first.wall_s) / 2


@pytest.mark.slow
def test_a_program_longer_than_the_budget_is_ended_with_it(
    cli: Cli, mpi_shell: str, store: Path
) -> None:
    words = (mpi_shell, SLEEPS.format(default=60, tuned=60))
    done = cli("search", "--budget", "1.5s", "-n", "1", "--no-guard", "--", *words)
    assert done.code == 1
    assert "[budget.too_small]" in done.err
    assert "1.5 s" in done.err
    (only,) = runs_of(store)
    assert only.state == "timeout"
    assert only.wall_s < 30
    done = cli("compare", "default", "btl_sm_eager_limit=8k", "--budget", "1.5s", "-n", "1",
               "--no-guard", "--store", "other.db", "--", *words)  # fmt: skip
    assert done.code == 1
    assert "[budget.too_small]" in done.err
    assert "--budget 1.5 s" in " ".join(done.err.split())
    assert len(runs_of(Path("other.db"))) == 1


def test_a_comparison_is_not_held_up_by_a_program_that_hangs(
    cli: Cli, mpi_shell: str, store: Path
) -> None:
    words = (mpi_shell, SLEEPS.format(default=0.05, tuned=60))
    done = cli("compare", "default", "btl_sm_eager_limit=8k", "--budget", "8s", "-n", "1",
               "--no-guard", "--json", "c.json", "--", *words)  # fmt: skip
    assert done.code == 0, done.err
    assert json.loads(Path("c.json").read_text())["budget_ended_it"]
    assert "--budget" in done.out
    walls = [record.wall_s for record in runs_of(store)]
    assert sum(walls[:-1]) < 8.0
    assert max(walls) < 7.5
