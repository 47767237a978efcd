"""Slurm: variables of the job that srun does not hand on as one expects."""

from __future__ import annotations

from collections.abc import Iterator

from autotune.check.finding import Certainty, LaunchFinding, Weight
from autotune.check.launch_facts import LaunchFacts
from autotune.check.rule import LaunchRule

_SINCE = (22, 5)
"""The first version of Slurm whose srun ignores SLURM_CPUS_PER_TASK."""


class CpusPerTask(LaunchRule):
    """srun does not inherit the processors per task of its job."""

    code = "slurm.cpus_per_task"
    weight = Weight.OVER_TWICE
    summary = "srun does not take the CPUs per task from the job"
    explanation = (
        "Up to Slurm 21.08 srun took the CPUs of each task from SLURM_CPUS_PER_TASK, which "
        "#SBATCH --cpus-per-task sets. From 22.05 on it does not: each task has one CPU, and all "
        "its threads share it. The cure is --cpus-per-task on the line of srun, or the variable "
        "SRUN_CPUS_PER_TASK in the script."
    )

    @staticmethod
    def applies(facts: LaunchFacts) -> bool:
        """True if the job asked for several CPUs per task, and this line of srun does not."""
        number = facts.rank_variables.get("SLURM_CPUS_PER_TASK", "")
        return (
            facts.line.is_srun
            and number.isdecimal()
            and int(number) > 1
            and facts.line.option("c", "cpus-per-task", "cpus-per-gpu", "exact") is None
            and "SRUN_CPUS_PER_TASK" not in facts.rank_variables
            and (not facts.slurm_version or facts.slurm_version >= _SINCE)
            and not _have_cpus(facts, int(number))
        )

    def examine(self, facts: LaunchFacts) -> Iterator[LaunchFinding]:
        """A finding if tasks have fewer CPUs than the job asked for, or were not seen."""
        if not self.applies(facts):
            return
        number = facts.rank_variables["SLURM_CPUS_PER_TASK"]
        yield self.finding(
            f"the job has {number} CPUs per task (SLURM_CPUS_PER_TASK), and srun gives each task "
            "one",
            f"the threads of a task share one CPU: up to {number} times as long",
            Certainty.SEEN if facts.ranks else Certainty.KNOWN,
            where="SLURM_CPUS_PER_TASK",
            corrected_line=facts.line.with_options(f"--cpus-per-task={number}").words,
            advice="or in the script:  export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK",
        )


def _have_cpus(facts: LaunchFacts, number: int) -> bool:
    """True if every task was seen with so many CPUs."""
    return bool(facts.ranks) and all(len(rank.cpus) >= number for rank in facts.ranks)


class ExportNone(LaunchRule):
    """srun hides the variables of the script from the ranks."""

    code = "slurm.export_none"
    weight = Weight.WRONG
    summary = "srun does not hand the variables of the script to the ranks"
    explanation = (
        "A job that was submitted with --export=NONE (or with a list of names) has "
        "SLURM_EXPORT_ENV, and srun obeys it: what the script exports, such as OMP_NUM_THREADS or "
        "LD_LIBRARY_PATH, does not reach the ranks. The cure is --export=ALL on the line of srun, "
        "or `unset SLURM_EXPORT_ENV` in the script."
    )

    def examine(self, facts: LaunchFacts) -> Iterator[LaunchFinding]:
        """A finding if srun inherits the restriction, and a variable that matters is lost."""
        asked = facts.rank_variables.get("SLURM_EXPORT_ENV", "ALL").split(",")
        if not facts.line.is_srun or "ALL" in asked or facts.line.option("export") is not None:
            return
        names = [name for name in facts.environment if _matters(name) and name not in asked]
        lost = [name for name in names if all(name not in rank.environment for rank in facts.ranks)]
        if not lost:
            return
        yield self.finding(
            f"SLURM_EXPORT_ENV={','.join(asked)} hides {', '.join(sorted(lost))} from the ranks",
            "the ranks run with other numbers of threads and parameters than the script sets",
            Certainty.SEEN if facts.ranks else Certainty.KNOWN,
            where="SLURM_EXPORT_ENV",
            corrected_line=facts.line.with_options("--export=ALL").words,
        )


_MATTERING = (
    *("OMP_", "KMP_", "GOMP_", "MKL_", "OPENBLAS_", "BLIS_", "LD_LIBRARY_PATH"),
    *("OMPI_MCA_", "PRTE_MCA_", "MPICH_", "MPIR_", "I_MPI_", "FI_", "UCX_", "PMIX_"),
)


def _matters(name: str) -> bool:
    """True for variables that change how ranks run."""
    return name.startswith(_MATTERING)
