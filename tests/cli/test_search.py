"""The main job, with real launches."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
from syrupy.assertion import SnapshotAssertion

from autotune.store import Store
from tests.cli.conftest import SIZES, Cli, settings_title

pytestmark = pytest.mark.mpi
QUICK = ("search", "--app", "steady", "--input", "tiny", "--no-guard", "--store", "r.db")


@pytest.mark.usefixtures("steady")
def test_a_search_from_beginning_to_end(cli: Cli, library: object, work: Path) -> None:
    first = cli(*QUICK, "--strategy", "ga", "--trials", "3", "--json", "result.json")
    assert first.code == 0, first.err
    result = json.loads((work / "result.json").read_text())
    assert result["status"] == "unguarded"
    assert result["trials"] == 3
    assert result["default"]["n"] >= 2
    copied = ("    ", "study ")  # Commands to copy are not wrapped.
    assert all(len(x) <= 80 for x in first.out.splitlines() if not x.startswith(copied))

    # Finished: the same command, or one that asks for less, prints what is stored.
    with Store.open("r.db") as store:
        runs = len(store.runs(1))
    again = cli(*QUICK, "--strategy", "ga", "--trials", "2")
    assert "finished" in again.out
    with Store.open("r.db") as store:
        assert len(store.runs(1)) == runs

    shown = cli("show", result["study"][:8], "--store", "r.db")
    assert shown.code == 0
    assert "steady" in shown.out
    listed = cli("studies", "--store", "r.db")
    assert result["study"][:8] in listed.out
    exported = cli("export", result["study"][:8], "--to", "csv", "-o", "r.csv", "--store", "r.db")
    assert exported.code == 0
    assert len(pd.read_csv(work / "r.csv")) == runs


def test_any_program_with_its_launcher_line(cli: Cli, mpi_shell: str) -> None:
    script = "test $RANK = 0 && echo ' Time in seconds = ' 0.5 && echo VERIFIED || true"
    outcome = cli(
        "search", "--trials", "1", "--no-guard", "--strategy", "random", "--store", "r.db",
        "--metric", "Time in seconds *= *([0-9.]+)", "--verify", "VERIFIED", "--json", "-",
        "--", "mpirun", "-np", "2", mpi_shell, script,
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    result = json.loads(outcome.out)
    assert result["ranks"] == 2
    assert result["default"]["median_s"] == pytest.approx(0.5, abs=0.4)


WAITING = """
echo x >> launches
while [ -e wait ] && [ $(wc -l < launches) -gt 4 ]; do
    : > waits
    sleep 0.05
done
echo seconds 0.5  # Always the same: nothing is to be proven when the search has ended.
"""
"""From its fifth launch on it waits until it is ended, as long as there is the file ``wait``."""


def test_interrupting_and_going_on(
    cli: Cli, mpi_shell: str, work: Path, snapshot: SnapshotAssertion
) -> None:
    (work / "wait").touch()
    (work / "sizes.toml").write_text(SIZES)
    words = ["search", "--no-guard", "--store", "r.db", "--space", "./sizes.toml"]
    words += ["--strategy", "random", "--metric", "seconds ([0-9.]+)"]
    program = ["--", "mpirun", "-np", "1", mpi_shell, WAITING]
    with subprocess.Popen(
        # Each run that waits is ended by its limit, so the search would go on for long.
        [sys.executable, "-m", "autotune", *words, "--trials", "400", *program],
        cwd=work,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Ignored where a shell began the tests in the background, and it would be here, too.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as tuner:
        while not (work / "waits").exists() and tuner.poll() is None:
            time.sleep(0.05)
        tuner.send_signal(signal.SIGINT)
        _, err = tuner.communicate()
    assert tuner.returncode == 130, err
    assert "autotune search" in err  # data
    (work / "wait").unlink()
    shown = cli("show", "1", "--store", "r.db")
    assert shown.code == 0, shown.err
    assert settings_title(shown.out) == snapshot
    before = _runs(work)
    assert before >= 4
    done = cli(*words, "--trials", "3", *program)
    assert done.code == 0, done.err
    with Store.open(work / "r.db") as store:
        orders = [run.order for run in store.runs(1)]
        assert orders == sorted(set(orders))
        assert len(orders) >= before
        assert all(trial.state != "running" for trial in store.trials(1))


def test_an_interrupted_run_says_so(mpi_shell: str, work: Path) -> None:
    words = [sys.executable, "-m", "autotune", "run", "--no-guard", "--store", "r.db"]
    with subprocess.Popen(
        [*words, "--ranks", "1", "--", mpi_shell, ": > began; sleep 60"],
        cwd=work,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as run:
        deadline = time.monotonic() + 60
        while not (work / "began").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        run.send_signal(signal.SIGINT)
        _, err = run.communicate(timeout=60)
    assert run.returncode == 130, err
    assert "Interrupted" in err
    with Store.open(work / "r.db") as store:
        assert store.studies() == []


def _runs(work: Path) -> int:
    with Store.open(work / "r.db") as store:
        studies = store.studies()
        return studies[0].runs if studies else 0


@pytest.mark.slow
def test_compare_two_settings(cli: Cli, library: object) -> None:
    outcome = cli(
        "compare", "default", "btl_sm_eager_limit=8192", "--app", "jacobi3d", "--input", "tiny",
        "--no-guard", "--pairs", "6", "--store", "r.db", "--json", "c.json",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    data = json.loads(Path("c.json").read_text())
    assert data["pairs"] == 6
    assert data["b"] == {"btl_sm_eager_limit": 8192}
    assert data["outcome"] == "unguarded"
    assert data["seen"] in {"better", "worse", "equivalent", "futile", "undecided"}


def test_one_run_says_what_took_effect(cli: Cli, library: object) -> None:
    outcome = cli(
        "run", "--app", "jacobi3d", "--input", "tiny", "--no-guard", "--store", "r.db",
        "-s", "btl_sm_eager_limit=16k", "--json", "run.json",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    run = json.loads(Path("run.json").read_text())["run"]
    assert run["read_back"]["btl_sm_eager_limit"]["state"] == "in force"  # data
    assert run["verified"] is True
    assert run["world_size"] == 2
    assert "in force" in outcome.out  # data


@pytest.mark.mpi
def test_the_users_own_parameter_wins_over_the_clusters(
    cli: Cli, open_mpi: object, mpi_shell: str
) -> None:
    """The line of docs/howto/application-owner.md: Open MPI does not start with btl given twice."""
    words = ["--no-guard", "--json", "-", "--", "mpirun", "-np", "2", "--bind-to", "none"]
    words += ["--mca", "btl", "self,sm", mpi_shell, "true"]
    outcome = cli("run", *words)
    assert outcome.code == 0, outcome.text
    assert "btl=self,sm" in outcome.err.split()  # data
