"""Which component serves a collective: what Open MPI's log says, and how a run shows it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from runner.launch import Runner
from runner.mpi.discover import adapter
from runner.mpi.library import Library, ParamInfo
from runner.mpi.openmpi.collectives import (
    CollectiveComponents,
    collective_parameters,
    component_priorities,
    idle_parameters,
    log_options,
    operations_of,
    parse_component_log,
)
from runner.types import SERVED_BY, LaunchSpec, ReadBack, RunRecord
from tests.case_table import case_table
from tests.mpis import built, library_named

SOURCE = (Path(__file__).parents[1] / "collectives.c").read_text()
LOG = """\
[vm:1] coll:base:comm_select: new communicator: MPI_COMM_WORLD (cid 0)
[vm:1] coll:base:comm_select: selecting       adapt, priority   0, Disabled
[vm:1] coll:base:comm_select: selecting       basic, priority  10, Enabled
[vm:1] coll:base:comm_select: selecting       tuned, priority  30, Enabled
[vm:1] coll:base:comm_select: selecting          sm, priority  40, Enabled
"""
SM = {"coll_sm_priority": "40"}
DYNAMIC = {"coll_tuned_use_dynamic_rules": "1"}


def test_the_log_names_what_was_enabled_and_what_was_not(snapshot: SnapshotAssertion) -> None:
    found = parse_component_log(LOG.splitlines())
    assert found == CollectiveComponents({"basic": 10, "tuned": 30, "sm": 40}, {"adapt": 0})
    assert found is not None
    assert [found.server(o) for o in ("bcast", "alltoall", "nothing")] == ["sm", "tuned", ""]
    assert parse_component_log(["[vm:1] something else"]) is None
    assert [found.words, CollectiveComponents({"tuned": 30, "basic": 10}).words] == snapshot
    assert CollectiveComponents({"sm": 40, "adapt": 40}).server("bcast") == ""


@case_table(
    ("parameter", "operations"),
    [
        ("coll_tuned_allgatherv_algorithm", ("allgatherv",)),
        ("coll_tuned_reduce_scatter_block_algorithm", ("reduce_scatter_block",)),
        ("coll_han_use_simple_bcast", ("bcast",)),
        ("coll_han_use_allreduce_algorithm", ("allreduce",)),
        ("coll_adapt_priority", ("bcast", "reduce")),
        ("coll_libnbc_priority", ()),
        ("btl_sm_eager_limit", ()),
    ],
)
def test_a_parameter_is_about_these_collectives(
    parameter: str, operations: tuple[str, ...]
) -> None:
    assert operations_of(parameter) == operations


def test_parameters_of_a_component_that_serves_nothing_are_inactive() -> None:
    names = [
        *("coll_sm_priority", "coll_adapt_priority", "coll_tuned_bcast_algorithm"),
        *("coll_tuned_alltoall_algorithm", "btl_sm_eager_limit"),
    ]
    asked = {name: ReadBack("in force", "1", "1", "command line") for name in names}
    components = parse_component_log(LOG.splitlines())
    assert components is not None
    found = collective_parameters(asked, components)
    assert {name: (back.state, back.source) for name, back in found.items()} == {
        "coll_sm_priority": ("in force", "coll/sm serves allreduce, barrier, bcast, reduce"),
        "coll_adapt_priority": (
            *("inactive", "the library selected coll/adapt for no communicator"),
        ),
        "coll_tuned_bcast_algorithm": ("inactive", "coll/sm serves bcast here"),
        "coll_tuned_alltoall_algorithm": ("in force", "coll/tuned serves alltoall"),
    }


def test_parameters_below_coll_tuned_do_nothing() -> None:
    listed = {"tuned": "30", "han": "35", "sm": "0", "ucc": "10"}
    params = {
        name: ParamInfo(name, "int", default)
        for c, default in listed.items()
        for name in (f"coll_{c}_priority", f"coll_{c}_np", f"coll_{c}_enable")
    }
    assert set(idle_parameters(params)) == {"coll_sm_np", "coll_ucc_np"}
    figures = re.findall(r"coll/\w+|[0-9]+", idle_parameters(params)["coll_sm_np"])
    assert figures == ["coll/sm", "0", "coll/tuned", "30"]
    assert [*component_priorities(params)] == ["han", "tuned", "ucc", "sm"]
    assert idle_parameters({}) == {}


def test_the_log_is_asked_for_only_where_components_are_chosen() -> None:
    def asked(mca: dict[str, str], one_node: bool = True, *options: str) -> bool:
        return bool(
            log_options(LaunchSpec(("x",), 2, {"mca": mca}, launch_options=options), one_node)
        )

    assert asked(SM)
    assert asked({"coll_ucc_enable": "1"})
    assert asked({}, True, "--mca", "coll_han_priority", "0")
    assert not asked({"coll_tuned_bcast_algorithm": "1", "coll_adapt_bcast_segment_size": "1"})
    # coll/han would write a line for each call.
    assert not asked(SM, False)
    assert not asked({**SM, "coll_base_verbose": "0"})
    spec = LaunchSpec(("x",), 2, {"mca": SM})
    assert not log_options(spec, True, ["coll_base_verbose"])
    # The environment, too, can choose a component that serves in place of coll/tuned.
    assert log_options(LaunchSpec(("x",), 2), True, ["coll_sm_priority"])


@pytest.fixture(scope="module", params=["openmpi-4.1", "openmpi-5"])
def runner(request: pytest.FixtureRequest) -> Iterator[Runner]:
    with Runner(adapter(library_named(request.param)), guard=False) as started:
        yield started


def run(
    runner: Runner, place: Path, mca: dict[str, str], ranks: int = 3, timeout_s: float = 30
) -> RunRecord:
    library: Library = runner.adapter.library
    program = (str(built(library, place, SOURCE)), "canary")
    spec = LaunchSpec(
        program, ranks, {"mca": mca}, timeout_s=timeout_s, verify="right", oversubscribe=True
    )
    return runner.run(spec)


@pytest.mark.mpi
def test_a_run_shows_the_component_in_force(runner: Runner, tmp_path: Path) -> None:
    record = run(runner, tmp_path, {**SM, **DYNAMIC, "coll_tuned_bcast_algorithm": "1"})
    assert record.valid, record.reason
    states = {name: back.state for name, back in record.read_back.items()}
    assert states["coll_sm_priority"] == states["coll_tuned_use_dynamic_rules"] == "in force"
    assert states["coll_tuned_bcast_algorithm"] == "inactive"
    assert re.match(r"coll/sm \w+ allreduce", record.read_back["coll_sm_priority"].source)
    assert record.read_back[SERVED_BY].effective.startswith("sm: ")
    assert "barrier" in record.read_back[SERVED_BY].effective
    # The log is none of the program's output, and the level none of the user's settings.
    assert "comm_select" not in record.stderr_tail
    assert "coll_base_verbose" not in {**record.inherited, **states}


@pytest.mark.mpi
def test_han_declines_one_node(runner: Runner, tmp_path: Path) -> None:
    back = run(runner, tmp_path, {"coll_han_priority": "90"}).read_back["coll_han_priority"]
    why = "the library selected coll/han for no communicator"
    assert (back.state, back.effective, back.source) == ("inactive", "90", why)


@pytest.mark.mpi
@pytest.mark.slow
def test_what_the_log_calls_the_server_serves(runner: Runner, tmp_path: Path) -> None:
    """Values that must break a collective do so only where the log names their component."""
    pairs = {**DYNAMIC, "coll_tuned_barrier_algorithm": "two_proc"}
    nothing_sent = {"coll_adapt_bcast_max_send_requests": "0"}
    # An algorithm for two ranks, on three: fails in coll/tuned, and coll/sm does not use it.
    assert run(runner, tmp_path, pairs).state == "failed"
    assert run(runner, tmp_path, {**pairs, **SM}).valid
    # Without requests nothing is ever sent.
    assert run(runner, tmp_path, nothing_sent).valid
    hangs = run(runner, tmp_path, {**nothing_sent, "coll_adapt_priority": "40"}, timeout_s=5)
    assert hangs.state == "timeout"
