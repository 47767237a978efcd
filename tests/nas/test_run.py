"""The program as a user starts it: its lines, its JSON, and what a wrong result or use gives."""

from __future__ import annotations

import importlib
import json
import math
import re
from types import SimpleNamespace

import pytest
from syrupy.assertion import SnapshotAssertion

from autotune.config.app import load_app
from runner.programs.apps.common.errors import AppUsageError
from runner.programs.nas.common.options import NAMES, parse, thread_level
from tests.apps.conftest import Finished, Launch, run_commands
from tests.case_table import case_table
from tests.refusals import refusal, refused

KERNELS = ("is", "ep", "cg", "mg", "ft", "lu", "bt", "sp")
KEYS = {
    "app", "class", "size", "iterations", "ranks", "solver_s", "mops", "verified", "checks",
    "phases", "mpi_share", "startup_s",
}  # fmt: skip


CG = ["runner.programs.nas", "cg", "--class", "S"]


@pytest.mark.mpi
def test_lines_and_json_of_a_run(launch: Launch) -> None:
    """With threads CG shares the products and keeps every bit."""
    lines = [
        [*CG, "--repetitions", "3"],
        [*CG, "--openmp"],
        ["runner.programs.nas", "ft", "--class", "Q"],
    ]
    done, one, wrong = run_commands(launch, 2, lines, env={"OMP_NUM_THREADS": "1"})
    (three,) = run_commands(launch, 2, [[*CG, "--openmp"]], env={"OMP_NUM_THREADS": "3"})
    assert done.code == 0, done.err
    check_run(done)
    found = [one.result, three.result]
    assert set(found[0]) == KEYS | {"threads"}
    assert [result["threads"] for result in found] == [1, 3]
    for result in found:
        assert result["verified"] is True
        assert result["checks"] == done.result["checks"]
    assert wrong.code == 2
    assert wrong.err.count("nas: error:") == 1  # data
    assert "--class Q " in wrong.err
    assert "Traceback" not in wrong.err
    assert wrong.out == ""


def check_run(done: Finished) -> None:
    result = done.result
    assert set(result) == KEYS | {"repetitions_s"}
    assert result["app"] == "nas-cg"
    assert result["verified"] is True
    assert sorted(result["repetitions_s"])[1] == result["solver_s"] > 0
    assert set(result["phases"]) == {"compute", "mpi"}
    assert 0 < result["mpi_share"] < 1
    # 2 * 15 iterations * 1400 rows * (3 + 56 + 25 * (5 + 56) + 3)
    assert result["mops"] == pytest.approx(66.654e6 / result["solver_s"] / 1e6)
    printed = re.search(r"Time in seconds *= *([0-9]+\.[0-9]{6})$", done.out, re.MULTILINE)
    assert printed is not None
    assert float(printed[1]) == pytest.approx(result["solver_s"], abs=5e-7)
    assert re.search(r"Verification *= *SUCCESSFUL$", done.out, re.MULTILINE)
    assert len(re.findall(r"^ Repetition \d", done.out, re.MULTILINE)) == 3
    assert result["checks"][0]["value"] == pytest.approx(8.5971775078648, rel=1e-10)


@pytest.mark.mpi
def test_a_wrong_result_is_said_with_both_values(launch: Launch) -> None:
    done = launch(2, "-m", "tests.nas.broken")
    assert done.code == 0, done.err
    cases = [json.loads(line) for line in done.out.splitlines()]
    assert {case["case"]: case["code"] for case in cases} == {
        "is expects another rank": 1,
        "ep expects one pair more": 1,
        "cg expects another digit": 1,
        "cg leaves out sums": 1,
        "mg has no number": 1,
        "mg exchanges no faces": 1,
        "cg is whole": 0,
    }
    for case in cases:
        out = case["out"]
        result = json.loads(out.splitlines()[-1])
        assert result["verified"] is (case["code"] == 0)
        assert ("VERIFICATION FAILED" in out) is (case["code"] == 1)
        for check in result["checks"]:
            value = math.nan if check["value"] is None else check["value"]
            assert f"\n {check['name']} is {value:.14E}" in out
            if case["code"] and abs(value - check["expected"]) > 1e-6 * check["expected"]:
                assert f" {check['name']} is {check['expected']:.14E}" in out
            elif not case["code"]:
                assert out.count(f" {check['name']} is ") == 1


@pytest.mark.mpi
def test_a_failed_verification_ends_the_launch_with_1(launch: Launch) -> None:
    code = """
import sys
import runner.programs.nas.ep as ep
from runner.programs.apps.common.mpi import run
from runner.programs.nas.common.run import main
ep.PROBLEMS["S"] = ep.Problem(20, 1.0, 1.0, 1)
run("nas", "single", lambda comm: main(comm, ["ep"], 0.0))
"""
    assert launch(2, "-c", code).code == 1


def test_options_that_are_refused(snapshot: SnapshotAssertion) -> None:
    lines = ["zz", "mg --class Q", "mg --class C", "mg --repetitions 0", ""]
    assert {line: refusal(AppUsageError, parse, line.split()) for line in lines} == snapshot


def test_options() -> None:
    options = parse(["is", "--class", "A", "--repetitions", "4"])
    assert (options.kernel, options.problem_class, options.repetitions) == ("is", "A", 4)
    assert options.problem.log2_keys == 23
    assert "--repetitions" in str(parse(["--help"]).help)


def test_ranks_that_the_original_refuses(snapshot: SnapshotAssertion) -> None:
    found = {}
    for kernel, ranks in (
        *(("is", 6), ("cg", 3), ("is", 256), ("ep", 257), ("mg", 12), ("mg", 1 << 15)),
    ):
        module = importlib.import_module(f"runner.programs.nas.{kernel}")
        comm = SimpleNamespace(size=ranks, rank=0)
        found[kernel, ranks] = refusal(AppUsageError, module.build, comm, module.PROBLEMS["S"])
    assert found == snapshot


@case_table("kernel", KERNELS)
def test_every_class_is_an_input_of_its_app(kernel: str) -> None:
    app = load_app(f"nas-{kernel}")
    module = importlib.import_module(f"runner.programs.nas.{kernel}")
    assert list(app.inputs) == list(module.PROBLEMS) == ["S", "W", "A", "B"]
    assert KERNELS == NAMES
    assert app.program("A")[1:] == ("-P", "-m", "runner.programs.nas", kernel, "--class", "A")


def test_threads_are_for_kernels_that_have_them() -> None:
    assert parse(["cg", "--openmp"]).openmp
    assert thread_level(["cg", "--openmp"]) == "funneled"
    assert thread_level(["cg"]) == "single"
    with refused(AppUsageError, "app_option.not_applicable"):
        parse(["ep", "--openmp"])
