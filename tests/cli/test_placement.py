"""Where the ranks ran, as a wrapper around them saw it and as ``run`` tells it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.mpis import built, library_named

pytestmark = pytest.mark.mpi
WRAPPER = '#!/bin/sh\ngrep Cpus_allowed_list /proc/self/status\nexec "$@"\n'


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
@pytest.mark.parametrize(
    ("name", "binding"),
    [
        *(("openmpi-4.1", binding) for binding in ("core", "none")),
        pytest.param("openmpi-5", "core", marks=pytest.mark.slow),
        ("openmpi-5", "none"),
        ("mpich", "core"),
        pytest.param("mpich", "none", marks=pytest.mark.slow),
    ],
)
def test_the_ranks_own_binding_is_told(cli: Cli, work: Path, name: str, binding: str) -> None:
    """hwloc moves a process of Open MPI 4.1 to CPU 0 and on, and then back, within MPI_Init."""
    library = library_named(name)
    program = built(library, work)
    (work / "wrap.sh").write_text(WRAPPER)
    (work / "wrap.sh").chmod(0o755)
    outcome = cli(
        "run", "--mpi", library.launcher, "--no-guard", "--store", "r.db", "--json", "run.json",
        "--", "mpirun", "-np", "2", "--bind-to", binding, "./wrap.sh", program,
    )  # fmt: skip
    assert outcome.code == 0, outcome.text
    run = json.loads((work / "run.json").read_text())["run"]
    seen = re.findall(r"Cpus_allowed_list:\s*(\S+)", run["stdout_tail"])
    assert len(seen) == 2
    if run["bindings"] or library.family == "openmpi":
        # MPICH leaves no trace of its MPI_Init: a run of milliseconds may be over unseen.
        assert sorted(run["bindings"]) == sorted(seen)
        assert run["read_back"]["bind_to"]["state"] == "in force"  # data
    # The launcher's own name of what was asked for is no setting that was inherited.
    assert not [key for key in run["inherited"] if "binding_policy" in key]


@pytest.mark.parametrize(
    "name", ["openmpi-5", "mpich", pytest.param("openmpi-4.1", marks=pytest.mark.slow)]
)
def test_a_users_placement_replaces_that_of_the_cluster(cli: Cli, work: Path, name: str) -> None:
    """Open MPI 5 does not start if one is given twice."""
    library = library_named(name)
    (work / "mine.toml").write_text(
        f"name = 'mine'\n[[launch]]\nmpi = '{library.family}'\n"
        "options = ['-bind-to', 'core', '-map-by', 'hwthread']\n"
    )
    outcome = cli(
        "run", "--mpi", library.launcher, "--cluster", "mine.toml", "--no-guard", "--store", "r.db",
        "--json", "run.json", "--", "mpirun", "-np", "2", "--bind-to", "none", "--map-by", "core",
        built(library, work),
    )  # fmt: skip
    assert outcome.code == 0, outcome.text
    run = json.loads((work / "run.json").read_text())["run"]
    assert run["state"] == "ok", run  # data
    assert {"bind_to=core", "map_by=hwthread"} <= {*outcome.text.split()}, "it is said"
    whole = ",".join(f"{cpu}" for cpu in sorted(os.sched_getaffinity(0)))
    assert not run["bindings"] or {*run["bindings"]} <= {whole, whole.replace(",", "-")}


def test_a_binding_of_the_environment_is_inherited(
    cli: Cli, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = library_named("openmpi-4.1")
    program = built(library, work)
    monkeypatch.setenv("OMPI_MCA_hwloc_base_binding_policy", "none")
    words = ("run", "--mpi", library.launcher, "-n", "2", "--no-guard", "--store", "r.db")
    told = cli(*words, "--", program)
    assert "hwloc_base_binding_policy=none" in told.out.replace("\n", "")
    asked = cli(*words, "--", "mpirun", "-np", "2", "--bind-to", "core", program)
    assert "hwloc_base_binding_policy" not in asked.out
