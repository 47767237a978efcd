"""A setting that is faster and changes the output is not believed, though nobody verifies."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

pytestmark = pytest.mark.mpi
PROGRAM = """
import os, sys
from mpi4py import MPI
changed = os.environ.get("OMPI_MCA_btl_sm_eager_limit") == "8192"
MPI.COMM_WORLD.Barrier()
if MPI.COMM_WORLD.rank == 0:
    print(f"took {(0.5 if changed else 1.0) + os.getpid() % 7 / 10000:.4f} s")
    print("energy", "-1.25678e+03" if changed and sys.argv[1] == "wrong" else "-1.25000e+03")
"""
WORDS = ("default", "btl_sm_eager_limit=8192", "--metric", "took (\\S+)", "--ranks", "2")


@pytest.mark.parametrize(("result", "outcome"), [("wrong", "contradicted"), ("right", "unguarded")])
def test_a_faster_setting_with_another_output_is_contradicted(
    cli: Cli, work: Path, open_mpi: object, result: str, outcome: str
) -> None:
    (work / "program.py").write_text(PROGRAM)
    words = (*WORDS, "--no-guard", "--store", "r.db", "--json", "c.json")
    done = cli("compare", *words, "--", sys.executable, str(work / "program.py"), result)
    assert done.code == 0, done.err
    document = json.loads((work / "c.json").read_text())
    assert document["outcome"] == outcome
    assert document["seen"] == "better"
    codes = [note["code"] for note in document["contradictions"]]
    assert codes == (["result.output_differs"] if result == "wrong" else [])
    assert "result.unchecked" in [note["code"] for note in document["unchecked"]]
