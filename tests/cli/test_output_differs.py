"""A setting that is faster and changes the output is not believed, though nobody verifies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

pytestmark = pytest.mark.mpi
PROGRAM = """
test $RANK = 0 || exit 0
s=1.000 energy=-1.25000e+03
if [ "$OMPI_MCA_btl_self_eager_limit" = 8192 ]; then
    s=0.500
    [ $0 = right ] || energy=-1.25678e+03
fi
echo took $s$(($$ % 7)) s
echo energy $energy
"""
WORDS = ("default", "btl_self_eager_limit=8192", "--metric", "took (\\S+)")
FEW = ("--ranks", "1", "--pairs", "6", "--runs", "14")


@pytest.mark.parametrize(
    ("result", "outcome"),
    [("wrong", "contradicted"), pytest.param("right", "unguarded", marks=pytest.mark.slow)],
)
def test_a_faster_setting_with_another_output_is_contradicted(
    cli: Cli, work: Path, open_mpi: object, mpi_shell: str, result: str, outcome: str
) -> None:
    words = (*WORDS, *FEW, "--no-guard", "--store", "r.db", "--json", "c.json")
    done = cli("compare", *words, "--", mpi_shell, PROGRAM, result)
    assert done.code == 0, done.err
    document = json.loads((work / "c.json").read_text())
    assert document["outcome"] == outcome
    assert document["seen"] == "better"
    codes = [note["code"] for note in document["contradictions"]]
    assert codes == (["result.output_differs"] if result == "wrong" else [])
    assert "result.unchecked" in [note["code"] for note in document["unchecked"]]
