"""Every example runs from its first line to its last."""

from __future__ import annotations

import re
import runpy
import shutil
from pathlib import Path

import pytest

from autotune.space import Parameter, Setting, Space
from autotune.strategies import Observation
from runner.mpi.library import Library
from tests.apps.conftest import Launch, launch
from tests.mpis import built

__all__ = ["launch"]

FOLDER = Path(__file__).parents[2] / "examples"
SPACK = "spack/packages/py-mpi-autotune/package.py"  # Spack runs it; test_spack.py reads it.
GRAPHS = ("tarragon_line.py", "tpod_line.py")
ALL = {
    *("own_c_program/tune.py", "mpi4py_script.py", "own_strategy.py", "mate.py", "read_store.py"),
    *GRAPHS,
    "heat_line.py",  # What the two graphs have in common.
}
SHORT = """
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double start = MPI_Wtime();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("loop: %.6f s\\n", MPI_Wtime() - start + 1e-4);
    return MPI_Finalize();
}
"""


def test_all_are_known() -> None:
    found = {str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.py")}
    assert found == ALL | {SPACK}
    listed = (FOLDER / "README.md").read_text()
    assert all(name.partition("/")[0] in listed for name in found)


@pytest.mark.mpi
@pytest.mark.usefixtures("quiet", "open_mpi")
@pytest.mark.parametrize(
    "name",
    [
        # The suite has six minutes; these run every night.
        pytest.param("own_strategy.py", marks=pytest.mark.slow),
        pytest.param("own_c_program/tune.py", marks=pytest.mark.slow),
        pytest.param("mate.py", marks=pytest.mark.slow),
    ],
)
def test_searches(
    name: str, work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if name.startswith("own_c") and shutil.which("mpicc") is None:
        pytest.skip("no mpicc on PATH")
    monkeypatch.setenv("AUTOTUNE_EXAMPLE_RUNS", "34")
    runpy.run_path(str(FOLDER / name), run_name="__main__")
    out = capsys.readouterr().out
    assert any(word in out for word in ("recommended", "keep_default", "inconclusive", "too_noisy"))
    assert "search" in read_store(capsys)


def read_store(capsys: pytest.CaptureFixture[str]) -> str:
    """What the example that reads the database prints."""
    runpy.run_path(str(FOLDER / "read_store.py"), run_name="__main__")
    table = capsys.readouterr().out
    assert "50%" in table
    return table


def test_the_own_strategy_tries_every_level_alone() -> None:
    example = runpy.run_path(str(FOLDER / "own_strategy.py"), run_name="example")
    space = Space("two", (Parameter("a", (1, 2), default=1), Parameter("b", ("x", "y", "z"))))
    strategy = example["OneByOne"](space, seed=0)
    found = []
    while (proposal := strategy.ask()) is not None:
        found.append(proposal.setting)
        strategy.tell(Observation(len(found), proposal.setting, 1.0, "ok", proposal.attrs))
    assert found == [Setting({"a": 2}), *(Setting({"b": level}) for level in "xyz")]


@pytest.mark.mpi
@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("short", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_noise_and_comparison(
    short: bool, open_mpi: Library, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a program in C that takes no time, and (slow) with that of the example."""
    main = runpy.run_path(str(FOLDER / "mpi4py_script.py"), run_name="example")["main"]
    if short:
        program = str(built(open_mpi, work, SHORT))
        main.__globals__["SCRIPT"] = f"import os\nos.execv({program!r}, ['loop'])\n"
    main()
    out = capsys.readouterr().out
    assert re.search(r"\d%.* \d+\.\d%", out)
    assert "6 blocks" in out
    assert read_store(capsys).count(" runs\n") == 2


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_check_themselves_and_say_once_what_is_wrong(launch: Launch, name: str) -> None:
    done = launch(2, str(FOLDER / name))
    assert (done.code, done.out) == (0, "verified\n")
    done = launch(2, str(FOLDER / name), "--workers", "999")
    assert (done.code, done.out) == (2, "")
    assert done.err.count(f"{name[:-3]}: ") == 1
    assert "Traceback" not in done.err
