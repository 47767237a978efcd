"""Studies that are begun on a login node and measured on nodes of another kind."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from autotune.errors import UsageError
from autotune.measurement.study_key import require_same_study
from autotune.store import MachineInfo, Store
from autotune.store.model import MOVED
from tests.contract.store_samples import MPI, key
from tests.refusals import refused

NODE = MachineInfo(64, "Another CPU", 256 * 2**30, "6.1.0", "node7")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "r.db") as opened:
        yield opened


def test_equal_nodes_work_on_the_study_as_it_is(store: Store) -> None:
    begun = store.study(key())
    require_same_study(store, begun, store.study(key()))
    assert store.follow_moved(store.get_study(begun.id)).id == begun.id


def test_the_first_node_of_another_kind_takes_the_study_with_it(store: Store) -> None:
    begun, own = store.study(key()), store.study(key(machine=NODE, ranks=64))
    require_same_study(store, begun, own)
    begun = store.get_study(begun.id)
    assert begun.status == MOVED
    assert store.follow_moved(begun).id == own.id
    require_same_study(store, begun, own)  # The next worker on such a node.
    with refused(UsageError, "worker.other_study"):
        require_same_study(
            store, begun, store.study(key(machine=dataclasses.replace(NODE, cores=32)))
        )


def test_a_study_that_has_trials_stays_where_it_is(store: Store) -> None:
    begun, own = store.study(key()), store.study(key(machine=NODE))
    store.add_trial(begun.id, {"a": 1}, "a=1")
    with refused(UsageError, "worker.other_study"):
        require_same_study(store, begun, own)


def test_another_mpi_is_another_study(store: Store) -> None:
    begun = store.study(key())
    own = store.study(key(mpi=dataclasses.replace(MPI, version="4.1.4")))
    with refused(UsageError, "worker.other_study"):
        require_same_study(store, begun, own)
    assert store.get_study(begun.id).status != MOVED
