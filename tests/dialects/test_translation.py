"""Rules translated by the names of algorithms."""

from __future__ import annotations

import pytest

from autotune.collective_rules import Rule
from autotune.dialects.translation import translate
from autotune.errors import UsageError
from tests.refusals import refused

OPEN_MPI = {"bcast": {"2": "chain", "6": "binomial", "8": "scatter_allgather"}}
MPICH = {"bcast": {"MPIR_Bcast_intra_binomial": "binomial", "MPIR_Bcast_allcomm_nb": "nb"}}
THERE, BACK = ("openmpi", "mpich"), ("mpich", "openmpi")


def test_an_algorithm_of_the_same_name_is_found() -> None:
    rules = (Rule("bcast", 2, 0, "0"), Rule("bcast", 2, 64, "6", 4, 1024))
    there = translate(rules, OPEN_MPI, THERE, MPICH)
    assert there == (rules[0], Rule("bcast", 2, 64, "MPIR_Bcast_intra_binomial"))
    assert translate(there, MPICH, BACK, OPEN_MPI) == (rules[0], Rule("bcast", 2, 64, "6"))


@pytest.mark.parametrize(("number", "word"), [("2", "chain"), ("8", "scatter_allgather")])
def test_an_algorithm_that_the_other_lacks_is_refused(number: str, word: str) -> None:
    with refused(UsageError, "collectives.algorithm_unknown"):
        translate((Rule("bcast", 2, 0, number),), OPEN_MPI, THERE, MPICH)


def test_presets_have_no_names() -> None:
    with refused(UsageError, "collectives.algorithm_unknown"):
        translate((Rule("bcast", 2, 0, "6"),), OPEN_MPI, ("openmpi", "impi"), {"bcast": {"6": "6"}})
