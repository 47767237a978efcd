"""Where workers run: one file per scheduler, found by name.

Own and small: a worker is one command line, submitted, looked at and cancelled.  PSI/J and submitit
were looked at: the first brings a service of its own, the second runs pickled functions.
"""

from __future__ import annotations

from runner.errors import RunnerUsageError
from runner.scheduler.base import Job, Scheduler, State
from runner.scheduler.local import Local
from runner.scheduler.slurm import Slurm

__all__ = ["Job", "Scheduler", "State", "find", "names"]

_KINDS: dict[str, type[Scheduler]] = {kind.name: kind for kind in (Local, Slurm)}


def names() -> list[str]:
    return list(_KINDS)


def find(name: str) -> Scheduler:
    """The scheduler of that name; raises RunnerUsageError for one that is unknown and
    RunnerError for one that is not here."""
    if name not in _KINDS:
        known = ", ".join(_KINDS)
        raise RunnerUsageError(f"--scheduler {name!r} is not known; expected one of {known}")
    found = _KINDS[name]()
    found.require()
    return found
