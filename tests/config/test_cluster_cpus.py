"""The field ``cpus`` of a cluster definition: spelling, cores, identity, mistakes."""

from __future__ import annotations

import os

import pytest

from autotune.config.cluster import Cluster
from autotune.config.validated import read_toml
from autotune.errors import UsageError
from runner.cpus import count_cores
from tests.case_table import case_table
from tests.refusals import refused


def cluster(text: str) -> Cluster:
    return read_toml(f'name = "half"\n{text}', "half.toml", Cluster)


def test_no_cpus_is_the_whole_machine() -> None:
    for text in ("", 'cpus = ""', 'cpus = " "'):
        whole = cluster(text)
        assert whole.cpu_set is None
        assert whole.cores_per_node is None
        assert whole == cluster("")


def test_one_set_has_one_spelling() -> None:
    """The definition is part of a study's key: equal sets must be equal there."""
    spelt = [cluster(f'cpus = "{text}"') for text in ("0-2,7", " 7, 0,1-2 ", "0,1,2,7,7")]
    assert {item.model_dump_json() for item in spelt} == {spelt[0].model_dump_json()}
    assert spelt[0].cpu_set == frozenset({0, 1, 2, 7})
    assert cluster('cpus = "0-2"').model_dump_json() != spelt[0].model_dump_json()


def test_cores_are_those_of_the_set() -> None:
    one = min(os.sched_getaffinity(0))
    assert cluster(f'cpus = "{one}"').total_cores == 1
    # CPUs that this machine has not count as one core each.
    assert cluster('cpus = "20000-20005"').total_cores == count_cores(range(20000, 20006)) == 6
    assert cluster('cpus = "20000-20005"\ncores_per_node = 3').total_cores == 3


@case_table("text", ['"0-"', '"2-1"', '"all"', "3", "[0, 1]"])
def test_what_is_no_list_is_told(text: str) -> None:
    with refused(UsageError, "config.invalid"):
        cluster(f"cpus = {text}")


def test_cpus_are_those_of_one_node() -> None:
    with pytest.raises(UsageError, match="nodes = 2"):
        cluster('cpus = "0-1"\nnodes = 2')
