"""The table of programs that fill centres: its rows, what it keeps, and what became of settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from autotune.config.app import load_app
from autotune.errors import UsageError
from benchmarks.centre_programs import PROGRAMS, fate, main, parser, searches

RESULT = {
    "default": {"median_s": 2.0, "n": 5},
    "metric": {"kind": "time", "unit": "s"},
    "search_runs": 40,
    "confirmation_runs": 16,
}
ROW: dict[str, Any] = {
    "name": "x", "app": "lammps", "input": "melt", "space": "openmpi+lammps", "strategy": "ga",
    "status": "recommended", "gain": 0.081, "ci": [0.04, 0.1], "setting": {"skin": 0.4},
    "result": RESULT, "runs": 56, "wall_s": 431.7,
    "published": {"files": {}, "in_force": True, "checks": ["still there: +8 %"], "undone": True},
}  # fmt: skip


def given(tmp_path: Path, *words: str) -> Any:
    return parser().parse_args(["--keep", str(tmp_path), *words])


def test_each_program_has_the_spaces_that_it_can_have(tmp_path: Path) -> None:
    rows = [*searches(given(tmp_path, "--strategies", "ga"))]
    kinds = {app: [row.kind for row in rows if row.app == app] for app in PROGRAMS}
    assert kinds["cp2k"] == kinds["gromacs"] == ["own", "hybrid", "mpi"]
    assert kinds["lammps"] == ["own", "mpi"]
    assert kinds["imb"] == ["mpi"]
    assert {row.space for row in rows if row.app == "hpl"} == {"openmpi+hpl", "openmpi"}
    assert all(row.input in load_app(row.app).inputs for row in rows)
    words = ("--spaces", "mpi", "network", "--cluster", "testbed", "--ranks", "4")
    across = [*searches(given(tmp_path, "--strategies", "ga", "--apps", "imb", *words))]
    assert [row.kind for row in across] == ["mpi", "network"]
    assert len({row.name for row in (*rows, *across)}) == len(rows) + 2
    assert across[0].words[-4:] == ("--cluster", "testbed", "--ranks", "4")
    with pytest.raises(UsageError):
        [*searches(given(tmp_path, "--apps", "lammps:ice"))]


def test_a_kept_row_is_printed_and_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--keep", str(tmp_path), "--apps", "lammps", "--spaces", "own", "--strategies", "ga"]
    path = tmp_path / "lammps-melt-openmpi+lammps-ga-10m.json"
    monkeypatch.setattr("sys.argv", ["centre_programs", *words, "--table"])
    assert main() == 1  # The row is missing, and --table runs nothing.
    path.write_text(json.dumps(ROW))
    assert main() == 0
    out = capsys.readouterr().out
    assert {"+8.1%", "56", "skin=0.4", "432"} <= set(out.split())


def test_what_became_of_a_setting() -> None:
    assert fate(ROW).split(", ") == ["obeyed", "still there", "undone"]  # data
    lost = {"in_force": False, "checks": ["gone: -1 %"], "undone": False}
    assert fate(ROW | {"published": lost}).count("NOT") == 2
    own = {"refused": "skin is the program's", "checks": ["better: +8 %"]}
    assert fate(ROW | {"published": own}).endswith("better")
