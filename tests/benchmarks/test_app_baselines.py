"""Applications against their programs in C: the command as it is typed."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from autotune.api.target import find_target
from autotune.errors import WorkError
from autotune.targets.request import TargetRequest
from benchmarks import app_baselines
from benchmarks.app_baselines import CASES, pair
from benchmarks.mpi_programs import NoCompiler, Programs
from runner.mpi.library import Library
from runner.types import RunRecord

Typed = Callable[..., tuple[int, str, str]]


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Typed:
    """``python -m benchmarks.app_baselines ...``: exit code and both outputs."""

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["app_baselines.py", *words])
        try:
            code = app_baselines.main()
        except SystemExit as left:
            code = int(left.code or 0)
        return code, *capfd.readouterr()

    return run


@pytest.fixture(
    params=[
        pytest.param(name, marks=[] if name == "cannon" else [pytest.mark.slow]) for name in CASES
    ]
)
def tiny(request: pytest.FixtureRequest, library: Library, tmp_path: Path) -> app_baselines.Pair:
    """An application and its C program on the application's input for tests."""
    asked = TargetRequest(None, request.param, "tiny", 2, "local", str(library.launcher))
    target = find_target(asked)
    try:
        return pair(request.param, "tiny", target, tmp_path)
    except NoCompiler as error:
        pytest.skip(str(error))


@pytest.mark.mpi
@pytest.mark.parametrize("processes", [2, pytest.param(6, marks=pytest.mark.slow)])
def test_both_programs_compute_the_same(
    tiny: app_baselines.Pair, library: Library, processes: int
) -> None:
    lines = {}
    with Programs(library) as launched:
        for program, spec in tiny.launches.items():
            lines[program], _ = launched.run(list(spec.program), processes)
    found = RunRecord("ok", extra=lines["C"])
    first = tiny.check("C", found, None)
    tiny.check("app", RunRecord("ok", extra=lines["app"]), first)
    assert 0 < lines["C"]["solver_s"] < 60
    wrong = {**lines["app"], tiny.case.checksum: math.nextafter(1.1 * first, math.inf)}
    with pytest.raises(WorkError, match="they do not the same work"):
        tiny.check("app", RunRecord("ok", extra=wrong), first)
    with pytest.raises(WorkError, match="the line of the C program has no checksum"):
        tiny.check("C", RunRecord("ok", extra={"solver_s": 1.0}), first)


@pytest.mark.slow
@pytest.mark.mpi
def test_without_blas_the_c_program_computes_the_same(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = dataclasses.replace(CASES["cannon"], libraries=lambda: ())
    monkeypatch.setitem(app_baselines.CASES, "cannon", plain)
    asked = TargetRequest(None, "cannon", "tiny", 2, "local", str(library.launcher))
    try:
        each = pair("cannon", "tiny", find_target(asked), tmp_path)
    except NoCompiler as error:
        pytest.skip(str(error))
    with Programs(library) as launched:
        lines = [launched.run(list(s.program), 2)[0] for s in each.launches.values()]
    assert lines[0]["checksum"] == lines[1]["checksum"]


@pytest.mark.slow
@pytest.mark.mpi
def test_the_command_prints_a_line_for_each_input(
    typed: Typed, library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The verdict depends on the time, so that either exit code is right."""
    monkeypatch.setenv("AUTOTUNE_LOCK_FILE", str(tmp_path / "lock"))  # the tests hold the other one
    out = tmp_path / "figures.json"
    words = ["--apps", "cannon:tiny", "--blocks", "2", "--no-guard", "--json", str(out)]
    code, printed, said = typed(*words, "--mpi", str(library.launcher))
    if "no compiler" in said or "neither mpicc" in said:
        pytest.skip(said.strip().removeprefix("app_baselines: "))
    assert code in (0, 1), said
    found = json.loads(out.read_text())
    assert (found["verdict"] == "FAIL") == (code == 1)
    (row,) = found["rows"]
    assert row["input"] == "cannon:tiny"
    low, high = map(float, row["95 %"].split(".."))
    assert 0 < low <= float(row["ratio"]) <= high
    assert printed.startswith("input")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--apps", "linpack"], "--apps linpack: there is no linpack; expected cannon"),
        (["--apps", "cannon:none"], "app 'cannon' has no input 'none'"),
        (["--blocks", "0"], "--blocks 0: expected 1 or more"),
    ],
)
def test_wrong_words_are_refused(
    typed: Typed, library: Library, words: list[str], named: str
) -> None:
    code, _, said = typed(*words, "--mpi", str(library.launcher))
    assert code == 2
    assert named in said


def test_without_a_compiler_the_command_says_so(
    typed: Typed, library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTOTUNE_LOCK_FILE", str(tmp_path / "lock"))
    monkeypatch.setenv("PATH", str(tmp_path))
    code, _, said = typed("--apps", "cannon:tiny", "--mpi", str(library.launcher))
    assert (code, said.strip()) == (1, "app_baselines: no compiler")
