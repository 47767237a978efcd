"""The library as a script uses it: the commands' work without a command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import autotune
from autotune.space import Parameter, Setting, Space
from autotune.store import Store
from autotune.targets.metric import objective_name
from runner.types import RunRecord
from tests.conftest import Library
from tests.mpis import built
from tests.refusals import refused

SPACE = Space("mode", (Parameter("MODE", ("fast", "slow"), target="env"),))
PROGRAM = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **words) {
    const char *mode = getenv("MODE") ? getenv("MODE") : "";
    MPI_Init(&count, &words);
    double level = !strcmp(mode, "fast") ? 1.0 : !strcmp(mode, "slow") ? 3.0 : 2.0;
    srand48(getpid());
    printf("energy %.9f\\n", level * (0.99 + 0.02 * drand48()));
    return MPI_Finalize();
}
"""


class OnlyFast(autotune.Strategy):
    """Proposes one setting."""

    name = "only-fast"
    summary = "one setting"

    def propose(self) -> autotune.Proposal | None:
        wanted = Setting({"MODE": "fast"})
        return self.admit(wanted) if self.is_new(wanted) else None


def energy(run: RunRecord) -> float:
    """What the program says that it used."""
    return float(run.stdout_tail.split("energy")[1].split()[0])


@pytest.fixture
def program(work: Path, open_mpi: Library) -> list[str]:
    return [str(built(open_mpi, work, PROGRAM))]


@pytest.mark.mpi
@pytest.mark.usefixtures("quiet")
def test_own_strategy_and_own_objective(open_mpi: Library, program: list[str]) -> None:
    """A whole study; given again, it is read and not measured."""
    told: list[object] = []

    def tune() -> autotune.Study:
        return autotune.tune(
            program,
            ranks=1,
            space=SPACE,
            strategy=OnlyFast,
            objective=energy,
            runs=32,
            store="s.db",
            watch=told.append,
        )

    study = tune()
    result = study.result
    assert (result.status, result.strategy) == ("recommended", "only-fast")
    assert result.gain == pytest.approx(1.0, abs=0.1)
    assert study.best.setting == Setting({"MODE": "fast"})
    assert study.best.proven
    assert study.best.median_s == pytest.approx(1.0, abs=0.02)
    runs = study.runs()
    assert set(runs["phase"]) >= {"default", "search"}
    assert runs["metric_s"].between(0.9, 2.1).all()
    assert list(study.trials()["setting"]) == ["MODE=fast"]
    assert "MODE=fast" in repr(study)
    assert not list(Path().glob("*.conf"))  # Nobody asked for a file.
    assert told
    before = len(runs)
    again = tune()
    assert again.hash == study.hash == autotune.Study(study.id, "s.db").hash
    assert len(again.runs()) == before


def test_another_function_is_another_objective() -> None:
    def other(run: RunRecord) -> float:
        return run.cpu_s

    assert objective_name(energy) != objective_name(other)
    assert objective_name(energy).startswith("python:energy:")


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("figure", "code"),
    [
        (lambda run: -1.0, "objective.value"),
        (lambda run: float("nan"), "objective.value"),
        (lambda run: run.nothing, "objective.fails"),
    ],
)
def test_an_objective_that_gives_no_figure(
    open_mpi: Library, program: list[str], figure: object, code: str
) -> None:
    with refused(autotune.WorkError, code):
        autotune.tune(program, ranks=1, space=SPACE, objective=figure, guard=False, store="s.db")  # type: ignore[arg-type]
    with Store.open("s.db") as store:
        (record,) = store.studies()
        (run,) = store.runs(record.id)
    assert (run.record.state, run.record.code) == ("no_metric", code)
    assert run.record.stdout_tail.startswith("energy")


@pytest.mark.mpi
def test_two_settings(open_mpi: Library, program: list[str]) -> None:
    target = autotune.target(program, ranks=1, metric=r"energy ([0-9.]+)")
    more = {"guard": False, "store": "s.db", "watch": lambda event: None}
    more["runs"] = 16  # Too few for fresh pairs.
    outcome = autotune.compare("default", {"MODE": "slow"}, target, space=SPACE, pairs=6, **more)
    assert outcome.verdict == "unguarded"
    assert outcome.gain == pytest.approx(-1 / 3, abs=0.05)
    assert outcome.pairs == 6


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda: autotune.tune("./x", ranks=2), "usage.argument"),
        (lambda: autotune.tune(["./x"], rank=2), "usage.option_unknown"),
        (lambda: autotune.tune(["true"], ranks=2, seed=-1), "config.invalid"),
        (lambda: autotune.tune(["true"], ranks=2, strategy="gaa"), "strategy.unknown"),
        (lambda: autotune.tune(["true"]), "ranks.missing"),
        (lambda: autotune.tune(["true"], app="jacobi3d"), "usage.conflict"),
        (lambda: autotune.tune(), "usage.nothing_to_run"),
        (lambda: autotune.tune(["true"], ranks=1, budget="soon"), "time.syntax"),
        (lambda: autotune.tune(["true"], ranks=1, runs=3), "budget.too_small"),
        (lambda: autotune.compare("default", {}, ["true"], ranks=1), "compare.same_setting"),
        (lambda: autotune.predict("nothing.json"), "features.unreadable"),
        (lambda: autotune.Study("abcdef", "none.db"), "store.missing"),
    ],
)
def test_what_is_wrong_is_a_usage_error(
    open_mpi: Library, work: Path, monkeypatch: pytest.MonkeyPatch, call: object, code: str
) -> None:
    monkeypatch.setenv("AUTOTUNE_STORE", str(work / "s.db"))
    with refused(autotune.UsageError, code):
        call()  # type: ignore[operator]


def test_every_public_name_is_there_and_typed() -> None:
    assert all(getattr(autotune, name) is not None for name in autotune.__all__)
    assert set(autotune.__all__) <= set(dir(autotune))
    for package in ("autotune", "runner"):
        assert (Path(autotune.__file__).parents[1] / package / "py.typed").is_file()


def test_importing_it_loads_nothing_heavy() -> None:
    code = "import autotune, sys; print({'pandas', 'numpy', 'optuna'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
