"""Corrections: a line changed in one respect, in the words of its own launcher.

Each function returns None where the launcher has no words for it, or where they are not known.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath

from autotune.check.launch_facts import LaunchFacts
from autotune.check.launch_line import LaunchLine
from autotune.targets.wrapped_launcher import wrapper_length
from runner.cpus import cpu_list
from runner.mpi.discover import adapter
from runner.mpi.intel import WAIT_MODE
from runner.types import LaunchSpec

YIELD = "mpi_yield_when_idle"
"""The parameter of Open MPI with which waiting ranks give their core away."""
_POOL_VARIABLES = {
    "openblas": "OPENBLAS_NUM_THREADS",
    "mkl": "MKL_NUM_THREADS",
    "blis": "BLIS_NUM_THREADS",
}
_CPU_LIST = "GOMP_CPU_AFFINITY"
_PINNING_COMMANDS = ("taskset", "numactl")
_PINNING = ("I_MPI_PIN_PROCESSOR_LIST", "I_MPI_PIN_DOMAIN", "I_MPI_PIN_CELL", "I_MPI_PIN_ORDER")


def family_of(facts: LaunchFacts) -> str:
    """The family of the launcher: ``srun``, that of its library, or "" if it is unknown."""
    if facts.line.is_srun:
        return "srun"
    return "" if facts.library is None else facts.library.family


def threads_variable(facts: LaunchFacts) -> str:
    """The variable that sets the number of threads of each rank: that of the pool, or OpenMP's."""
    if "OMP_NUM_THREADS" in facts.rank_variables:
        return "OMP_NUM_THREADS"
    pools = {pool for rank in facts.ranks for pool in rank.pools}
    own = sorted(_POOL_VARIABLES[pool] for pool in pools if pool in _POOL_VARIABLES)
    return own[0] if len(own) == 1 and not pools & {"gomp", "iomp"} else "OMP_NUM_THREADS"


def with_threads(line: LaunchLine, facts: LaunchFacts, number: int) -> LaunchLine:
    """The line with this number of threads in each rank."""
    return line.with_variable(threads_variable(facts), str(number))


def without_pinning(line: LaunchLine) -> LaunchLine:
    """The line without ``taskset`` and ``numactl``, which give all ranks the same CPUs."""
    for wrapper in _PINNING_COMMANDS:
        line = replace(line, before=_without_command(line.before, wrapper))
        line = replace(line, program=_without_command(line.program, wrapper) or line.program)
    return line


def _without_command(words: tuple[str, ...], command: str) -> tuple[str, ...]:
    """The words without a command that wraps what follows, and without its own words."""
    at = 0
    while at < len(words) and (count := wrapper_length(words[at:])):
        if PurePath(words[at]).name == command:
            return (*words[:at], *words[at + count :])
        at += count
    return words


def _without_cpu_list(line: LaunchLine, facts: LaunchFacts) -> LaunchLine:
    """The line without a list of CPUs that would be the same for the threads of all ranks."""
    if _CPU_LIST not in facts.rank_variables:
        return line
    line = line.without_variable(_CPU_LIST)
    if _CPU_LIST in line.assignments:
        before = tuple(word for word in line.before if not word.startswith(f"{_CPU_LIST}="))
        return replace(line, before=before)
    return replace(line, before=("env", "-u", _CPU_LIST, *line.before))


def with_cores_each(facts: LaunchFacts, number: int) -> LaunchLine | None:
    """The line with which every rank is bound to ``number`` cores of its own."""
    line = _without_cpu_list(without_pinning(facts.line), facts)
    match family_of(facts):
        case "openmpi":
            return _mapped(line.without("rankfile", "rf", "cpu-list", "cpu-set", "bind-to"), number)
        case "mpich":
            policy = "core" if number == 1 else f"core:{number}"
            return _replacing(line, ("bind-to",), "-bind-to", policy)
        case "impi":
            for name in _PINNING:
                line = line.without_variable(name)
            return line.with_variable("I_MPI_PIN_DOMAIN", str(number))
        case "srun":
            bound = line.option("cpu-bind")
            if bound is not None:
                line = line.with_replaced(bound, "--cpu-bind=cores")
            return _replacing(line, ("c", "cpus-per-task"), f"--cpus-per-task={number}")
    return None


def _mapped(line: LaunchLine, number: int) -> LaunchLine:
    """The line of Open MPI with ``PE=`` in its mapping."""
    old = line.option("map-by")
    policy = "slot" if old is None or not old.values else old.values[0]
    policy = re.sub(r":PE=\d+", "", policy, flags=re.IGNORECASE)
    policy = "slot" if policy.lower() in ("", "core", "hwthread", "rankfile") else policy
    return _replacing(line, ("map-by",), "--map-by", f"{policy}:PE={number}")


def _replacing(line: LaunchLine, names: Sequence[str], *words: str) -> LaunchLine:
    """The line with an option in the place of the last one of these names, or behind all."""
    old = line.option(*names)
    return line.with_options(*words) if old is None else line.with_replaced(old, *words)


def unbound(facts: LaunchFacts) -> LaunchLine | None:
    """The line whose ranks may run on all cores."""
    line = facts.line
    match family_of(facts):
        case "openmpi":
            return _replacing(line.without("rankfile", "rf"), ("bind-to",), "--bind-to", "none")
        case "mpich":
            return _replacing(line, ("bind-to",), "-bind-to", "none")
        case "impi":
            return line.with_variable("I_MPI_PIN", "0")
        case "srun":
            return _replacing(line, ("cpu-bind",), "--cpu-bind=none")
    return None


def on_cpus(facts: LaunchFacts, cpus: frozenset[int]) -> LaunchLine | None:
    """The line whose ranks stay on these CPUs, one after the other where it binds them."""
    line = facts.line
    if line.is_srun:
        numbers = ",".join(map(str, sorted(cpus)[: facts.rank_count or 1]))
        return _replacing(line, ("cpu-bind",), f"--cpu-bind=map_cpu:{numbers}")
    if facts.library is None:
        return None
    own = adapter(facts.library)
    placed = {"map_by": ""} if line.option("map-by", "bind-to") else {}
    spec = LaunchSpec(line.program, facts.rank_count or 1, placement=placed, read_back=False)
    words = own.confine(spec, cpus).launch_options
    bare = line.without("rankfile", "rf", "cpu-list", "cpu-set")
    return (
        bare.with_first_option(*words).behind("taskset", "-c", cpu_list(cpus))
        if words
        else (bare.behind("taskset", "-c", cpu_list(cpus)))
    )


def yielding(facts: LaunchFacts) -> LaunchLine | None:
    """The line whose ranks give their core away while they wait."""
    line = facts.line
    own = facts.library.family if facts.library is not None else ""
    match own:
        case "openmpi":
            old = next((one for one in line.parameters if one.values[:1] == (YIELD,)), None)
            if old is not None:
                return line.with_replaced(old, old.words[0], YIELD, "1")
            if line.is_srun or f"OMPI_MCA_{YIELD}" in facts.rank_variables:
                return line.with_variable(f"OMPI_MCA_{YIELD}", "1")
            return line.with_options("--mca", YIELD, "1")
        case "impi":
            return line.without_variable("I_MPI_THREAD_YIELD").with_variable(WAIT_MODE, "1")
    return None
