"""Slurm as a scheduler, by its commands sbatch, squeue and scancel."""

from __future__ import annotations

import math
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence

from runner.errors import RunnerError
from runner.scheduler.base import Allocation, Cause, Job, JobEnd, Scheduler, State, output_of

_WAITING = frozenset({"PENDING", "CONFIGURING", "REQUEUED", "SUSPENDED", "RESV_DEL_HOLD"})
_END_STATES = frozenset(
    {
        *("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED"),
        *("BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY", "REVOKED"),
    }
)
_CAUSES: dict[str, Cause] = {
    "TIMEOUT": "time_limit",
    "DEADLINE": "time_limit",
    "OUT_OF_MEMORY": "memory",
    "NODE_FAIL": "node",
    "BOOT_FAIL": "node",
    "PREEMPTED": "preempted",
    "REVOKED": "preempted",
    "CANCELLED": "cancelled",
}
"""Final states that Slurm gives a job which did not end by itself."""

_SLOTS = ("SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE")
_REPETITION = re.compile(r"([0-9]{1,7})(?:\(x([0-9]{1,7})\))?")


def _sum_of(text: str) -> int | None:
    """The sum of a list by node such as ``2(x3),1``; None for other text."""
    matches = [_REPETITION.fullmatch(part.strip()) for part in text.split(",")]
    return sum(int(f[1]) * int(f[2] or 1) for f in matches if f) if all(matches) else None


def _variable(environment: Mapping[str, str], name: str) -> str:
    """A variable of the job; of a heterogeneous one that of its first part, in which srun starts
    ranks."""
    return environment.get(name, environment.get(f"{name}_HET_GROUP_0", ""))


class SlurmScheduler(Scheduler):
    """Each worker is a batch job on exclusive nodes (``--exclusive``)."""

    name = "slurm"

    @classmethod
    def allocation(cls, environment: Mapping[str, str]) -> Allocation | None:
        nodes = _variable(environment, "SLURM_JOB_NODELIST")
        count = _variable(environment, "SLURM_JOB_NUM_NODES")
        if not nodes and not count:
            return None
        number = int(count) if count.isdigit() else None
        # A job without --ntasks has one task on each node, but all of its CPUs.
        texts = (_variable(environment, name) for name in _SLOTS)
        slots = max((total for text in texts if (total := _sum_of(text)) is not None), default=None)
        return Allocation(nodes, several=count not in ("", "1"), count=number, slots=slots)

    def require(self) -> None:
        missing = [word for word in ("sbatch", "squeue", "scancel") if shutil.which(word) is None]
        if missing:
            raise RunnerError(
                f"Slurm is not installed here ({', '.join(missing)} not found); start workers on a "
                "login node of the cluster, or use --scheduler local",
                code="scheduler.missing",
            )

    def submit(self, job: Job) -> str:
        arguments = [
            *("sbatch", "--parsable", "--exclusive", "--no-requeue", "--export=ALL"),
            *("--nodes", str(job.nodes), "--job-name", job.name),
            *("--output", str(job.log).replace("%", "%%")),
        ]
        if job.time_s is not None:
            arguments += ["--time", str(math.ceil(job.time_s / 60))]
        if job.cwd is not None:
            arguments += ["--chdir", job.cwd]
        # sbatch accepts only a script, so every word in it is quoted.
        script = f"#!/bin/sh\nexec {shlex.join(job.words)}\n"
        answer = output_of([*arguments, *job.options], script, job.env)
        return answer.strip().partition(";")[0]

    def states(self, ids: Sequence[str]) -> dict[str, State]:
        if not ids:
            return {}
        states_by_id: dict[str, State] = {}
        # squeue lists all jobs of the user; given the number of a forgotten job, it would fail.
        answer = output_of(["squeue", "--noheader", "--me", "--format", "%i %T"])
        for line in answer.splitlines():
            number, _, state = line.strip().partition(" ")
            if state in _WAITING:
                states_by_id[number] = "pending"
            elif state and state not in _END_STATES:
                states_by_id[number] = "running"
        return {number: states_by_id.get(number, "ended") for number in ids}

    def end_of(self, job: str) -> JobEnd | None:
        try:
            answer = output_of(["scontrol", "--oneliner", "show", "job", job])
        except RunnerError:
            return None  # The controller has forgotten the job, or does not answer.
        fields = dict(word.split("=", 1) for word in answer.split() if "=" in word)
        state = fields.get("JobState", "")
        if state not in _CAUSES:
            return None
        return JobEnd(_CAUSES[state], f"Slurm: {state}", fields.get("TimeLimit", ""))

    def cancel(self, ids: Sequence[str]) -> None:
        living = [number for number, state in self.states(ids).items() if state != "ended"]
        if living:
            output_of(["scancel", *living])
