"""One run of a program under the profiling library, or under the substitute for mpi4py."""

from __future__ import annotations

import dataclasses
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from runner.c_library import NoCompiler, preload_value
from runner.errors import RunnerError
from runner.launch import Runner
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from runner.outcome.failure_message import telling_lines
from runner.trace import substitute
from runner.trace.build import is_static, make_cache, profiling_library
from runner.trace.counts import RankCounts, read_ranks
from runner.types import GUARD_STATES, LaunchSpec, RunRecord

DIRECTORY = "AUTOTUNE_TRACE_DIR"
ATTEMPTS = 3
"""Number of runs that foreign load may spoil before the trace gives up."""

Method = Literal["auto", "pmpi", "mpi4py"]


class NotTraceable(RunnerError):
    """The program or the environment prevents preloading; the program was not run."""


@dataclass(frozen=True)
class TracedRun:
    """A finished run and the counts of every rank; ``method`` is ``pmpi`` or ``mpi4py``."""

    record: RunRecord
    ranks: list[RankCounts]
    method: str


def trace(
    runner: Runner,
    spec: LaunchSpec,
    method: Method = "auto",
    tell: Callable[[str], None] = lambda words: None,
) -> TracedRun:
    """Run ``spec`` once, traced; repeat a run that foreign load spoilt.

    ``auto`` uses the profiling library or, without a compiler, the substitute for mpi4py; ``tell``
    is called if it uses the substitute. Raises NotTraceable for a statically linked program, and
    RunnerError if the run failed, was not MPI, or left no complete counts.
    """
    program = shutil.which(spec.program[0], path=os.environ.get("PATH")) or spec.program[0]
    if is_static(Path(program)):
        raise NotTraceable(
            f"{spec.program[0]} is statically linked: the profiling library cannot be preloaded.\n"
            "Link it dynamically (without -static) and try again",
            code="trace.not_preloadable",
        )
    library = runner.adapter.library
    means, variables = _means(library, method, tell)
    for attempt in range(ATTEMPTS):
        with tempfile.TemporaryDirectory(dir=make_cache(), prefix="run-") as place:
            environment = {**variables, DIRECTORY: place}
            record = runner.run(with_variables(spec, library, environment))
            if record.state in GUARD_STATES and attempt < ATTEMPTS - 1:
                tell(f"{record.reason}; trying again")
                continue
            _require_success(record)
            return TracedRun(record, read_ranks(Path(place), spec.ranks), means)
    raise AssertionError("unreachable: the last attempt returns or raises")


@dataclass(frozen=True)
class CountedRun:
    """A run, and the calls of all ranks together.

    ``calls`` maps operations to their number in the timed part: between ``MPI_Pcontrol(1)`` and
    ``MPI_Pcontrol(0)`` if the program marks it and prints its own figure, else the whole run. It is
    None if the program was run without counting because it cannot be counted. ``commutes``: True if
    all operations of the whole run commute; None if unknown.
    """

    record: RunRecord
    calls: dict[str, int] | None = None
    commutes: bool | None = None


def run_with_counts(runner: Runner, spec: LaunchSpec) -> CountedRun:
    """One run with the profiling library, or without it if that is impossible."""
    program = shutil.which(spec.program[0], path=os.environ.get("PATH")) or spec.program[0]
    try:
        if is_static(Path(program)):
            return CountedRun(runner.run(spec))
        _, variables = _means(runner.adapter.library, "pmpi", lambda words: None)
        with tempfile.TemporaryDirectory(dir=make_cache(), prefix="run-") as place:
            environment = {**variables, DIRECTORY: place}
            record = runner.run(with_variables(spec, runner.adapter.library, environment))
            ranks = read_ranks(Path(place), spec.ranks) if record.valid else []
    except RunnerError:
        return CountedRun(runner.run(spec))
    if not record.valid and record.state not in GUARD_STATES:
        # Whatever the problem is, the user should see it without the profiling library.
        return CountedRun(runner.run(spec))
    calls: dict[str, int] = {}
    for rank in ranks:
        whole = {name: counts.calls + counts.nonblocking for name, counts in rank.ops.items()}
        for name, count in (
            rank.timed_calls if rank.timed_calls and spec.metric else whole
        ).items():
            calls[name] = calls.get(name, 0) + count
    return CountedRun(record, calls or None, _commutes(ranks))


def _commutes(ranks: Sequence[RankCounts]) -> bool | None:
    """True if the operations of all ranks commute; None if unknown for one of them."""
    answers = {rank.commutes for rank in ranks}
    if False in answers:
        return False
    return True if answers == {True} else None


def with_variables(spec: LaunchSpec, library: Library, variables: dict[str, str]) -> LaunchSpec:
    """``spec`` with environment variables for the ranks only, on all nodes.

    The variables do not go into the launcher's own environment, because the launcher must not load
    the library.
    """
    options = adapter(library).rank_environment(variables)
    return dataclasses.replace(spec, launch_options=(*options, *spec.launch_options))


def _means(
    library: Library, method: Method, tell: Callable[[str], None]
) -> tuple[str, dict[str, str]]:
    """The method, and the variables that make the ranks load it."""
    if method == "mpi4py":
        return "mpi4py", substitute.variables()
    try:
        profiler = profiling_library(library, tell)
    except NoCompiler as problem:
        if method == "pmpi":
            raise
        tell(f"{str(problem).splitlines()[0]}: counting in mpi4py instead (Python programs only)")
        return "mpi4py", substitute.variables()
    try:
        return "pmpi", {"LD_PRELOAD": preload_value(profiler, os.environ.get("LD_PRELOAD"))}
    except RunnerError as problem:
        raise NotTraceable(str(problem), code=problem.code) from None


def _require_success(record: RunRecord) -> None:
    # A program has features even if it prints no figure.
    if record.valid or record.state == "no_metric":
        return
    words = f"the traced run ended as {record.state}: {record.reason}"
    if record.state == "foreign_load":
        words += (
            f" ({ATTEMPTS} runs).\nTry again on a quiet machine; with --no-guard the "
            "counts are right as well, but the shares of time are not"
        )
    elif record.state == "no_mpi":
        words += ".\nFeatures can be traced only of a program that uses MPI"
    else:
        lines = telling_lines(record.stderr_tail, record.stdout_tail)
        if lines:
            words += "\nlast lines of the program's output:" + "".join(
                f"\n  | {line}" for line in lines
            )
    raise RunnerError(words, code="trace.run_fails")
