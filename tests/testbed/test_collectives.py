"""Between nodes coll/han serves some collectives, and coll/tuned the others."""

from __future__ import annotations

import sys

import pytest

from runner import testbed as tb
from runner.launch import Runner
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from runner.types import LaunchSpec

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
