"""Between nodes coll/han serves some collectives, and coll/tuned the others."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from autotune.space import Setting, load_space
from runner import testbed as tb
from runner.launch import Runner
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from runner.types import LaunchSpec
from tests.mpis import built, library_named

PROGRAM = """
import sys
import numpy as np
from mpi4py import MPI
world = MPI.COMM_WORLD
if sys.argv[1] == "barrier":
    world.Barrier()
else:
    world.Alltoall(np.ones(world.size), np.empty(world.size))
"""


@pytest.mark.mpi
@pytest.mark.slow
def test_the_algorithms_of_tuned_act_where_han_does_not_serve(
    bed: tb.Testbed, open_mpi: Library
) -> None:
    """An algorithm for two ranks fails on four, if anything uses it."""
    modern = open_mpi.version_tuple >= (5,)

    def state(operation: str, han: str) -> str:
        mca = {
            "coll_han_priority": han,
            "coll_tuned_use_dynamic_rules": "1",
            f"coll_tuned_{operation}_algorithm": "two_proc",
        }
        spec = LaunchSpec(
            (sys.executable, "-c", PROGRAM, operation),
            4,
            {"mca": mca},
            placement={"map_by": "node"},
            launch_options=tb.launch_words(bed, modern),
            oversubscribe=True,
            timeout_s=60,
        )
        with Runner(adapter(open_mpi), guard=False) as runner:
            return runner.run(spec).state

    assert state("barrier", "35") == "ok"
    assert state("barrier", "0") == "failed"
    assert state("alltoall", "35") == "failed"


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize("name", ["openmpi-4.1", "openmpi-5"])
def test_every_level_between_nodes_gives_right_results(
    bed: tb.Testbed, name: str, tmp_path: Path
) -> None:
    library = library_named(name)
    modern = library.version_tuple >= (5,)
    space = load_space("openmpi-collectives", library, {"ranks": 4, "cores": 2, "nodes": 2})
    han = {"coll_han_priority": 35}
    settings = [Setting({"coll_adapt_priority": 40})]
    settings += [
        Setting({**han, parameter.name: level})
        for parameter in space
        if parameter.name.startswith("coll_han_")
        for level in parameter.levels
    ]
    assert len(settings) > 12
    program = str(
        built(library, tmp_path, (Path(__file__).parents[1] / "collectives.c").read_text())
    )
    with Runner(adapter(library), guard=False) as runner:
        for setting in settings:
            spec = LaunchSpec(
                (program,),
                4,
                space.launched(setting),
                placement={"map_by": "node"},
                launch_options=tb.launch_words(bed, modern),
                oversubscribe=True,
                verify="right",
                timeout_s=60,
            )
            record = runner.run(spec)
            assert record.valid, f"{setting}: {record.reason}"
            states = {n: b.state for n, b in record.read_back.items() if n in setting}
            assert set(states.values()) == {"in force"}, f"{setting}: {states}"  # data
