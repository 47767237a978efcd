"""srun starts the ranks: on the nodes of a testbed, and from a search to a file that is obeyed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from runner import testbed as tb
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from tests.mpi_environments import environment as mpi_environment
from tests.servers import missing_for_slurm, slurm, slurm_on_testbed

WHY = missing_for_slurm()
pytestmark = [
    pytest.mark.mpi,
    pytest.mark.slow,
    pytest.mark.skipif(WHY is not None, reason=str(WHY)),
]
PMIX = "*/pmix2/lib/libpmix.so"
BOUND = """
import os
from mpi4py import MPI
comm = MPI.COMM_WORLD
free = comm.allreduce(len(os.sched_getaffinity(0)), op=MPI.MIN) > 1
if comm.rank == 0:
    print("time =", 0.5 if free else 1.0, "s")
"""


def autotune(conf: str, work: Path, *words: str, job: tuple[str, ...] = ()) -> dict[str, object]:
    """The document of a command in a job."""
    (work / "bound.py").write_text(BOUND)
    environment = os.environ | {"SLURM_CONF": conf, "AUTOTUNE_LOCK_FILE": str(work / "lock")}
    environment |= {"PYTHONPATH": os.pathsep.join(sys.path), "AUTOTUNE_STORE": str(work / "r.db")}
    line = ["salloc", "--quiet", "--exclusive", *job, sys.executable, "-m", "autotune", *words]
    done = subprocess.run(
        line, cwd=work, env=environment, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads((work / "out.json").read_text())
    return dict(document.get("run", document))


@pytest.mark.parametrize("count", [2, 4])
def test_ranks_on_all_nodes(count: int, new_name: Callable[[], str], work: Path) -> None:
    """PMI-2, which needs no further package; each node has its share of the CPUs."""
    bed = tb.up(new_name(), nodes=count, latency_s=1e-4, rate_bps=10**9)
    mpi = str(mpi_environment("mpich"))
    with slurm_on_testbed(bed) as environment:
        answer = autotune(
            environment["SLURM_CONF"],
            work,
            *("run", "--no-guard", "--mpi", mpi, "--setting", "distribution=cyclic:block"),
            *("--json", "out.json", "--", "srun", "-n", str(count)),
            *(sys.executable, str(work / "bound.py")),
            job=(f"--nodes={count}",),
        )
    assert answer["state"] == "ok"
    assert answer["world_size"] == count
    cpus = [",".join(map(str, node.cpus)) for node in bed.nodes]
    assert answer["bindings"] == cpus
    states = answer["read_back"]
    assert isinstance(states, dict)
    assert states["distribution"]["effective"] == "cyclic:block"


@pytest.mark.skipif(not list(Path("/usr/lib").glob(PMIX)), reason="no libpmix.so for Slurm")
def test_a_gain_is_found_published_obeyed_and_undone(open_mpi: Library, work: Path) -> None:
    """By PMIx: MPICH 5.0.2 sometimes fails in MPI_Init under Slurm's PMI-2."""
    program = ("srun", "-n", "2", sys.executable, str(work / "bound.py"))
    mpi = ("--no-guard", "--mpi", open_mpi.bin)
    with slurm() as environment:
        conf = environment["SLURM_CONF"]
        job = ("--ntasks=2",)
        options = ("--space", "srun", "--trials", "4", "--min-gain", "40", "--runs", "60")
        words = ("search", *mpi, *options, "--metric", r"time = (\S+)", "--json", "out.json")
        answer = autotune(conf, work, *words, "--", *program, job=job)
        study = str(answer["study"])
        script = work / "settings.slurm.sh"
        words = ("publish", "--from", f"study:{study}", "--force", "--format", "slurm")
        autotune(conf, work, *words, "-o", str(script), "--json", "out.json", job=job)
        text = script.read_text()
        assert "SLURM_CPU_BIND='none'" in text
        assert "SLURM_MPI_TYPE='pmix'" in text
        paths = os.pathsep.join([open_mpi.bin, os.environ["PATH"]])
        loaded = 'export PATH="$2"; . "$1"; shift 2; exec "$@"'
        line = ["salloc", "-Q", *job, "sh", "-c", loaded, "sh", str(script), paths, *program]
        own = os.environ | {"SLURM_CONF": conf} | adapter(open_mpi).python_variables({})
        obeyed = subprocess.check_output(line, env=own, text=True, timeout=60)
        words = ("verify-published", *mpi, "--no-compare", str(script), "--json", "out.json")
        autotune(conf, work, *words, job=job)
        words = ("unpublish", str(script), "--json", "out.json")
        autotune(conf, work, *words, job=job)
    assert float(obeyed.split()[2]) < 1
    assert not script.exists()
