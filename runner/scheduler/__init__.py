"""The schedulers that start workers, found by name, and the nodes that this process was given.

Each scheduler is one file. An installed package adds a scheduler by an entry point ``NAME =
"module:Class"`` of the group ``autotune.schedulers``.

PSI/J and submitit are not used: PSI/J needs a separate service, and submitit runs pickled
functions. Here a worker is one command line, which is submitted, queried and cancelled.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from runner.errors import RunnerUsageError
from runner.extensions import with_extensions
from runner.scheduler import base
from runner.scheduler.base import Allocation, Job, JobEnd, Scheduler, State
from runner.scheduler.local import LocalScheduler
from runner.scheduler.slurm import SlurmScheduler

__all__ = [
    "GROUP",
    "Allocation",
    "Job",
    "JobEnd",
    "Scheduler",
    "State",
    "allocation",
    "find",
    "names",
]

GROUP = "autotune.schedulers"
_OWN: dict[str, type[Scheduler]] = {kind.name: kind for kind in (LocalScheduler, SlurmScheduler)}


@cache
def _kinds() -> dict[str, type[Scheduler]]:
    return with_extensions(GROUP, Scheduler, _OWN)  # type: ignore[type-abstract]


def names() -> list[str]:
    """Every scheduler's name.  Raises RunnerError for a broken entry point."""
    return list(_kinds())


def find(name: str) -> Scheduler:
    """The scheduler with this name.

    Raises RunnerUsageError if the name is unknown, and RunnerError if the scheduler cannot be used
    on this machine.
    """
    kinds = _kinds()
    if name not in kinds:
        raise RunnerUsageError(
            f"--scheduler {name!r} is not known; expected one of {', '.join(kinds)}",
            code="scheduler.unknown",
        )
    scheduler = kinds[name]()
    scheduler.require()
    return scheduler


def allocation(environment: Mapping[str, str]) -> Allocation:
    """The allocation of a process with this environment; by default one node without a name."""
    answers = [kind.allocation(environment) for kind in _kinds().values()]
    allocations = [one for one in (*answers, base.allocation(environment)) if one is not None]
    nodes = next((one.nodes for one in allocations if one.nodes), "")
    room = next((one for one in allocations if one.count is not None), Allocation())
    return Allocation(nodes, any(one.several for one in allocations), room.count, room.slots)
