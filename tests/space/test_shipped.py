"""What the shipped spaces promise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from autotune.space import Setting, load_space, space_names
from autotune.space.check import check_file
from runner.mpi.library import Library
from tests.case_table import case_table
from tests.space.libraries import CLUSTER, CROWDED, NEW, OLD, ONE_NODE

SHIPPED = (
    "mate",
    "mate-cannon",
    "mate-cloverleaf3d",
    "mate-flowcart",
    "mate-jacobi3d",
    "mate-minighost",
    "mate-nas",
    "mate-nas-cg",
    "mate-nas-ft",
    "mate-nas-is",
    "mate-nas-lu",
    "mate-nas-mg",
    "minighost",
    "null",
    "openmpi",
    "openmpi-pml",
    "openmpi-tcp",
    "openmpi-ucx",
    "openmpi-thesis",
    "tarragon",
    "tarragon-lu",
    "tarragon-minighost",
    "tarragon-nw",
    "tarragon-ring",
)


def test_they_are_all_found() -> None:
    assert set(SHIPPED) <= set(space_names())


@pytest.mark.parametrize("library", [OLD, NEW], ids=["4.1", "5.0"])
def test_they_pass_their_own_check(library: Library) -> None:
    for name in SHIPPED:
        report = check_file(name, library)
        assert [str(error) for error in report.errors] == [], name
        assert report.ok, name
        assert report.space is not None, name


def test_the_thesis_has_27_parameters_with_178_levels() -> None:
    """Pellegrini, table 4.2; the full factorial is the digest's 4.644864e19."""
    space = load_space("openmpi-thesis")
    assert len(space) == 27
    assert sum(len(parameter.levels) for parameter in space) == 178
    assert math.prod(len(parameter.levels) for parameter in space) == 46448640000000000000
    assert not space.absent


@pytest.mark.parametrize("library", [OLD, NEW], ids=["4.1", "5.0"])
def test_of_the_thesis_every_parameter_is_here_or_accounted_for(library: Library) -> None:
    space = load_space("openmpi-thesis", library, dict(ONE_NODE))
    assert len(space) + len(space.absent) == 27
    assert len(space) == 11
    assert all(space.absent.values())
    assert "bind_to" in space
    assert "mpi_preconnect_all" in space


def test_the_rules_of_the_thesis() -> None:
    space = load_space("openmpi-thesis")
    assert space.is_valid({"btl_sm_eager_limit": 4096, "btl_sm_rndv_eager_limit": 4096})
    assert not space.is_valid({"btl_sm_eager_limit": 4096, "btl_sm_rndv_eager_limit": 8192})
    assert not space.is_valid({"btl_openib_eager_limit": 512, "btl_openib_rndv_eager_limit": 4096})
    assert not space.is_valid({"coll_sm_control_size": 8192, "coll_sm_fragment_size": 4096})
    raised = {
        "btl_openib_eager_limit": 4096,
        "btl_openib_rdma_pipeline_send_length": 65536,
        "btl_openib_min_rdma_pipeline_size": 65536,
    }
    assert "btl_openib_min_rdma_pipeline_size" not in space.canonical(raised)
    raised["btl_openib_min_rdma_pipeline_size"] = 131072
    assert "btl_openib_min_rdma_pipeline_size" in space.canonical(raised)


@pytest.mark.parametrize("library", [OLD, NEW], ids=["4.1", "5.0"])
def test_two_proc_needs_two_ranks(library: Library) -> None:
    setting = Setting.parse("coll_tuned_barrier_algorithm=two_proc")
    assert load_space("openmpi", library, dict(ONE_NODE)).is_valid(setting)
    assert not load_space("openmpi", library, dict(CROWDED)).is_valid(setting)


