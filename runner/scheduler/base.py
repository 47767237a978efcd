"""What a scheduler can do.

Batch systems that take no workers of ours: known by the environment of their jobs alone.
"""

from __future__ import annotations

import os
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

from runner.errors import RunnerError

State = Literal["pending", "running", "ended"]
_PATIENCE_S = 60


@dataclass(frozen=True)
class Job:
    """One worker: ``words`` is its command line, run on ``nodes`` nodes of its own.

    ``log`` is the file that its output goes to, ``options`` words of the user for the scheduler,
    ``env`` is added to the environment of the caller, which every job gets.
    """

    words: tuple[str, ...]
    name: str
    log: Path
    nodes: int = 1
    time_s: float | None = None
    options: tuple[str, ...] = ()
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Allocation:
    """The nodes that a process may use: their names as its scheduler lists them ("" where it does
    not say), and whether they are ``several``."""

    nodes: str = ""
    several: bool = False


class Scheduler(ABC):
    """Submits, looks, cancels.  Every method raises RunnerError where the scheduler refuses."""

    name: ClassVar[str]

    @classmethod
    def allocation(cls, environment: Mapping[str, str]) -> Allocation | None:
        """What a process with this environment was given by this scheduler; None: nothing."""
        return None

    @abstractmethod
    def require(self) -> None:
        """Raise RunnerError where this scheduler cannot be used here."""

    @abstractmethod
    def submit(self, job: Job) -> str:
        """The id under which the scheduler knows it from now on."""

    @abstractmethod
    def states(self, ids: Sequence[str]) -> dict[str, State]:
        """What became of each; one that the scheduler no longer knows has ended."""

    @abstractmethod
    def cancel(self, ids: Sequence[str]) -> None:
        """End them; those that have ended already are no error."""


def output_of(words: Sequence[str], stdin: str = "", env: Mapping[str, str] | None = None) -> str:
    """Standard output of a scheduler's command.  Raises RunnerError with its own words."""
    try:
        done = subprocess.run(
            list(words),
            input=stdin,
            env=None if env is None else {**os.environ, **env},
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
        )
    except FileNotFoundError:
        raise RunnerError(f"{words[0]} is not installed here") from None
    except subprocess.TimeoutExpired:
        raise RunnerError(f"{words[0]} did not answer within {_PATIENCE_S} s") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip() or f"exit code {done.returncode}"
        raise RunnerError(f"{words[0]} refuses: {said}")
    return done.stdout


_NODE_VARIABLES = {
    "PBS": "PBS_NODEFILE",
    "LSF": "LSB_MCPU_HOSTS",
    "Grid Engine": "PE_HOSTFILE",
}
"""Set in a job that may use several nodes; their names are not read."""


def allocation(environment: Mapping[str, str]) -> Allocation | None:
    """What a process with this environment was given by one of them; None: nothing."""
    found = [name for name in _NODE_VARIABLES.values() if environment.get(name, "1") != "1"]
    return Allocation(several=True) if found else None
