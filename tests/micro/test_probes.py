"""The probes: sizes, every operation once under the real mpirun, and what is printed."""

from __future__ import annotations

import itertools
import statistics
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from autotune.config.app import load_app
from runner.message_sizes import BATCHES, LEAST, MOST, calls, sizes
from runner.programs.apps.common.errors import AppUsageError
from runner.programs.micro.__main__ import _parse, help_text
from runner.programs.micro.operations import OPERATIONS, WINDOW
from tests.apps.conftest import Launch, refusal_of, run_commands
from tests.case_table import case_table
from tests.refusals import refusal, refused


@case_table(
    ("text", "expected"),
    [
        ("8", [8]),
        ("4k", [4096]),
        ("8,4K,1m", [8, 4096, 1 << 20]),
        ("8:128", [8, 32, 128]),
        ("8:100", [8, 32, 100]),
        ("8:8", [8]),
    ],
)
def test_sizes(text: str, expected: list[int]) -> None:
    assert sizes(text) == expected


@given(st.integers(1, 1 << 24), st.integers(0, 1 << 24))
def test_a_range_has_both_ends_and_steps_of_at_most_4(low: int, more: int) -> None:
    found = sizes(f"{low}:{low + more}")
    assert found[0] == low
    assert found[-1] == low + more
    assert all(a < b <= 4 * a for a, b in itertools.pairwise(found))


@given(st.integers(0, 1 << 30))
def test_calls_fall_with_the_size(size: int) -> None:
    assert LEAST <= calls(size + 1) <= calls(size) <= MOST


def test_wrong_use(snapshot: SnapshotAssertion) -> None:
    lines = [
        *("foo", "", "bcast --buffers 2", "bcast --size 0", "bcast --size 8,"),
        *("bcast --size 1m:8", "bcast --count 0"),
    ]
    found = {line: refusal(AppUsageError, _parse, line.split(), 2) for line in lines}
    found["1 rank"] = refusal(AppUsageError, _parse, ["bw"], 1)
    assert found == snapshot


def test_help_names_every_operation() -> None:
    assert all(f"\n  {name} " in help_text() for name in OPERATIONS)
    assert max(map(len, help_text().splitlines())) <= 80
    assert isinstance(_parse(["--help"], 1).help, bool)


def test_every_input_of_the_app_is_understood() -> None:
    app = load_app("micro")
    done = set()
    for name, given_input in app.inputs.items():
        parsed = _parse(list(given_input.args), 2)
        assert name.startswith(parsed.operation)
        done.add(parsed.operation)
    assert done == set(OPERATIONS)


@pytest.mark.mpi
def test_each_operation_runs(launch: Launch) -> None:
    lines = [
        ["runner.programs.micro", name, "--size", "8,4k", "--count", "40"] for name in OPERATIONS
    ]
    lines.append(["runner.programs.micro", "bibw", "--size", "4k", "--count", "20"])
    points = "pingpong:8/4096+barrier:0+bcast:8"
    lines.append(["runner.programs.micro.probe", "--points", points])
    begin = time.monotonic()
    *found, single, probe = run_commands(launch, 2, lines)
    taken_s = time.monotonic() - begin
    for name, done in zip(OPERATIONS, found, strict=True):
        assert done.code == 0, done.err
        check(name, done.result)
    # A single size stands at the top.
    result = single.result
    assert result["size"] == 4096
    assert result["us"] == result["sizes"][0]["us"]
    assert result["mb_s"] == pytest.approx(2 * WINDOW * 4096 / result["us"])
    assert f"{result['mb_s']:.1f}" in single.out.splitlines()[-2]
    # All calls of the probe together took no longer than the job.
    rows = probe.result["points"]
    assert [row["size"] for row in rows] == [8, 4096, 0, 8]
    assert 0 < sum(row["us"] * row["calls"] for row in rows) < 1e6 * taken_s


def check(name: str, result: dict[str, Any]) -> None:
    assert (result["benchmark"], result["ranks"]) == (name, 2)
    assert [p["size"] for p in result["sizes"]] == ([8, 4096] if name != "barrier" else [0])
    for point in result["sizes"]:
        assert point["count"] == 40
        assert len(point["batches_us"]) == BATCHES
        assert point["us"] == pytest.approx(statistics.median(point["batches_us"]))
        assert point["best_us"] == pytest.approx(min(point["batches_us"]))
        assert point["us"] > 0
        assert sum(point["batches_us"]) * 2e-6 == pytest.approx(point["seconds"])
    assert result["seconds"] == pytest.approx(sum(p["seconds"] for p in result["sizes"]))


def test_options_are_not_abbreviated() -> None:
    with refused(AppUsageError, "app_option.syntax"):
        _parse(["bcast", "--siz", "8"], 2)


WRONG = ["bcast --mcoll ring", "allgather --mcoll tree", "allgather --mcoll-objects 2"]


@pytest.mark.mpi
def test_several_objects_are_timed_alike_or_refused(
    launch: Launch, snapshot: SnapshotAssertion
) -> None:
    common = "--size 1,4k --count 40"
    right = [
        f"{operation} --mcoll ring {more} {common}"
        for operation in ("allgather", "allreduce")
        for more in ("", "--mcoll-objects 1")
    ]
    # Neighbours on a ring differ from three ranks on.
    right.append(f"exchange {common}")
    words = [*right, *(f"{line} {common}" for line in WRONG)]
    found = run_commands(launch, 3, [["runner.programs.micro", *line.split()] for line in words])
    for done in found[: len(right)]:
        assert done.code == 0, done.err
        assert [point["count"] for point in done.result["sizes"]] == [40, 40]
    ended = zip(WRONG, found[len(right) :], strict=True)
    assert {line: refusal_of(done, "micro") for line, done in ended} == snapshot


@pytest.mark.mpi
def test_the_command_line_starts_it(launch: Launch) -> None:
    done = launch(2, "-m", "runner.programs.micro", "bcast", "--mcoll", "ring")
    assert done.code == 2
    assert "allgather" in refusal_of(done, "micro")
