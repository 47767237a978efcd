"""What the default's transport says of the parameters of a space, and how a search uses it."""

from __future__ import annotations

import pytest

from autotune.measurement.idle_parameters import (
    CALLS,
    TransportFacts,
    needs_call_counts,
    untuned_calls,
    unused_parameters,
)
from autotune.measurement.run_history import WARMUP, HistoryEntry, RunHistory
from autotune.space import DEFAULT, Setting, Space, load_space
from autotune.strategies import DEFAULTS
from autotune.strategies.codec import Codec
from runner.mpi.library import Library
from runner.types import TRANSPORT, ReadBack, RunRecord
from tests.space.libraries import NEW

FACTS = {"ranks": 4, "cores": 2, "nodes": 1}
EAGER = "btl_sm_eager_limit"


def record(transport: str, family: str = "openmpi") -> RunRecord:
    back = {TRANSPORT: ReadBack("in force", "", transport)} if transport else {}
    return RunRecord("ok", read_back=back, mpi_name=family)


@pytest.fixture
def space() -> Space:
    return load_space("openmpi", NEW, FACTS)


@pytest.mark.parametrize(
    ("transport", "defaults"),
    [("ob1: sm", {"pml": "ob1"}), ("ucx: sysv/memory", {"pml": "ucx"}), ("cm: ofi", {}), ("", {})],
)
def test_the_choice_has_the_value_that_a_run_showed(
    space: Space, transport: str, defaults: dict[str, str]
) -> None:
    found = TransportFacts.of(space, [record(""), record(transport)])
    assert (found.defaults, found.idle) == (defaults, {})


def test_without_a_choice_the_parameters_of_others_are_idle(space: Space) -> None:
    fixed = space.without({"pml": "your launcher line sets it"})
    found = TransportFacts.of(fixed, [record("ucx")])
    assert found.defaults == {}
    assert {EAGER, "smsc"} <= set(found.idle)
    assert not {"UCX_RNDV_THRESH", "pml_ucx_progress_iterations", "map_by"} & set(found.idle)


def test_other_libraries_say_nothing(space: Space) -> None:
    for family in ("mpich", "", "no such family"):
        found = TransportFacts.of(space, [record("ucx", family)])
        assert (found.defaults, found.idle) == ({}, {})


def warmed_up(calls: dict[str, int]) -> RunHistory:
    extra = {CALLS: calls} if calls else {}
    return RunHistory([HistoryEntry(0, "default", WARMUP, RunRecord("ok", extra=extra))])


def test_one_sided_parameters_are_for_programs_with_one_sided_calls() -> None:
    with_windows = load_space("openmpi-rma", NEW, FACTS)
    named = {name for name in with_windows.names if name.startswith("osc")}
    assert "osc_rdma_buffer_size" in named
    assert needs_call_counts(with_windows)
    assert unused_parameters(with_windows, warmed_up({"send": 3})) == named
    assert unused_parameters(with_windows, warmed_up({"send": 3, "rma": 1})) == frozenset()
    assert unused_parameters(with_windows, warmed_up({})) == frozenset()


def test_a_space_without_one_sided_parameters_says_so(space: Space) -> None:
    with_windows = load_space("openmpi-rma", NEW, FACTS)
    note = untuned_calls(space, {"rma": 1})
    assert note is not None
    assert (note.code, note.data) == ("space.one_sided_calls", {"calls": {"rma": 1}})
    assert untuned_calls(space, {"send": 1, "rma": 0}) is None
    assert untuned_calls(with_windows, {"rma": 1}) is None


def test_strategies_learn_the_default_from_a_trial(space: Space) -> None:
    codec = Codec(space)
    chosen = Setting({"pml": "ucx", "UCX_RNDV_THRESH": 4096})
    assert codec.settle(chosen) == chosen
    assert codec.leave_out({DEFAULTS: {"pml": "ucx"}}, DEFAULT)
    assert not codec.leave_out({DEFAULTS: {"pml": "ucx"}}, DEFAULT)
    assert codec.settle(chosen) == Setting({"UCX_RNDV_THRESH": 4096})
    assert codec.settle(Setting({EAGER: 1024})) == DEFAULT
    other = Setting({"pml": "ob1", EAGER: 1024})
    assert codec.settle(other) == other


def counted(calls: dict[str, int], family: str = "openmpi") -> RunHistory:
    warm = RunRecord("ok", extra={CALLS: calls}, mpi_name=family)
    return RunHistory.of([HistoryEntry(0, "default", WARMUP, warm)])


def test_a_component_without_any_of_its_collectives_is_unused(open_mpi: Library) -> None:
    space = load_space("openmpi-collectives", open_mpi, FACTS)
    others = unused_parameters(space, counted({"send": 9, "allreduce": 0, "alltoall": 4}))
    assert {"coll_sm_priority", "coll_adapt_priority", "coll_sm_tree_degree"} <= others
    assert "coll_tuned_alltoallv_algorithm" not in others
    shared = unused_parameters(space, counted({"send": 9, "allreduce": 5}))
    assert {"coll_adapt_priority", "coll_adapt_bcast_algorithm"} <= shared
    assert not {"coll_sm_priority", "coll_sm_tree_degree", EAGER} & shared
    assert unused_parameters(space, counted({"send": 0})) == frozenset()
