"""Worlds: whether the ranks are one job, and of which MPI library."""

from __future__ import annotations

from collections.abc import Iterator

from autotune.check.finding import Certainty, LaunchFinding, Weight
from autotune.check.launch_facts import LaunchFacts
from autotune.check.rule import LaunchRule
from autotune.wording import count
from runner.mpi.library import Library
from runner.mpi.linkage import LinkedLibrary

_PROTOCOLS = {
    "openmpi": ("pmix", "pmix_v5", "pmix_v4", "pmix_v3"),
    "mpich": ("pmi2", "pmix"),
    "impi": ("pmi2", "pmix"),
}
"""What each family can speak with Slurm, the best first."""


class ForeignLauncher(LaunchRule):
    """The program is linked with another MPI library than the launcher's."""

    code = "worlds.other_library"
    weight = Weight.WRONG
    summary = "the launcher belongs to another MPI library than the program"
    explanation = (
        "A program finds its other ranks through the launcher of its own MPI library. Under "
        "another launcher each process sees no other one, takes itself for rank 0 of 1, and does "
        "the whole work: N jobs run for one, and often write the same files. The library of a "
        "program is that which the loader finds for it, or which its mpi4py loads. The cure is the "
        "launcher of that library."
    )

    def examine(self, facts: LaunchFacts) -> Iterator[LaunchFinding]:
        """A finding if both libraries are known and cannot form one job."""
        own, library = facts.program_library, facts.library
        if own is None or library is None or facts.line.is_srun or (facts.rank_count or 1) < 2:
            return
        if own.family == library.family and (_same_series(own, library) or not _is_alone(facts)):
            return
        if {own.family, library.family} <= {"mpich", "impi"} and not _is_alone(facts):
            return  # Hydra's protocol is common to both.
        if facts.ranks and all((one.world_size or 0) > 1 for one in facts.ranks):
            return  # They are one job, whatever the loader says outside of the launch.
        line = facts.line.with_launcher(facts.program_launcher).words
        yield self.finding(
            f"{facts.line.launcher} is of {_title(library.family, library.version)}, and the "
            f"program loads {_title(own.family, own.version)} ({own.place})",
            f"{count(facts.rank_count or 0, 'world')} of 1 rank: each process does the whole work",
            Certainty.SEEN if _is_alone(facts) else Certainty.KNOWN,
            where=own.place,
            corrected_line=line if facts.program_launcher else None,
        )


class MixedVersions(LaunchRule):
    """Launcher and program are of two versions of one library, and still form one job."""

    code = "worlds.mixed_versions"
    weight = Weight.SLIGHT
    summary = "the launcher is of another version than the library of the program"
    explanation = (
        "Open MPI 4.1 and 5.0 can start each other's programs, because both speak PMIx. But the "
        "launcher reads parameters, files and options as its own version does, and the ranks know "
        "those of theirs: a name that one of them lacks does nothing. Which library the ranks "
        "load may even depend on the launcher. The cure is the launcher of the program's library."
    )

    def examine(self, facts: LaunchFacts) -> Iterator[LaunchFinding]:
        """A finding if both are of one family and of two series, and the ranks are one job."""
        own, library = facts.program_library, facts.library
        if own is None or library is None or facts.line.is_srun or own.family != library.family:
            return
        if _same_series(own, library) or ((facts.rank_count or 1) > 1 and _is_alone(facts)):
            return
        line = facts.line.with_launcher(facts.program_launcher).words
        yield self.finding(
            f"{facts.line.launcher} is of {_title(library.family, library.version)}, and the "
            f"program is linked with {_title(own.family, own.version)} ({own.place})",
            "parameters that only one of the two versions has do nothing",
            Certainty.KNOWN,
            where=own.place,
            corrected_line=line if facts.program_launcher else None,
        )


def _same_series(own: LinkedLibrary, library: Library) -> bool:
    """True for versions of one major number, or of a family whose versions all fit together."""
    return own.family != "openmpi" or own.version.split(".")[0] == library.version.split(".")[0]


class Singletons(LaunchRule):
    """Ranks that do not know each other though launcher and program have the same library."""

    code = "worlds.singletons"
    weight = Weight.WRONG
    summary = "each rank is a world of its own"
    explanation = (
        "The launcher started N processes, and MPI_COMM_WORLD of each has one rank. srun does so "
        "without a warning if it does not speak the protocol of the MPI library (--mpi): Open MPI "
        "5 needs pmix. Each process then does the whole work. The size of the world is read from "
        "the ranks, or from the variables that the launcher gives them."
    )

    def examine(self, facts: LaunchFacts) -> Iterator[LaunchFinding]:
        """A finding if more than one rank was started and each is alone."""
        if (facts.rank_count or 1) < 2 or not _is_alone(facts) or _library_differs(facts):
            return
        yield self.finding(
            f"{facts.rank_count} processes were started, and each is rank 0 of 1",
            f"{facts.rank_count} worlds of 1 rank: each process does the whole work",
            Certainty.SEEN,
            corrected_line=_with_protocol(facts),
            advice="" if facts.line.is_srun else "start it with the launcher of its own library",
        )


def _is_alone(facts: LaunchFacts) -> bool:
    return bool(facts.ranks) and all(one.world_size == 1 for one in facts.ranks)


def _library_differs(facts: LaunchFacts) -> bool:
    return any(True for _ in ForeignLauncher().examine(facts))


def _with_protocol(facts: LaunchFacts) -> tuple[str, ...] | None:
    """The line of srun with the protocol of the program's library; None for other launchers."""
    if not facts.line.is_srun or facts.program_library is None:
        return None
    wanted = _PROTOCOLS.get(facts.program_library.family, ())
    protocol = next((one for one in wanted if one in facts.mpi_types), None)
    old = facts.line.option("mpi")
    if protocol is None or (old is not None and protocol in old.values):
        return None
    option = f"--mpi={protocol}"
    if old is not None:
        return facts.line.with_replaced(old, option).words
    return facts.line.with_first_option(option).words


def _title(family: str, version: str) -> str:
    names = {"openmpi": "Open MPI", "mpich": "MPICH", "impi": "Intel MPI"}
    return f"{names.get(family, family)} {version}"
