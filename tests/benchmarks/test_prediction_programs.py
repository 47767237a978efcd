"""The programs of the predictions: the plan, the file of the reporting programs, their results."""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest

from autotune.config.app import load_app
from autotune.config.validated import validate
from autotune.errors import UsageError
from benchmarks import prediction_programs
from benchmarks.mpi_programs import FASTEST, NoCompiler, Programs
from benchmarks.program_cells import Cell
from benchmarks.reporting_programs import (
    CELLS,
    SOURCES,
    ReportingFile,
    build,
    built_folder,
    cells_of,
    hpcc_input,
    reporting_programs,
)
from benchmarks.training_programs import IMBALANCES, SECONDS, known_cells, training_plan
from runner.apps.pattern.options import KINDS, parse
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from tests.mpis import built
from tests.programs import compiled

SMALL = {
    "heat": "64 50",
    "wave": "50 100",
    "matmul": "64 2",
    "cg": "16 40 2",
    "sort": "1000 2",
    "nbody": "20 3",
    "life": "32 64",
    "pi": "10",
    "histogram": "256 1000 3",
    "prefix": "64 16 2",
    "exchange": "1000 20",
}
"""Arguments of each source for a test."""
FAST = {("heat", 2), ("cg", 4), ("sort", 2), ("exchange", 4), ("prefix", 2)}
REPORT = """
#include <mpi.h>
#include <stdio.h>

int main(int count, char **words) {
    int rank;
    if (count > 1) return 2;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!rank) puts("{\\"seconds\\": 0.25, \\"verified\\": true}");
    return MPI_Finalize();
}
"""


# The plan


def test_the_plan_comes_from_the_seed() -> None:
    assert training_plan(3, 50) == training_plan(3, 50)
    assert training_plan(3, 50) != training_plan(4, 50)
    # The first programs as they are now: another machine or version must draw the same.
    first = training_plan(1, 200)[0]
    found = first.kind, first.size, first.ranks, first.place
    assert found == ("pipeline", 48, 4, "testbed")


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_plan_fills_the_space(seed: int) -> None:
    plan = training_plan(seed, 200)
    assert Counter(program.kind for program in plan) == dict.fromkeys(KINDS, 20)
    assert Counter(program.ranks for program in plan) == {2: 100, 4: 100}
    assert Counter(program.place for program in plan) == {"node": 100, "testbed": 100}
    sizes = sorted(program.size for program in plan)
    assert sizes[0] >= 8
    assert sizes[-1] <= 1 << 20
    assert sum(size < 64 for size in sizes) > 20
    assert sum(size > 1 << 17 for size in sizes) > 20
    for low, high in ((0.05, 0.2), (0.2, 0.5), (0.5, 0.7), (0.7, 1.0)):
        assert sum(low <= program.share < high for program in plan) > 20
    assert all(0.04 < program.share <= 1 for program in plan)
    imbalances = sorted(program.imbalance for program in plan)
    assert IMBALANCES[0] <= imbalances[0] < 0.01
    assert 0.39 < imbalances[-1] <= IMBALANCES[1]
    assert all(program.seconds < 1.5 * SECONDS[1] for program in plan)
    assert sum(program.seconds for program in plan) < len(plan) * SECONDS[1]
    assert len({program.name for program in plan}) == 200


def test_planned_programs_are_understood() -> None:
    for program in training_plan(5, 100):
        cell = program.cell()
        given = parse(list(cell.words[3:]), program.ranks)
        found = (given.kind, given.size, given.steps, given.work, given.imbalance, given.seed)
        assert found == (program.kind, program.size, program.steps, program.work,
            program.imbalance, program.seed)  # fmt: skip


def test_known_programs_are_there() -> None:
    cells = known_cells()
    assert len({(cell.name, cell.ranks, cell.place) for cell in cells}) == len(cells)
    for cell in cells:
        if cell.app is not None:
            load_app(cell.app).program(cell.input)
    names = {cell.name for cell in cells}
    assert {"nas-is-W", "nas-bt-S", "jacobi3d-small", "cannon-small", "cg-openmp"} <= names


@pytest.mark.parametrize("count", [0, -1])
def test_an_empty_plan_is_refused(count: int) -> None:
    with pytest.raises(ValueError, match="expected 1 or more"):
        training_plan(0, count)


# The reporting programs


def test_the_file_has_enough_programs() -> None:
    programs = reporting_programs()
    assert len(programs) >= 12
    assert sum(len(program.arguments) for program in programs) >= 60
    assert sum(program.hpcc is not None for program in programs) >= 4
    sources = {program.source for program in programs if program.source}
    assert sources == {path.name for path in SOURCES.glob("*.c")}
    assert {Path(source).stem for source in sources} == set(SMALL)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"source": None}, "either source, or hpcc with unit"),
        ({"hpcc": "HPL_time"}, "either source, or hpcc with unit"),
        ({"arguments": {"node-3": "1"}}, "expected some of the cells node-2, node-4"),
        ({"sauce": "x.c"}, "sauce"),
    ],
)
def test_a_wrong_file_is_refused(change: dict[str, object], said: str) -> None:
    program = {
        "name": "a",
        "description": "b",
        "source": "a.c",
        "arguments": dict.fromkeys(CELLS, ""),
    }
    whole = {"program": [program | change]}
    with pytest.raises(UsageError, match=said):
        validate(whole, "file", ReportingFile)


