"""What a trace shows to be unused is not proposed, by search or predict."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from autotune.store import Store
from runner.mpi.library import Library
from tests.cli.conftest import Cli
from tests.mpis import built

pytestmark = pytest.mark.mpi
SPACE = """
description = "two collectives"
library = "openmpi>=4.1"
[parameters.coll_tuned_barrier_algorithm]
levels = [1]
implies = { coll_tuned_use_dynamic_rules = 1 }
[parameters.coll_tuned_bcast_algorithm]
levels = [1]
implies = { coll_tuned_use_dynamic_rules = 1 }
"""
PROGRAM = r"""
#include <mpi.h>
int main(int argc, char **argv)
{
    static char data[64];
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 200; i++)
        if (rank == 0)
            MPI_Send(data, 64, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
        else if (rank == 1)
            MPI_Recv(data, 64, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CALL;
    return MPI_Finalize();
}
"""
CALL = {
    "none": "",
    "barrier": "MPI_Barrier(MPI_COMM_WORLD)",
    "bcast": "MPI_Bcast(data, 64, MPI_CHAR, 0, MPI_COMM_WORLD)",
}


@pytest.mark.parametrize("call", ["none", "barrier", pytest.param("bcast", marks=pytest.mark.slow)])
def test_a_search_leaves_out_collectives_that_are_not_called(
    cli: Cli, open_mpi: Library, work: Path, call: str
) -> None:
    (work / "two.toml").write_text(SPACE)
    program = built(open_mpi, work, PROGRAM.replace("CALL", CALL[call]))
    words = ("search", "--space", "./two.toml", "--strategy", "exhaustive", "--min-gain", "40")
    outcome = cli(
        *words, "--runs", "40", "--no-guard", "-n", "2", "--store", "r.db", "--json", "r.json",
        "--", program,
    )  # fmt: skip
    assert outcome.code == 0, outcome.text
    with Store.open("r.db") as store:
        launched = {run.setting_key for run in store.runs(1)}
    tuned = {name for name in ("barrier", "bcast") if f"coll_tuned_{name}" in "".join(launched)}
    assert tuned == {call} - {"none"}
    said = " ".join(note["words"] for note in json.loads((work / "r.json").read_text())["warnings"])
    for name in {"barrier", "bcast"} - tuned:
        assert f"coll_tuned_{name}_algorithm" in said
    again = cli(*words, "--runs", "40", "--no-guard", "-n", "2", "--store", "r.db",
                "--", program)  # fmt: skip
    assert "finished" in again.out


def test_what_cannot_be_counted_is_tuned_whole(
    cli: Cli, open_mpi: Library, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a compiler there is no profiling library."""
    program = built(open_mpi, work, PROGRAM.replace("CALL", ""))
    monkeypatch.setenv("PATH", str(work))
    monkeypatch.setenv("XDG_CACHE_HOME", str(work / "cache"))
    (work / "two.toml").write_text(SPACE)
    cli(
        "search", "--space", "./two.toml", "--strategy", "exhaustive", "--min-gain", "40",
        "--runs", "40", "--no-guard", "-n", "2", "--store", "r.db", "--", program,
    )  # fmt: skip
    with Store.open("r.db") as store:
        assert any("coll_tuned_barrier" in run.setting_key for run in store.runs(1))


@pytest.mark.parametrize("cell", ["cg-W", "jacobi3d-small", "bcast-256k"])
def test_a_prediction_names_nothing_that_acts_on_nothing(
    cli: Cli, open_mpi: object, cell: str
) -> None:
    """For these the shipped model named algorithms of collectives that they never call."""
    features = Path(__file__).parents[2] / "datasets/grid-node/features" / f"{cell}.json"
    outcome = cli("predict", features, "--json", "p.json")
    assert outcome.code == 0, outcome.text
    assert not re.search(r"(?<![\d.])0 %", outcome.out)
    data = json.loads(Path("p.json").read_text())
    assert all(why["share_of_run_time"] >= 0.005 for why in data["why"].values())
