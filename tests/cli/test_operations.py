"""Searches and comparisons of programs whose operations commute, or do not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runner.mpi.library import Library
from tests.cli.conftest import Cli
from tests.mpis import built

pytestmark = pytest.mark.mpi
PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void nothing(void *a, void *b, int *length, MPI_Datatype *type) { }
int main(int argc, char **argv)
{
    MPI_Op op;
    int rank, ranks, one = 1, all;
    const char *algorithm = getenv("OMPI_MCA_coll_tuned_allreduce_algorithm");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (strcmp(argv[1], "ordered") == 0)
        MPI_Op_create(nothing, 0, &op);
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    double s = algorithm && strcmp(algorithm, "4") == 0 ? 0.9 : 1.0;
    if (rank == 0)
        printf("took %.4f s of %d\n", s + getpid() % 7 / 10000.0, ranks);
    MPI_Finalize();
    return 0;
}
"""
ONLY = """
library = "openmpi>=4.1"
[parameters.coll_tuned_allreduce_algorithm]
levels = ["ring", "segmented_ring"]
implies = { coll_tuned_use_dynamic_rules = 1 }
"""
FIGURE = ("--metric", "took ([0-9.]+) s", "--ranks", "2", "--no-guard", "--store", "r.db")


@pytest.fixture
def line(work: Path, open_mpi: Library) -> tuple[str]:
    (work / "only.toml").write_text(ONLY)
    return (str(built(open_mpi, work, PROGRAM)),)


def searched(cli: Cli, *words: str) -> tuple[int, str]:
    found = cli("search", *FIGURE, "--space", "only.toml", "--trials", "2", *words)
    return found.code, found.err


def test_no_level_is_left_for_operations_that_do_not_commute(cli: Cli, line: tuple[str]) -> None:
    code, said = searched(cli, "--", *line, "ordered")
    assert code == 2
    assert "[space.commutative]" in said
    # What is seen comes before what is said.
    code, said = searched(cli, "--commutative-only", "--", *line, "ordered")
    assert code == 2
    assert "[space.commutative]" in said


def test_operations_of_mpi_commute(cli: Cli, line: tuple[str], work: Path) -> None:
    few = ("--min-gain", "40")
    code, said = searched(cli, *few, "--json", "s.json", "--", *line, "sum")
    assert code == 0, said
    result = json.loads((work / "s.json").read_text())
    assert result["best"]["setting"] == {"coll_tuned_allreduce_algorithm": 4}


@pytest.mark.parametrize(
    ("word", "contradicted"),
    [("ordered", True), pytest.param("sum", False, marks=pytest.mark.slow)],
)
def test_a_comparison(
    cli: Cli, line: tuple[str], work: Path, word: str, contradicted: bool
) -> None:
    setting = "coll_tuned_allreduce_algorithm=ring"
    words = ("compare", "default", setting, *FIGURE, "--space", "only.toml")
    few = ("--pairs", "6", "--runs", "14")
    found = cli(*words, *few, "--json", "c.json", "--", *line, word)
    assert found.code in (0, 1), found.err
    result = json.loads((work / "c.json").read_text())
    codes = [note["code"] for note in result["contradictions"]]
    assert ("operations.ordered" in codes) is contradicted


def test_what_the_search_leaves_out_is_in_its_answer(
    cli: Cli, line: tuple[str], work: Path
) -> None:
    (work / "both.toml").write_text(ONLY.replace('["ring"', '["recursive_doubling", "ring"'))
    words = ("--trials", "3", "--json", "s.json", "--start", "coll_tuned_allreduce_algorithm=ring")
    found = cli("search", *FIGURE, "--space", "both.toml", *words, "--", *line, "ordered")
    assert found.code == 0, found.err
    result = json.loads((work / "s.json").read_text())
    assert result["trials"] == 1
    assert result["best"]["setting"] == {"coll_tuned_allreduce_algorithm": 3}
    (note,) = (one for one in result["warnings"] if one["code"] == "operations.ordered")
    assert note["data"]["levels"] == {"coll_tuned_allreduce_algorithm": [4, 5]}
