"""A table of collectives from its publication to its end, with its program run again.

The program of the evidence is known by its words. Here it is run in a directory with modules that
have the names of ours.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from autotune.cli import main
from autotune.collective_rules import Rule
from autotune.collectives.algorithm_tables import TABLES, CollectiveResult, TablePart
from autotune.collectives.measurement import micro_program
from autotune.collectives.table_proof import SizeEvidence
from autotune.publish.recheck import Status
from autotune.store import Store
from runner.machine import describe_machine
from runner.mpi.library import Library
from runner.own_python import OWN_PYTHON
from tests.own_modules import lay_out

pytestmark = pytest.mark.mpi
CHAIN = "2"
UNTOLD: Status = "cannot be told"
WORDS = {"now": OWN_PYTHON, "without the option": (sys.executable,)}


@pytest.mark.parametrize(
    "python", ["now", pytest.param("without the option", marks=pytest.mark.slow)]
)
@pytest.mark.usefixtures("home")
def test_a_table_is_verified_run_again_and_undone(
    python: str,
    work: Path,
    store: Path,
    open_mpi: Library,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(work / "data"))
    rules = (Rule("bcast", 2, 0, "0"), Rule("bcast", 2, 4096, CHAIN))
    row = SizeEvidence(4096, "x=1", 0.1, 0.01, 0.2, "better", False)
    program = (*WORDS[python], "-m", "runner.programs.micro", *micro_program("bcast", [4096]))
    part = TablePart("bcast", 2, rules, (row,), 10, 100, 30, program)
    here = {"name": open_mpi.family, "version": open_mpi.version}
    machine = describe_machine().fingerprint
    found = CollectiveResult("local", machine, here, "2026-11-21T10:00:00", (part,), {"bcast": {}})
    TABLES.save(found)
    marks = lay_out(work)
    words = ["publish", "--from", f"collectives:{found.id}", "-f", "rules-v1"]
    assert main([*words, "--json", "-"]) == 0
    files = [file["path"] for file in json.loads(capfd.readouterr().out)["files"]]
    assert files
    again = ["verify-published", *files, "--no-guard", "--budget", "2s"]  # A few runs suffice.
    main([*again, "--json", "-"])
    seen = json.loads(capfd.readouterr().out)
    assert "files" in seen, seen
    assert [file["in_force"] for file in seen["files"]] == [True] * len(files), seen
    assert {one["status"] for one in seen["comparisons"]} == {UNTOLD}
    with Store.open(store) as opened:
        (study,) = opened.studies()
        assert opened.runs(study.id)
    assert main(["unpublish", *files]) == 0
    assert not any(Path(path).exists() for path in files)
    assert not list(marks.iterdir())
