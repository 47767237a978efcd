"""The shipped spaces on the MPI that is really here."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from autotune.space import InactiveParameters, load_space
from autotune.space.check import check_file
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from runner.types import PROTOCOLS, TRANSPORT, LaunchSpec
from tests.started import started

PROGRAM = """
import numpy as np
from mpi4py import MPI
world = MPI.COMM_WORLD
for count in (1, 3000, 100000):
    ones, total = np.ones(count), np.empty(count)
    world.Allreduce(ones, total)
    world.Bcast(total)
    world.Sendrecv_replace(ones, 1 - world.rank, source=1 - world.rank)
    world.Barrier()
    assert total[-1] == world.size
print("fine")
"""


@pytest.mark.mpi
@pytest.mark.parametrize("name", ["openmpi", "openmpi-thesis", "openmpi-tcp", "null"])
def test_shipped_spaces_pass_the_check(open_mpi: Library, name: str) -> None:
    report = check_file(name, open_mpi)
    assert [str(error) for error in report.errors] == []


@pytest.mark.mpi
@pytest.mark.parametrize("name", ["openmpi", "null"])
def test_random_settings_start_and_are_in_force(
    open_mpi: Library, name: str, tmp_path: Path
) -> None:
    space = load_space(name, open_mpi, {"ranks": 2, "cores": 2, "nodes": 1})
    rng = np.random.default_rng(5)
    for number in range(2):
        scratch = tmp_path / str(number)
        scratch.mkdir()
        idle = InactiveParameters(space)
        idle.learn_default("pml", "ob1")
        launched = space.launched(idle.strip(space.sample(rng)))
        spec = LaunchSpec(
            (sys.executable, "-c", PROGRAM),
            ranks=2,
            parameters={"mca": launched.get("mca", {})},
            placement=launched.get("placement", {}),
            variables=launched.get("env", {}),
            launch_options=("--mca", "btl", "^ofi"),
            oversubscribe=(os.cpu_count() or 1) < 2,
        )
        launcher = adapter(open_mpi)
        environment = launcher.environment(spec, dict(os.environ))
        done = started(launcher.command(spec, scratch), env=environment, timeout=60)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("fine") == 2
        read_back = launcher.probe(spec, scratch).read_back
        states = {n: b.state for n, b in read_back.items() if not n.startswith(PROTOCOLS)}
        assert states == dict.fromkeys([*spec.of("mca"), *spec.variables, TRANSPORT], "in force")
