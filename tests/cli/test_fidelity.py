"""A search with cheap runs, with real launches."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from autotune.api.datasets import _NO_SEARCH
from autotune.report.cluster import answered_studies
from autotune.store import Store, StudySummary
from autotune.store.keys import SCREENING
from autotune.study.screening import CHEAP_PHASE
from tests.cli.conftest import Cli

pytestmark = pytest.mark.mpi
SOLVER = """
echo '{"solver_s": '0.${0}1', "iterations": '$0'}'
"""
"""Prints what the solvers here do; its first word is the number of iterations."""
ITERATIVE = """
name = "iterative"
command = ["MPI_SHELL", ". ./solver.sh", "{iterations}", "end"]
metric = "json:solver_s"
default_ranks = 1
inputs.default.values = { iterations = "200" }
fidelity.default.values = { iterations = "20" }
"""
FIGURES = """
import os, sys, time
from mpi4py import MPI
MPI.COMM_WORLD.Barrier()
if MPI.COMM_WORLD.rank == 0:
    # Slower with each parameter that is set; not noisy, so that a search is the same each time.
    extra = sum(name.startswith("OMPI_MCA_btl_sm") for name in os.environ)
    with open("journal", "a") as journal:
        journal.write(sys.argv[1] + "\\n")
    print("seconds", float(sys.argv[1]) * (1 + extra / 10))
"""
PRINTED = """
name = "figures"
command = ["{python}", "figures.py", "{size}"]
metric = "seconds ([0-9.]+)"
default_ranks = 2
inputs.default.values = { size = "1.0" }
fidelity.default.values = { size = "0.1" }
"""


def app(name: str, text: str) -> None:
    place = Path("configs/apps")
    place.mkdir(parents=True)
    (place / f"{name}.toml").write_text(text)


def both(store: Store) -> tuple[StudySummary, StudySummary]:
    """The search, and the study of its cheap runs."""
    cheap, full = sorted(store.studies(), key=lambda line: line.strategy != SCREENING)
    return full, cheap


def test_cheap_runs_of_a_real_program(cli: Cli, mpi_shell: str, work: Path) -> None:
    app("iterative", ITERATIVE.replace("MPI_SHELL", mpi_shell))
    (work / "solver.sh").write_text(SOLVER)
    begun = cli(
        "search", "--app", "iterative", "--fidelity", "--strategy", "random", "--trials", "1",
        "--no-guard", "--store", "r.db", "--json", "r.json", "--min-gain", "40",
    )  # fmt: skip
    assert begun.code == 0, begun.err
    result = json.loads((work / "r.json").read_text())
    seen = result["fidelity"]
    with Store.open("r.db") as store:
        full, cheap = both(store)
        assert seen["study"] == cheap.hash[:12]
        assert cheap.argv[-2:] == ("20", "end")
        assert full.argv[-2] == "200"
        assert seen["runs"] == cheap.runs
        assert full.runs == result["search_runs"] + result["confirmation_runs"]
        runs = store.runs(cheap.id)
        # The default first, five times after its warm-up; then the setting once or twice.
        assert [r.phase for r in runs[:7]] == ["warmup", *["default"] * 5, CHEAP_PHASE]
        assert all(r.record.extra["iterations"] == 20 for r in runs if r.record.valid)
        assert all(
            r.record.extra["iterations"] == 200 for r in store.runs(full.id) if r.record.valid
        )
        machine_s = sum(r.record.wall_s for r in runs)
        assert seen["machine_s"] == pytest.approx(machine_s, abs=0.01)
        # Nothing takes cheap runs for those of the whole input, or for a search.
        context = store.get_study(full.id).context
        assert context != store.get_study(cheap.id).context
        assert {r.study_id for r in store.known_runs(context, runs[-1].setting_key)} == {full.id}
        assert SCREENING in _NO_SEARCH
        assert [study.id for study, _ in answered_studies(store, "local")] == [full.id]
    assert "(iterations = 20)" in begun.out
    assert cheap.hash[:12] in begun.out
    # The newest study is the search, not that of its cheap runs.
    status = cli("status", "--store", "r.db", "--json", "-")
    assert json.loads(status.out)["study"] == full.hash[:12]
    assert json.loads(status.out)["fidelity"] == seen
    page = cli("report", full.hash[:8], "--store", "r.db", "-o", "page.html")
    assert page.code == 0, page.err
    assert "(iterations = 20)" in (work / "page.html").read_text()
    assert cheap.hash[:12] in (work / "page.html").read_text()


def test_without_a_cheap_form_nothing_is_started(cli: Cli, library: object, work: Path) -> None:
    outcome = cli("search", "--app", "jacobi3d", "--input", "tiny", "--fidelity", "--store", "r.db")
    assert outcome.code == 2
    assert "[app.no_cheap_form]" in outcome.err
    assert "[fidelity.tiny]" in outcome.err
    outcome = cli("search", "--fidelity", "--ranks", "2", "--", sys.executable, "-c", "pass")
    assert outcome.code == 2
    assert "--app" in outcome.err


@pytest.mark.slow
def test_killed_and_continued(library: object, work: Path) -> None:
    Path("figures.py").write_text(FIGURES)
    app("figures", PRINTED)
    environment = os.environ | {"AUTOTUNE_LOCK_FILE": str(work / "lock")}

    def command(store: str) -> list[str]:
        return [
            sys.executable, "-m", "autotune", "search", "--app", "figures", "--fidelity",
            "--strategy", "random", "--trials", "16", "--no-guard", "--store", store, "--seed", "1",
        ]  # fmt: skip

    def outcome(store: str) -> tuple[list[tuple[object, ...]], dict[str, object]]:
        with Store.open(store) as opened:
            full, _ = both(opened)
            trials = [(t.key, t.state, t.attrs.get("cheap")) for t in opened.trials(full.id)]
            result = opened.get_study(full.id).result
        assert result is not None
        return trials, result["fidelity"]

    subprocess.run(command("whole.db"), env=environment, check=True, capture_output=True)
    whole, seen = outcome("whole.db")
    assert sum(state == "pruned" for _, state, _ in whole) >= 2
    assert seen["off"] is None
    Path("journal").unlink()
    for more in (9, 12, 15):
        begun = subprocess.Popen(
            command("killed.db"), env=environment, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        before = _lines()
        while _lines() < before + more and begun.poll() is None:
            time.sleep(0.05)
        assert begun.poll() is None, "it ended before it was killed"
        begun.send_signal(signal.SIGKILL)
        begun.wait()
    subprocess.run(command("killed.db"), env=environment, check=True, capture_output=True)
    again, _ = outcome("killed.db")
    assert again == whole
    with Store.open("killed.db") as store:
        cheap = [store.runs(line.id) for line in both(store)]
    # At most the run of each kill is lost.
    assert sum(map(len, cheap)) >= _lines() - 3


def _lines() -> int:
    journal = Path("journal")
    return len(journal.read_text().splitlines()) if journal.exists() else 0
