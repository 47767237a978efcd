"""The smallest useful task: its arithmetic, its programs, and the command as it is typed."""

from __future__ import annotations

import itertools
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.errors import UsageError, WorkError
from benchmarks.compiled import NoCompiler, compiled_for
from benchmarks.harness.bench import Bench
from benchmarks.harness.launches import Place
from benchmarks.mate_metg import Stencils, Sweep, iterations_for, main, quartiles
from benchmarks.metg.chain import chain, combined
from benchmarks.metg.granularity import (
    ABOVE,
    BELOW,
    LONGEST_US,
    SHORTEST_US,
    efficiency,
    figure,
    lengths,
    lengths_for,
    metg,
)
from benchmarks.metg.programs import Program
from runner.launch import Runner
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from runner.runtimes.core.core import supported
from tests.refusals import refused

ROOT = Path(__file__).parents[2]
STEP_US = 0.0015
GRANULARITY = [STEP_US * steps for steps in lengths(STEP_US)]


@given(st.floats(0.05, 20))
def test_metg_of_a_constant_cost_per_task_is_that_cost(cost_us: float) -> None:
    """With ``cost`` added to every body the efficiency is a half where the body takes as long."""
    found = [g / (g + cost_us) for g in GRANULARITY]
    assert metg(GRANULARITY, found) == pytest.approx(cost_us, rel=0.02)


def test_metg_outside_the_lengths_is_said_so() -> None:
    assert metg(GRANULARITY, [0.9] * len(GRANULARITY)) == BELOW
    assert metg(GRANULARITY, [0.1] * len(GRANULARITY)) == ABOVE
    assert figure(BELOW, GRANULARITY).startswith("<0.0")
    assert figure(ABOVE, GRANULARITY) == ">50"


def test_metg_is_the_last_length_that_is_inefficient() -> None:
    """A longer body that is inefficient again is no METG yet."""
    assert 4 < metg([1, 2, 4, 8], [0.3, 0.7, 0.4, 0.8]) < 8


def test_lengths_cover_the_range_in_equal_factors() -> None:
    assert GRANULARITY[0] == pytest.approx(SHORTEST_US, rel=0.05)
    assert GRANULARITY[-1] == pytest.approx(LONGEST_US, rel=0.05)
    factors = [b / a for a, b in itertools.pairwise(GRANULARITY)]
    assert 1.3 < min(factors) <= max(factors) < 1.5


def test_efficiency_counts_all_points_and_workers() -> None:
    # 8 points x 1000 tasks of 1 us take 4 ms on two workers.
    assert efficiency(1.0, 1000, 4e-3, 2) == pytest.approx(1.0)
    assert efficiency(1.0, 1000, 8e-3, 2) == pytest.approx(0.5)


@given(st.lists(st.floats(0, 1e6) | st.just(math.inf), min_size=1))
def test_quartiles_are_samples_in_order(samples: list[float]) -> None:
    found = quartiles(samples)
    assert found["min"] == min(samples)
    assert list(found.values()) == sorted(found.values())
    assert set(found.values()) <= set(samples)


def test_iterations_fill_the_time_within_their_bounds() -> None:
    assert iterations_for([0.02, 1e-9, 10.0], [20] * 3, 0.01) == [20, 200_000, 20]
    assert iterations_for([0.001, 0.002], [20, 40], 0.01) == [200, 200]


def test_between_nodes_lengths_follow_the_latency_and_nodes_share_cores() -> None:
    steps = lengths_for(0.5, 1000.0)
    assert steps[0] * 0.5 == pytest.approx(20.0)
    assert steps[-1] * 0.5 == pytest.approx(5000.0)
    assert Program("C", 4, 1, "boundary", shared=2).cores == 2
    assert Program("C", 4, 1, "boundary").cores == 4


def test_a_disturbed_round_is_dropped() -> None:
    """In the second round the longest tasks were 20 % slower, in the third one the shortest.

    The smallest times are of all rounds: other work makes none smaller.
    """
    rounds = [[1e-3, 1e-2], [5e-4, 1.2e-2], [3e-3, 1.05e-2]]
    sweep = Sweep(_program(""), [1000, 100], rounds)
    assert sweep.kept == [rounds[0], rounds[2]]
    assert len(sweep.efficiencies([0.1, 10.0])) == 2
    assert sweep.best([0.1, 10.0]) == pytest.approx([1.6, 0.8])


