"""Programs of the distribution with the shipped inputs: valid runs, their own parameters, a search.

They are started by the distribution's MPI, with which they are linked.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from autotune.cli import main
from autotune.config.app import load_app

pytestmark = [pytest.mark.slow, pytest.mark.mpi]
CASES = {
    "lammps": ("tiny", "px=2,newton=off,skin=0.4"),
    "hpl": ("n400", "p=2,nb=64,bcast=4"),
    "quantum-espresso": ("tiny", "nk=2"),
    "cp2k": ("tiny", "distribution=REPLICATED"),
    "gromacs": ("tiny", "dlb=no,nstlist=40"),
}
"""A small input of each application, and a setting of its own space."""


@pytest.mark.parametrize("app", CASES)
def test_a_program_runs_obeys_and_is_searched(app: str, tmp_path: Path) -> None:
    name, setting = CASES[app]
    programs = [file for file in load_app(app).files if "/" not in file]
    if not any(shutil.which(program) for program in programs):
        pytest.skip(f"{programs[0]} not installed")
    target = ["--app", app, "--input", name, "--no-guard", "--store", str(tmp_path / "db")]
    default, own = tmp_path / "default.json", tmp_path / "own.json"
    main(["run", *target, "--json", str(default)])
    main(["run", *target, "--space", app, "--setting", setting, "--json", str(own)])
    for path in (default, own):
        run = json.loads(path.read_text())["run"]
        assert (run["state"], run["verified"]) == ("ok", True), run["reason"]
        assert run["metric_s"] > 0
    found = tmp_path / "found.json"
    words = ["search", *target, "--space", f"openmpi+{app}", "--trials", "1", "--runs", "34"]
    main([*words, "--json", str(found)])
    result = json.loads(found.read_text())
    assert result["trials"] >= 1
    assert result["status"] == "unguarded"
