"""Other MPI jobs on this node in words: where they run, and how jobs get cores of their own."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from autotune.errors import UsageError
from autotune.notes import Note
from autotune.targets.launcher_line import as_user_types
from autotune.wording import count
from runner.cpus import available_cpus, core_sets, count_cores, cpu_list, with_siblings
from runner.jobs import MpiJob, find_jobs
from runner.mpi.discover import adapter
from runner.mpi.library import Library

MOST = 3
"""So many jobs are named in a message about a measurement; the others are counted."""


@dataclass(frozen=True)
class Share:
    """One of several disjoint sets of whole cores, and the launcher's line for a job on it."""

    cpus: frozenset[int]
    cores: int
    line: str


def divide_cores(jobs: int, library: Library) -> list[Share]:
    """The cores of this node divided among ``jobs`` jobs of ``library``.

    Raises UsageError if there are fewer cores than jobs.
    """
    try:
        sets = core_sets(jobs, available_cpus())
    except ValueError as problem:
        raise UsageError(
            f"{problem}; let the jobs run one after the other", code="jobs.too_many"
        ) from None
    return [Share(cpus, count_cores(cpus), _line(library, cpus, len(cpus))) for cpus in sets]


def jobs_on(cpus: frozenset[int] | None) -> list[MpiJob]:
    """The other MPI jobs that may run on a core of ``cpus`` (None: on any core of this node).

    Jobs whose CPUs may not be read are among them.
    """
    ours = available_cpus() if cpus is None else with_siblings(cpus)
    return [job for job in find_jobs() if job.cpus is None or job.cpus & ours]


def job_words(job: MpiJob) -> str:
    """The job, its process id and user, and where its ranks run."""
    ranks = count(len(job.ranks), "rank")
    if job.cpus is None:
        place = "on CPUs that are not readable"
    elif job.bound:
        place = f"bound to CPUs {cpu_list(job.cpus)}"
    else:
        place = f"not bound, on any of CPUs {cpu_list(job.cpus)}"
    unread = "" if job.readable else " (their environment is not readable)"
    return f"{job.command} (pid {job.pid}, user {job.user}): {ranks}{unread} {place}"


def jobs_words(jobs: Sequence[MpiJob]) -> str:
    """The first jobs, and the number of the others."""
    words = "; ".join(job_words(job) for job in jobs[:MOST])
    return words + (f"; and {len(jobs) - MOST} more" if len(jobs) > MOST else "")


def split_words(jobs: Sequence[MpiJob]) -> str:
    """The command that shows how these jobs and one more get cores of their own."""
    return f"to give each job its own cores:  autotune cluster split {len(jobs) + 1}"


def shared_notes(cpus: frozenset[int] | None, ranks: int, one_node: bool = True) -> list[Note]:
    """Notes on the other jobs on the cores of ``cpus``, and what to do; none without jobs.

    ``ranks`` is the number of ranks that are to be measured. ``one_node``: they may be measured on
    some of the CPUs of this node.
    """
    jobs = jobs_on(cpus)
    if not jobs:
        return []
    others = "Another MPI job runs" if len(jobs) == 1 else f"{len(jobs)} other MPI jobs run"
    first = Note(
        "jobs.shared_cpus",
        f"{others} on CPUs that this measurement uses: {jobs_words(jobs)}.  They slow each other "
        "down, and the guard rejects disturbed runs.",
        {"pids": [job.pid for job in jobs]},
    )
    if not one_node:
        return [first]
    free = available_cpus() - with_siblings(frozenset().union(*(job.cpus or () for job in jobs)))
    if all(job.bound for job in jobs) and count_cores(free) >= ranks:
        words = f"To measure on free cores:  {_cluster_line(free)}\n{_CLUSTER}"
        return [first, Note("jobs.free_cores", words, {"cpus": cpu_list(free)})]
    return [first, *_divided_notes(jobs)]


def _divided_notes(jobs: Sequence[MpiJob]) -> list[Note]:
    try:
        own, *theirs = core_sets(len(jobs) + 1, available_cpus())
    except ValueError:
        words = "There are fewer cores than jobs: let them run one after the other."
        return [Note("jobs.too_many", words, {"jobs": len(jobs) + 1})]
    lines = [
        f"  pid {job.pid}:  {_line(job.library, cpus, len(job.ranks))}"
        for job, cpus in zip(jobs, theirs, strict=True)
    ]
    lines = ["To run at once, on cores of their own:", *lines, f"  here:  {_cluster_line(own)}"]
    lines.append(_CLUSTER)
    cpus = {"here": cpu_list(own), "jobs": [cpu_list(one) for one in theirs]}
    return [Note("jobs.own_cores", "\n".join(lines), cpus)]


_CLUSTER = "  and add to this command:  --cluster NAME"


def _cluster_line(cpus: frozenset[int]) -> str:
    """The command that makes a cluster of these CPUs."""
    return f"autotune cluster init NAME --cpus {cpu_list(cpus)}"


def _line(library: Library | None, cpus: frozenset[int], ranks: int) -> str:
    """The launcher's line for a job on ``cpus``, with as many of the ranks as there are cores."""
    if library is None:
        return f"on CPUs {cpu_list(cpus)}, by the options of its launcher"
    words = adapter(library).line_on(cpus, min(ranks, count_cores(cpus)))
    return shlex.join(as_user_types(words, library.launcher))