def test_wrong_values_of_a_program_are_an_error(library: Library) -> None:
    """A program that skips work would look fast."""
    values = [0.1 + 0.1 * point for point in range(8)]
    for _ in range(5):
        ends = [values[0], *values, values[-1]]
        values = [chain(combined(*ends[n : n + 3]), 3) for n in range(8)]
    right = f"print('{json.dumps({'wall_s': [1.0], 'values': [values]})}')"
    values[3] = math.nextafter(values[3], 1)
    wrong = f"print('{json.dumps({'wall_s': [1.0], 'values': [values]})}')"
    with Runner(adapter(library), guard=False) as runner:
        bench = Stencils(Place(library), Bench(runner), [3])
        assert bench.run(_program(right), [5]) == [1.0]
        with pytest.raises(WorkError, match="wrong"):
            bench.run(_program(wrong), [5])


def test_a_program_that_fails_is_named_with_its_last_words(library: Library) -> None:
    runner = Runner(adapter(library), guard=False)
    with runner, pytest.raises(WorkError, match="today"):
        Stencils(Place(library), Bench(runner), [3]).run(
            _program("raise SystemExit('not today')"), [5]
        )


def _program(text: str) -> Program:
    return Program("Python", 1, 1, "inside", (sys.executable, "-c", text), launched=False)


def test_without_a_compiler_there_is_no_c_program(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with refused(NoCompiler, "benchmark.compiler"):
        compiled_for(library, ROOT / "benchmarks/metg/stencil.c", tmp_path)


Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def command() -> Command:
    """``command("--quick", ...)`` runs the benchmark as it is typed."""

    def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "benchmarks.mate_metg", *words],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
            env={**os.environ, **variables},
            timeout=300,
        )

    return run


@pytest.mark.slow
@pytest.mark.mpi
def test_every_program_is_measured_and_computes_the_same(
    command: Command, library: Library, tmp_path: Path
) -> None:
    """The values are compared inside; so exit code 0 says that all programs agree to the bit."""
    out = tmp_path / "figures.json"
    done = command("--quick", "--json", str(out))
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())
    reasons = found["not_measured"]
    assert "MATE --core python, 1x1, inside" in found["metg_us"]
    assert set(found["metg_us"]) == set(found["runs"])
    if supported():
        compiled = "MATE, compiled body, 2x1, boundary"
        assert compiled in found["metg_us"].keys() | reasons.keys()
    assert reasons["charm4py, 1x1, messages"] == "no --charm4py PYTHON"
    assert reasons["charm4py, 1x1, messages"] in done.stdout
    assert {"min", "q1", "median", "q3", "of_smallest"} <= found["metg_us"][
        "MATE --core python, 1x1, inside"
    ].keys()
    tables = done.stdout[: done.stdout.index("benchmark ")]
    assert max(map(len, tables.splitlines())) <= 80


@pytest.mark.mpi
def test_without_a_compiler_the_rows_say_so(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTOTUNE_LOCK_FILE", str(tmp_path / "lock"))  # the tests hold the other one
    monkeypatch.setenv("PATH", f"{tmp_path}")
    out = tmp_path / "figures.json"
    words = ["--quick", "--only", "C, a loop", "--json", str(out)]
    monkeypatch.setattr(sys, "argv", ["mate_metg.py", *words])
    main()
    assert list(json.loads(out.read_text())["not_measured"]) == ["C, a loop, 1x1, inside"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--charm4py", "/nowhere/python"], "benchmark.charm4py"),
        (["--only", "Fortran"], "benchmark.program"),
        (["--rounds", "0"], "benchmark.rounds"),
    ],
)
def test_wrong_words_are_refused(
    library: Library, monkeypatch: pytest.MonkeyPatch, words: list[str], code: str
) -> None:
    monkeypatch.setattr(sys, "argv", ["mate_metg.py", "--quick", *words])
    with pytest.raises(UsageError) as refused:
        main()
    assert refused.value.code == code
