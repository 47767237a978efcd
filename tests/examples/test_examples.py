"""Every example runs from its first line to its last."""

from __future__ import annotations

import runpy
import shutil
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"
ALL = {"own_c_program/tune.py", "mpi4py_script.py", "own_strategy.py", "mate.py", "read_store.py"}


def test_all_are_known() -> None:
    found = {str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.py")}
    assert found == ALL
    listed = (FOLDER / "README.md").read_text()
    assert all(name.partition("/")[0] in listed for name in found)


@pytest.mark.mpi
@pytest.mark.usefixtures("quiet", "open_mpi")
@pytest.mark.parametrize(
    "name",
    [
        "own_strategy.py",
        # The suite has six minutes; these run every night.
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
    runpy.run_path(str(FOLDER / "read_store.py"), run_name="__main__")
    table = capsys.readouterr().out
    assert "50%" in table
    assert "search" in table


@pytest.mark.mpi
@pytest.mark.usefixtures("quiet", "open_mpi", "work")
def test_noise_and_comparison(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(FOLDER / "mpi4py_script.py"), run_name="__main__")
    out = capsys.readouterr().out
    assert "runs scatter by" in out
    assert "6 blocks" in out
