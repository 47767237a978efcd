"""Runs that are confined to some CPUs: where the ranks are, and what is judged."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from runner.launch import Runner, staying_on
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from runner.supervise import Supervisor
from runner.types import LaunchSpec, RunRecord
from tests.mpis import built
from tests.runner.supervising import FAST, script

CPUS = sorted(os.sched_getaffinity(0))
WAITS = """
#include <mpi.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    usleep(400000);
    return MPI_Finalize();
}
"""
OPTIONS = ("--mca", "btl", "^ofi")

several = pytest.mark.skipif(len(CPUS) < 2, reason="needs two CPUs")


@several
def test_only_the_given_cpus_are_judged() -> None:
    """A CPU's counters grow by the time that passes: those of one CPU by half of those of two."""
    grown = []
    for judged in ((CPUS[-1],), (CPUS[0], CPUS[-1])):
        with Supervisor() as supervisor:
            result = supervisor.run(script("import time; time.sleep(0.6)", judged_cpus=judged))
        before, after = result.before, result.after
        spent = after.busy_s + after.idle_s + after.irq_s + after.steal_s
        spent -= before.busy_s + before.idle_s + before.irq_s + before.steal_s
        grown.append(spent / result.window_s)
    assert grown == pytest.approx([1, 2], rel=0.25)


@several
def test_own_processes_count_where_they_can_only_be() -> None:
    child = subprocess.Popen([*FAST, "input()"], stdin=subprocess.PIPE)
    here, elsewhere = frozenset({CPUS[0]}), frozenset({CPUS[1]})
    assert staying_on([child.pid], here) == ()
    assert staying_on([child.pid], here | frozenset(CPUS)) == (child.pid,)
    os.sched_setaffinity(child.pid, here)
    assert staying_on([child.pid], here) == (child.pid,)
    assert staying_on([child.pid], elsewhere) == ()
    child.communicate(b"\n")
    assert staying_on([child.pid], here) == ()


def launch(open_mpi: Library, cpu: int, program: tuple[str, ...], **placement: str) -> RunRecord:
    spec = LaunchSpec(program, 1, launch_options=OPTIONS, placement=placement, timeout_s=30)
    with Runner(adapter(open_mpi), guard=False, cpus=frozenset({cpu})) as runner:
        return runner.run(spec)


@pytest.fixture
def program(open_mpi: Library, tmp_path: Path) -> str:
    return str(built(open_mpi, tmp_path, WAITS))


@several
@pytest.mark.mpi
@pytest.mark.parametrize("placement", [{}, {"bind_to": "core"}, {"map_by": "numa"}])
def test_ranks_stay_on_the_cpus(open_mpi: Library, program: str, placement: dict[str, str]) -> None:
    """On the last CPU: a launcher that did not know would bind its first rank to the first."""
    record = launch(open_mpi, CPUS[-1], (program,), **placement)
    assert record.state == "ok", record.reason
    assert record.bindings == [str(CPUS[-1])]
    assert record.read_back["cpus"].state == "in force"  # data
    assert sorted(os.sched_getaffinity(0)) == CPUS


@several
@pytest.mark.mpi
def test_a_rank_that_leaves_its_cpus_makes_the_run_invalid(open_mpi: Library, program: str) -> None:
    text = f"import os; os.sched_setaffinity(0, {set(CPUS)}); os.execv({program!r}, ['x'])"
    record = launch(open_mpi, CPUS[-1], (*FAST, text))
    assert record.state == "not_read_back"
    assert f"cpus={CPUS[-1]} became" in record.reason
