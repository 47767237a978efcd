"""SuperLU_DIST beside the application: the file between them, the drawn settings, the ratio."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from autotune.errors import WorkError
from benchmarks import superlu_dist
from benchmarks.superlu_dist import (
    REFERENCE,
    NotMeasured,
    built,
    checked,
    contestants,
    drawn,
    row_of,
    stored_mb,
    text,
    write_csr,
)
from runner.errors import RunnerError
from runner.mpi.discover import find_library
from runner.mpi.library import Library
from runner.programs.apps.sparse_lu.matrices import MATRICES, Matrix
from runner.programs.apps.sparse_lu.mesh import Blocks, Mesh
from runner.programs.apps.sparse_lu.symbolic import analyse

ROOT = Path(__file__).parents[2]


def read_csr(path: Path) -> Matrix:
    """The matrix of a file that the driver reads."""
    data = path.read_bytes()
    rows, entries = np.frombuffer(data, "<i8", 2)
    starts = np.frombuffer(data, "<i8", rows + 1, 16)
    at = 16 + 8 * (rows + 1)
    columns = np.frombuffer(data, "<i8", entries, at)
    values = np.frombuffer(data, "<f8", entries, at + 8 * entries)
    return sparse.csr_array((values, columns, starts), shape=(rows, rows))


@pytest.mark.parametrize(("name", "size"), [("poisson", 4), ("band", 50), ("dense", 7)])
def test_the_file_has_the_matrix(name: str, size: int, tmp_path: Path) -> None:
    matrix = MATRICES[name][0](size)
    write_csr(tmp_path / "matrix", matrix)
    again = read_csr(tmp_path / "matrix")
    assert again.shape == matrix.shape
    assert np.array_equal(again.toarray(), matrix.toarray())


def test_settings_differ_and_have_each_value_about_equally_often() -> None:
    for contestant in contestants("poisson", 4, 2, Path("driver"), Path("file")):
        found = drawn(contestant.space, 8, 1)
        assert found[0] == tuple((key, v[0]) for key, v in contestant.space.items())
        assert len({text(setting) for setting in found}) == 8
        for key, values in contestant.space.items():
            times = Counter(dict(setting)[key] for setting in found)
            assert set(times) == set(values)
            assert max(times.values()) - min(times.values()) <= 3


def test_a_small_space_has_fewer_settings() -> None:
    assert len(drawn({"a": ("1", "2"), "b": ("3",)}, 8, 1)) == 2


def test_switches_of_the_application_are_words() -> None:
    (tasks,) = (
        one for one in contestants("band", 9, 2, Path("d"), Path("f")) if one.key == "tarragon"
    )
    words = tasks.words((("width", "32"), ("tagging", "on"), ("aggregation", "off")))
    assert words[-5:] == ["--variant", "tarragon", "--width", "32", "--tagging"]


def test_a_residual_that_is_no_number_is_wrong() -> None:
    with pytest.raises(WorkError, match="None"):
        checked({"seconds": 1.0, "residual": None, "gflops": 1.0})


def test_a_contestant_that_takes_half_the_time_has_a_speed_of_two() -> None:
    def lines(seconds: float) -> list[dict[str, float]]:
        line = {"seconds": seconds, "operations": 1e9, "residual": 1e-15, "factors_mb": 1.0}
        return [line] * 8

    row = row_of("tarragon", lines(0.5), lines(1.0))
    assert row["speed"] == "2 (2 .. 2)"
    assert row["GFLOP/s"] == "2.00"
    assert row_of(REFERENCE, lines(1.0), lines(1.0))["speed"] == "1 (1 .. 1)"


def test_stored_is_what_the_blocks_take() -> None:
    matrix = MATRICES["tiny"][0](5)
    analysis = analyse(matrix, 16, 4)
    blocks = Blocks(matrix, analysis, Mesh(1, 1), 0).at.values()
    assert stored_mb(analysis) == pytest.approx(sum(block.nbytes for block in blocks) / 1e6)


def test_without_the_library_nothing_is_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(superlu_dist, "HEADERS", tmp_path / "nowhere")
    library = Library("openmpi", "4.1.4", "/usr/bin", "/usr/bin/mpirun")
    with pytest.raises(NotMeasured, match="libsuperlu-dist-dev"):
        built(library, tmp_path)


@pytest.mark.slow
@pytest.mark.mpi
def test_both_factor_matrices(tmp_path: Path) -> None:
    try:
        built(find_library("/usr"), tmp_path)
    except (NotMeasured, RunnerError) as missing:
        pytest.skip(f"no SuperLU_DIST: {str(missing).splitlines()[0]}")
    out = tmp_path / "figures.json"
    names = ["convection", "band"]
    words = ["--quick", "--only", *names, "--json", str(out)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.superlu_dist", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=dict(os.environ),
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())
    if found["not_measured"]:
        pytest.skip(f"no SuperLU_DIST: {found['not_measured']}")
    assert [contest["matrix"] for contest in found["contests"]] == names
    assert [len(one["rows"]) for one in found["contests"]] == [len(superlu_dist.NAMES)] * 2
    for contest in found["contests"]:
        assert not any(one["left_out"] for one in contest["programs"].values())
