"""Start-up time: how long an MPI takes to start and end a program that does nothing else."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from autotune.errors import WorkError
from runner.cpus import count_cores
from runner.launch import Runner
from runner.machine import describe_machine
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from runner.probe.command import empty_program
from runner.types import TRANSPORT, LaunchSpec, RunRecord


@dataclass(frozen=True)
class Startup:
    """Wall seconds of each run, in order (the first is a cold start), and the records."""

    times: list[float]
    records: list[RunRecord]

    @property
    def median(self) -> float:
        """Median of the wall seconds."""
        return statistics.median(self.times)

    @property
    def transport(self) -> str:
        """The transport in force, such as "ob1: sm"; "" if the library does not show it."""
        read_backs = (record.read_back.get(TRANSPORT) for record in self.records)
        return next((back.effective or "" for back in read_backs if back), "")


def startup(
    library: Library,
    options: tuple[str, ...],
    ranks: int = 2,
    runs: int = 3,
    cpus: frozenset[int] | None = None,
) -> Startup:
    """Start an empty MPI program ``runs`` times after a warm-up, on ``cpus`` (None: anywhere).

    Raises WorkError if it fails, RunnerError if one of the CPUs may not be used or if there is
    neither mpi4py nor a compiler of the library.
    """
    cores = describe_machine().cores if cpus is None else count_cores(cpus)
    spec = LaunchSpec(
        program=tuple(empty_program(library)),
        ranks=ranks,
        launch_options=options,
        oversubscribe=ranks > cores,
        timeout_s=60,
    )
    with Runner(adapter(library), guard=False, cpus=cpus) as runner:
        records = [runner.run(spec) for _ in range(runs + 1)][1:]
    for record in records:
        if not record.valid:
            raise WorkError(
                f"an empty MPI program does not run under {library.launcher}: {record.state}: "
                f"{record.reason}",
                code="mpi.start_fails",
            )
    return Startup([r.wall_s for r in records], records)


def transport_in_force(library: Library, options: tuple[str, ...]) -> str:
    """The transport that two ranks use with these launch options; "" if it is not shown.

    It starts the two ranks once or twice; a launch that fails says nothing.
    """
    if not adapter(library).transport_parameter:
        return ""
    try:
        return startup(library, options, runs=1).transport
    except WorkError:
        return ""
