"""The interface of a scheduler, and the batch systems known only by their environment.

autotune starts no workers in these batch systems; it only reads the environment of their jobs.
"""

from __future__ import annotations

import os
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

from runner import files
from runner.errors import RunnerError

State = Literal["pending", "running", "ended"]
Cause = Literal["time_limit", "memory", "node", "preempted", "cancelled", "other"]
_PATIENCE_S = 60


@dataclass(frozen=True)
class Job:
    """One worker: ``words`` is its command line, run on ``nodes`` exclusive nodes.

    ``log`` is the file for its output, ``options`` are the user's arguments for the scheduler, and
    ``env`` is added to the caller's environment, which every job gets.
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
class JobEnd:
    """Why a scheduler ended a job.

    ``words`` are the scheduler's own. ``limit`` is the job's time limit as the scheduler writes it,
    empty if it says none.
    """

    cause: Cause
    words: str
    limit: str = ""


@dataclass(frozen=True)
class Allocation:
    """The nodes that a process may use.

    ``nodes`` are their names as the scheduler lists them ("" if unknown); ``several``: more than
    one. ``count`` is their number and ``slots`` the number of ranks that fit; None if unknown.
    """

    nodes: str = ""
    several: bool = False
    count: int | None = None
    slots: int | None = None


class Scheduler(ABC):
    """Submits, queries and cancels jobs; methods raise RunnerError if it refuses."""

    name: ClassVar[str]

    @classmethod
    def allocation(cls, environment: Mapping[str, str]) -> Allocation | None:
        """The allocation of a process with this environment; None if there is none."""
        return None

    @abstractmethod
    def require(self) -> None:
        """Raise RunnerError if this scheduler cannot be used on this machine."""

    @abstractmethod
    def submit(self, job: Job) -> str:
        """Submit the job; returns the id by which the scheduler knows it."""

    @abstractmethod
    def states(self, ids: Sequence[str]) -> dict[str, State]:
        """The state of each job; a job that the scheduler no longer knows has ended."""

    def end_of(self, job: str) -> JobEnd | None:
        """Why the scheduler ended a job; None if the job ended by itself, or if this is not known.

        Schedulers forget a job some minutes after its end.
        """
        return None

    @abstractmethod
    def cancel(self, ids: Sequence[str]) -> None:
        """End these jobs; a job that has already ended is not an error."""


def output_of(words: Sequence[str], stdin: str = "", env: Mapping[str, str] | None = None) -> str:
    """Standard output of a scheduler's command; raises RunnerError with its message."""
    try:
        process = subprocess.run(
            list(words),
            input=stdin,
            env=None if env is None else {**os.environ, **env},
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_PATIENCE_S,
            check=False,
        )
    except FileNotFoundError:
        raise RunnerError(f"{words[0]} is not installed here", code="scheduler.missing") from None
    except subprocess.TimeoutExpired:
        raise RunnerError(
            f"{words[0]} did not answer within {_PATIENCE_S} s", code="scheduler.no_answer"
        ) from None
    if process.returncode:
        message = (process.stderr or process.stdout).strip() or f"exit code {process.returncode}"
        raise RunnerError(f"{words[0]} refuses: {message}", code="scheduler.refuses")
    return process.stdout


_NODE_VARIABLES = {
    "PBS": "PBS_NODEFILE",
    "LSF": "LSB_MCPU_HOSTS",
    "Grid Engine": "PE_HOSTFILE",
}
"""Variables set in jobs that may use several nodes; the nodes' names are not kept."""
_MOST_BYTES = 1 << 20


def allocation(environment: Mapping[str, str]) -> Allocation | None:
    """The allocation that one of these batch systems gave such a process, or None."""
    variables = [name for name in _NODE_VARIABLES.values() if environment.get(name, "1") != "1"]
    if not variables:
        return None
    slots = _slots_by_node(variables[0], environment[variables[0]])
    if not slots:
        return Allocation(several=True)
    return Allocation(several=len(slots) > 1, count=len(slots), slots=sum(slots.values()))


def nodes_and_slots(file: str, pairs: str) -> dict[str, int]:
    """Slots by node of a file with a line for each slot or lines ``NODE SLOTS``, or of such pairs.

    Empty if there is neither, or it cannot be read.
    """
    if pairs:
        return _slots_by_node("LSB_MCPU_HOSTS", pairs)
    try:
        first = files.read_text(Path(file), _MOST_BYTES).splitlines()[:1] if file else []
    except (OSError, UnicodeDecodeError):
        return {}
    several = any(len(line.split()) > 1 for line in first)
    return _slots_by_node("PE_HOSTFILE" if several else "PBS_NODEFILE", file) if first else {}


def _slots_by_node(variable: str, value: str) -> dict[str, int]:
    """Slots by node; empty if the list cannot be read.

    PBS has a line for each slot, Grid Engine lines ``HOST SLOTS ...``, and LSF such pairs in the
    variable itself.
    """
    try:
        if variable == "LSB_MCPU_HOSTS":
            words = value.split()
            pairs = list(zip(words[::2], map(int, words[1::2]), strict=True))
        else:
            lines = files.read_text(Path(value), _MOST_BYTES).splitlines()
            rows = [line.split() for line in lines if line.strip()]
            pairs = [(row[0], 1 if variable == "PBS_NODEFILE" else int(row[1])) for row in rows]
    except (OSError, UnicodeDecodeError, ValueError, IndexError):
        return {}
    slots: dict[str, int] = {}
    for node, count in pairs:
        slots[node] = slots.get(node, 0) + count
    return slots
