"""The programs of ``benchmarks.mate_metg``: each runtime in the layouts that are compared."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.compiled import NoCompiler, compiled_for, compiled_library
from runner.mpi.library import Library
from runner.runtimes.core.core import supported

SOURCES = Path(__file__).parent
GOAL_BOUNDARY_US, GOAL_INSIDE_US = 0.75, 0.3


@dataclass(frozen=True)
class Program:
    """One row: a runtime in a layout, and how it is started.

    ``processes`` x ``workers`` cores are used, of at most ``shared`` cores if nodes share them.
    ``words`` start it; the cases follow. ``launched`` is False for a program that starts its own
    processes. ``missing`` says why it cannot be measured, or is empty.
    """

    runtime: str
    processes: int
    workers: int
    edges: str
    words: tuple[str, ...] = ()
    launched: bool = True
    goal_us: float | None = None
    missing: str = ""
    shared: int | None = None

    @property
    def cores(self) -> int:
        wanted = self.processes * self.workers
        return wanted if self.shared is None else min(wanted, self.shared)

    @property
    def name(self) -> str:
        return f"{self.runtime}, {self.processes}x{self.workers}, {self.edges}"


def programs(library: Library, place: Path, charm_python: str | None) -> list[Program]:
    """Every row; C programs are compiled into the directory ``place``.

    ``charm_python`` is a Python that has charm4py, or None. Rows of a core that does not run on
    this processor are left out.
    """
    there = len(os.sched_getaffinity(0))
    found = [*_in_c(library, place), *_mate(), *_charm(place, charm_python)]
    return [
        p if p.cores <= there or p.missing else _without(p, f"needs {p.cores} cores") for p in found
    ]


def far_programs(library: Library, place: Path, nodes: int) -> list[Program]:
    """The rows with one process on each of so many nodes; these may share the machine's cores."""
    there = len(os.sched_getaffinity(0))
    near = [*_in_c(library, place), *_mate()]
    return [
        replace(p, processes=nodes, goal_us=None, shared=there, words=_of_nodes(p.words, nodes))
        for p in near
        if p.processes > 1
    ]


def _of_nodes(words: tuple[str, ...], nodes: int) -> tuple[str, ...]:
    """The words with as many processes as there are nodes; those of C need no number."""
    if "--processes" not in words:
        return words
    at = words.index("--processes") + 1
    return (*words[:at], f"{nodes}", *words[at + 1 :])


def _without(program: Program, reason: str) -> Program:
    return Program(
        program.runtime, program.processes, program.workers, program.edges, missing=reason
    )


def _in_c(library: Library, place: Path) -> list[Program]:
    reason, start = "", ""
    try:
        start = str(compiled_for(library, SOURCES / "stencil.c", place))
    except NoCompiler as error:
        reason = f"{error}"
    layouts = [
        ("C over MPI", 2, 1, "boundary", "boundary"),
        ("C over MPI", 2, 1, "messages", "messages"),
        ("C, a loop", 1, 1, "inside", "inside"),
        ("C, two threads", 1, 2, "inside", "threads"),
    ]
    return [
        Program(name, processes, workers, edges, (start, kind), missing=reason)
        for name, processes, workers, edges, kind in layouts
    ]


def _mate() -> list[Program]:
    found = []
    if supported():
        found += [
            _stencil("compiled", "native", 2, 1, "boundary", GOAL_BOUNDARY_US),
            _stencil("compiled", "native", 2, 1, "messages"),
            _stencil("compiled", "native", 1, 1, "inside", GOAL_INSIDE_US),
            _stencil("compiled", "native", 1, 2, "inside", GOAL_INSIDE_US),
            _stencil("python", "native", 2, 1, "boundary"),
            _stencil("python", "native", 1, 1, "inside"),
        ]
    return [
        *found,
        _stencil("python", "python", 2, 1, "boundary"),
        _stencil("python", "python", 1, 1, "inside"),
    ]


def _stencil(
    body: str, core: str, processes: int, workers: int, edges: str, goal: float | None = None
) -> Program:
    options = ["--body", body, "--core", core, "--edges", edges]
    options += ["--processes", f"{processes}", "--workers", f"{workers}"]
    return Program(
        "MATE --core python"
        if core == "python"
        else f"MATE, {'Python' if body == 'python' else body} body",
        processes,
        workers,
        edges,
        (sys.executable, "-m", "benchmarks.metg.mate_stencil", *options),
        goal_us=goal,
    )


def _charm(place: Path, interpreter: str | None) -> list[Program]:
    """One and two processing elements (PEs), pinned; every edge is a message of the runtime."""
    reason, library = "", ""
    if interpreter is None:
        reason = "no --charm4py PYTHON"
    else:
        try:
            library = str(compiled_library(SOURCES / "chain.c", place))
        except NoCompiler as error:
            reason = f"{error}"
    program = (str(SOURCES / "charm_stencil.py"), library, "+pemap")
    cpus = sorted(os.sched_getaffinity(0))
    one = (interpreter or "", *program, f"{cpus[0]}")
    two = (interpreter or "", "-m", "charmrun.start", "+p2", "++local", *program, _listed(cpus[:2]))
    return [
        Program("charm4py", 1, 1, "messages", one, launched=False, missing=reason),
        Program("charm4py", 2, 1, "messages", two, launched=False, missing=reason),
    ]


def _listed(cpus: list[int]) -> str:
    return ",".join(map(str, cpus))