def test_names_are_different() -> None:
    program = {
        "name": "a",
        "description": "b",
        "source": "a.c",
        "arguments": dict.fromkeys(CELLS, ""),
    }
    with pytest.raises(UsageError, match="different names"):
        validate({"program": [program, program]}, "file", ReportingFile)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reporting")


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("stem", "ranks"),
    [
        # All on 2 and 4 ranks at night.
        pytest.param(stem, ranks, marks=[] if (stem, ranks) in FAST else pytest.mark.slow)
        for stem in SMALL
        for ranks in (2, 4)
    ],
)
def test_every_source_compiles_and_verifies(
    stem: str, ranks: int, library: Library, folder: Path
) -> None:
    program = next(p for p in reporting_programs() if p.source == f"{stem}.c")
    if stem != "heat":
        _take_kept_build(stem, library, folder)
    try:
        path = build(program, library, folder)
    except NoCompiler as error:
        pytest.skip(str(error))
    assert build(program, library, folder) == path
    with Programs(library) as launched:
        line, _ = launched.run([str(path), *SMALL[stem].split()], ranks)
        assert line["verified"] is True
        assert 0 < line["seconds"] < 60


def _take_kept_build(stem: str, library: Library, folder: Path) -> None:
    words = adapter(library).c_compiler()
    if Path(words[0]).name.startswith("mpicc") and shutil.which("cc"):
        source = (SOURCES / f"{stem}.c").read_text()
        # They share a header; the name of the folder tells all sources apart.
        options = ("-lm", f"-I{SOURCES}", f"-DSOURCES_{built_folder(library).name}")
        compiled([words[0], *FASTEST], source, folder / stem, *options)


@pytest.mark.mpi
def test_wrong_arguments_end_with_2(library: Library, folder: Path) -> None:
    program = next(p for p in reporting_programs() if p.source == "heat.c")
    try:
        path = build(program, library, folder)
    except NoCompiler as error:
        pytest.skip(str(error))
    with Programs(library) as launched, pytest.raises(Exception, match="exit code 2"):
        launched.run([str(path), "63", "1"], 2)


def test_the_folder_depends_on_the_sources(
    library: Library, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = built_folder(library)
    assert built_folder(library) == before
    (tmp_path / "a.c").write_text("")
    monkeypatch.setattr("benchmarks.reporting_programs.SOURCES", tmp_path)
    assert built_folder(library) != before


def test_the_input_of_hpcc(tmp_path: Path) -> None:
    lines = hpcc_input(400, 4).splitlines()
    assert len(lines) == 36
    assert (lines[5], lines[10], lines[11]) == ("400 Ns", "2 Ps", "2 Qs")
    assert hpcc_input(400, 2).splitlines()[10:12] == ["1 Ps", "2 Qs"]
    program = next(p for p in reporting_programs() if p.hpcc == "HPL_time")
    cells = cells_of(program, Path("/usr/bin/hpcc"), tmp_path)
    assert [(cell.place, cell.ranks) for cell in cells] == [("node", 2)]
    given = Path(cells[0].words[cells[0].words.index("--given") + 1])
    assert given.read_text() == hpcc_input(int(program.arguments["node-2"].split()[0]), 2)


# The command


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["prediction_programs.py", *words])
    try:
        return prediction_programs.main()
    except SystemExit as left:
        return int(left.code or 0)


def test_cells_are_listed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "training", "--count", "20", "--places", "node") == 0
    out = capsys.readouterr().out
    assert out.count("runner.apps.pattern") == 10
    assert run(monkeypatch, "known", "--only", "cannon") == 0
    assert "cannon:small" in capsys.readouterr().out
    assert run(monkeypatch, "known", "--only", "nothing") == 2
    assert "no program has this in its name" in capsys.readouterr().err


@pytest.mark.mpi
def test_a_cell_is_tried(
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    open_mpi: Library,
    tmp_path: Path,
) -> None:
    program = str(built(open_mpi, tmp_path, REPORT))
    right = Cell("right", 2, "node", (program,), None, None, "json:seconds", "json:verified")
    wrong = Cell("wrong", 2, "node", (program, "too", "many"))
    monkeypatch.setattr(prediction_programs, "known_cells", lambda: [right])
    file = tmp_path / "out.json"
    assert run(monkeypatch, "known", "--run", "--json", str(file)) == 0
    row = json.loads(file.read_text())["rows"][0]
    assert row["right"] is True
    assert float(row["seconds"]) > 0
    monkeypatch.setattr(prediction_programs, "known_cells", lambda: [wrong])
    assert run(monkeypatch, "known", "--run") == 1
    assert "wrong node 2" in capfd.readouterr().out