@pytest.mark.parametrize("library", [OLD, NEW], ids=["4.1", "5.0"])
def test_fragments_fit_into_the_segment(library: Library) -> None:
    space = load_space("openmpi", library, dict(ONE_NODE))
    prefix = "btl_vader_" if library is OLD else "btl_sm_"
    large = {f"{prefix}eager_limit": 262144, f"{prefix}max_send_size": 262144}
    small_segment = {f"{prefix}segment_size": 4 * 2**20}
    big_segment = {f"{prefix}segment_size": 16 * 2**20}
    assert not space.is_valid({**large, **small_segment})
    assert space.is_valid({**large, **big_segment})
    # The segment of 5.0 is larger from the start.
    assert space.is_valid(large) == (library is NEW)


def test_yield_is_what_the_version_makes_of_it() -> None:
    spin = Setting.parse("mpi_yield_when_idle=0")
    for library in (OLD, NEW):
        here = load_space("openmpi", library, dict(ONE_NODE))
        assert here["mpi_yield_when_idle"].choices == (None, 1)
        assert here.canonical(spin) == Setting()
    assert "mpi_yield_when_idle" in load_space("openmpi", NEW, dict(CROWDED)).absent
    assert not load_space("openmpi", OLD, dict(CROWDED)).is_valid(spin)
    assert load_space("openmpi-thesis", OLD, dict(CROWDED)).is_valid(spin)


def test_tuned_algorithms_count_only_where_han_is_not_before_them() -> None:
    setting = Setting.parse("coll_tuned_bcast_algorithm=chain")
    off = setting.with_values({"coll_han_priority": 0})
    on = setting.with_values({"coll_han_priority": 35})
    new, old = (load_space("openmpi", library, dict(CLUSTER)) for library in (NEW, OLD))
    assert not new.canonical(setting)
    assert len(new.canonical(off)) == 2
    assert old.canonical(setting).key == "coll_tuned_bcast_algorithm=2"
    assert old.canonical(on).key == "coll_han_priority=35"


def test_forced_algorithms_bring_what_makes_them_count() -> None:
    space = load_space("openmpi", NEW, dict(ONE_NODE))
    setting = Setting.parse(
        "coll_tuned_bcast_algorithm=2,coll_tuned_bcast_algorithm_segmentsize=4k"
    )
    assert space.canonical(setting) == setting
    assert space.launched(setting)["mca"]["coll_tuned_use_dynamic_rules"] == "1"
    assert space.canonical(setting.without("coll_tuned_bcast_algorithm")) == Setting()


def test_5_0_binds_only_inside_what_was_mapped() -> None:
    setting = Setting.parse("map_by=numa,bind_to=package")
    assert not load_space("openmpi", NEW, dict(ONE_NODE)).is_valid(setting)
    older = Setting.parse("map_by=numa,bind_to=socket")
    assert load_space("openmpi", OLD, dict(ONE_NODE)).is_valid(older)


@case_table("library", [OLD, NEW])
@case_table("facts", [ONE_NODE, CROWDED, CLUSTER])
def test_random_settings_are_valid_and_launchable(library: Library, facts: dict[str, int]) -> None:
    space = load_space("openmpi+openmpi-tcp", library, dict(facts))
    rng = np.random.default_rng(3)
    for _ in range(20):
        setting = space.sample(rng)
        assert space.violations(setting) == []
        assert space.canonical(setting) == setting
        assert set(space.launched(setting)) <= {"mca", "placement", "env"}


@case_table("library", [OLD, NEW])
@case_table("first", ["openmpi", "openmpi-pml", "openmpi-ucx"])
def test_tcp_can_be_added_to_each(library: Library, first: str) -> None:
    space = load_space(f"{first}+openmpi-tcp", library, dict(CLUSTER))
    assert {"pml", "UCX_TCP_NODELAY"} <= set(space.names)


def test_null_is_for_one_node_only() -> None:
    assert len(load_space("null", NEW, dict(ONE_NODE))) >= 5
    away = load_space("null", NEW, dict(CLUSTER))
    assert len(away) == 0
    assert all("nodes <= 1" in reason for reason in away.absent.values())
