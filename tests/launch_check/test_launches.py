"""Faults of real launches: each is found in the ranks, and gone with the right line."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.check.finding import LaunchFinding
from autotune.check.gather import Start, gather
from autotune.check.registry import examine
from runner.mpi.library import Library
from tests.mpis import built, on_path

HYBRID = (Path(__file__).parents[1] / "hybrid.c").read_text(encoding="utf-8")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs"),
]


def findings_in(words: Sequence[str]) -> dict[str, LaunchFinding]:
    """The findings about a line whose program runs, without those about other jobs."""
    facts = gather(words, start=Start.PROGRAM)
    facts = replace(facts, node=replace(facts.node, jobs=()))
    return {finding.code: finding for finding in examine(facts)}


def right_line(words: Sequence[str], code: str) -> tuple[str, ...]:
    """The line that a finding gives, in which the fault must be gone."""
    line = findings_in(words)[code].corrected_line
    assert line is not None
    assert code not in findings_in(line)
    return line


def test_threads_on_one_core(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if library.family != "openmpi":
        pytest.skip(f"it is for openmpi, but this library is {library.family}")
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    program = built(library, tmp_path, HYBRID, "-fopenmp")
    right_line([library.launcher, "-n", "1", str(program), "1000000"], "binding.one_core")


def test_threads_and_ranks_beyond_the_cores(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", str(len(os.sched_getaffinity(0))))
    program = built(library, tmp_path, HYBRID, "-fopenmp")
    words = [library.launcher, "-n", "2", str(program), "1000000"]
    if library.family == "openmpi":
        words[1:1] = ["--bind-to", "none"]
    right_line(words, "threads.crowded")


def test_a_launcher_of_another_library(library: Library, tmp_path: Path) -> None:
    other = on_path("mpich-4" if library.family == "openmpi" else "openmpi-4.1")
    program = built(library, tmp_path)
    line = right_line([other.launcher, "-n", "2", str(program)], "worlds.other_library")
    assert line[0] != other.launcher
