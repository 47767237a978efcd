"""Candidates of MPICH, and what a launch loads for its tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autotune.collective_rules import Rule
from autotune.collectives.tournament import OPERATIONS, table_candidates
from autotune.dialects import dialect
from autotune.dialects.mpich_trees import FILE, LAYERS_FILE
from autotune.errors import UsageError
from runner.mpi.library import Library, ParamInfo
from tests.refusals import refused

MPICH = dialect("mpich")
ALGORITHM, LAYER = "MPIR_CVAR_BCAST_INTRA_ALGORITHM", "MPIR_CVAR_BCAST_POSIX_INTRA_ALGORITHM"
FANOUT = "MPIR_CVAR_BCAST_TREE_KVAL"
TREES = {
    "collective=bcast": {"comm_type=intra": {"algorithm=MPIR_Bcast_intra_binomial": {}}},
    "collective=gather": {"algorithm=MPIR_Gather_intra_binomial": {}},
}
LAYERS = {"collective=bcast": {"composition=MPIDI_Bcast_intra_composition_alpha": {}}}


@pytest.fixture
def library(tmp_path: Path) -> Library:
    """A library file that holds the trees and the names of algorithms, and variables."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "lib").mkdir()
    texts = [json.dumps(TREES), json.dumps(LAYERS)]
    texts += [f"algorithm=MPIR_Bcast_intra_{word}" for word in ("binomial", "tree", "smp")]
    content = "\0".join(["", *texts, ""]).encode()
    (tmp_path / "lib" / "libmpi.so.12").write_bytes(content)
    choices = {0: "auto", 1: "binomial", 2: "smp", 3: "tree", 4: "newer"}
    params = {
        ALGORITHM: ParamInfo(ALGORITHM, "int", "0", enum=choices),
        LAYER: ParamInfo(LAYER, "int", "2", enum={0: "mpir", 1: "release_gather", 2: "auto"}),
        FANOUT: ParamInfo(FANOUT, "int", "2"),
    }
    place = tmp_path / "bin"
    return Library("mpich", "5.0.2", str(place), str(place / "mpirun"), params)


def test_candidates_are_what_a_tree_can_name(library: Library) -> None:
    """Not the library's own choice, nor what calls the others, nor what no file can name."""
    space = MPICH.space(library, "bcast", {"ranks": 4})
    rules = [MPICH.rule(space, "bcast", setting) for setting in table_candidates(space)]
    tree = "MPIR_Bcast_intra_tree"
    assert {(r.algorithm, r.fanout) for r in rules} == {
        ("MPIR_Bcast_intra_binomial", 0), (tree, 0), (tree, 4),
    }  # fmt: skip
    launched = space.launched(table_candidates(space)[0])["mca"]
    assert launched[LAYER] == "mpir", "shared memory would serve the collective"
    assert MPICH.names(library, "bcast")[tree] == "tree"
    two = MPICH.space(library, "bcast", {"ranks": 2})
    assert len(table_candidates(two)) == 2
    with refused(UsageError, "collectives.no_algorithms"):
        MPICH.space(library, "gather", {"ranks": 2})


def test_a_table_is_loaded_as_two_trees(library: Library, tmp_path: Path) -> None:
    place = tmp_path / "cache"
    rules = [Rule("bcast", 2, 0, "0"), Rule("bcast", 2, 64, "MPIR_Bcast_intra_binomial")]
    first = MPICH.loading(rules, library, place, "bcast-2")
    assert [p.name for p in first] == [FILE, LAYERS_FILE]
    assert MPICH.loading(rules, library, place, "bcast-2") == first
    assert len(list(place.iterdir())) == 2
    (alone,) = MPICH.loading([Rule("gather", 2, 0, "0")], library, place, "gather-2")
    assert alone.name == FILE


def test_without_its_trees_nothing_is_loaded(tmp_path: Path) -> None:
    absent = Library("mpich", "5.0.2", str(tmp_path), str(tmp_path / "mpirun"))
    with refused(UsageError, "collectives.algorithm_unknown"):
        MPICH.loading([Rule("bcast", 1, 0, "0")], absent, tmp_path, "bcast")


def test_sizes_are_those_of_the_trees() -> None:
    assert {name for name in OPERATIONS if name in MPICH.sums} == {
        "allgather", "alltoall", "gather",
    }  # fmt: skip
