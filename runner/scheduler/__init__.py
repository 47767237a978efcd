"""Where workers run: one file per scheduler, found by name; and which nodes this process was given.

An installed package adds a scheduler by an entry point ``NAME = "module:Class"`` of the group
``autotune.schedulers``.

Own and small: a worker is one command line, submitted, looked at and cancelled.  PSI/J and submitit
were looked at: the first brings a service of its own, the second runs pickled functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from runner.errors import RunnerUsageError
from runner.extensions import extended
from runner.scheduler import base
from runner.scheduler.base import Allocation, Job, Scheduler, State
from runner.scheduler.local import LocalScheduler
from runner.scheduler.slurm import SlurmScheduler

__all__ = ["GROUP", "Allocation", "Job", "Scheduler", "State", "allocation", "find", "names"]

GROUP = "autotune.schedulers"
_OWN: dict[str, type[Scheduler]] = {kind.name: kind for kind in (LocalScheduler, SlurmScheduler)}


@cache
def _kinds() -> dict[str, type[Scheduler]]:
    return extended(GROUP, Scheduler, _OWN)  # type: ignore[type-abstract]


def names() -> list[str]:
    """Every scheduler's name.  Raises RunnerError for a broken entry point."""
    return list(_kinds())


def find(name: str) -> Scheduler:
    """The scheduler of that name; raises RunnerUsageError for one that is unknown and
    RunnerError for one that is not here."""
    kinds = _kinds()
    if name not in kinds:
        raise RunnerUsageError(
            f"--scheduler {name!r} is not known; expected one of {', '.join(kinds)}"
        )
    found = kinds[name]()
    found.require()
    return found


def allocation(environment: Mapping[str, str]) -> Allocation:
    """What the schedulers gave a process with this environment; by default one node, unnamed."""
    asked = [kind.allocation(environment) for kind in _kinds().values()]
    found = [one for one in (*asked, base.allocation(environment)) if one is not None]
    nodes = next((one.nodes for one in found if one.nodes), "")
    return Allocation(nodes, any(one.several for one in found))
