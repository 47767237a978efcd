"""Where a launcher would run ranks: what it prints, and what the real ones answer."""

from __future__ import annotations

import dataclasses

import pytest

from runner.cpus import available_cpus, count_cores
from runner.launch import rank_layout
from runner.mpi.discover import adapter
from runner.mpi.rank_layout import (
    ALL,
    UNBOUND,
    RankLayout,
    Topology,
    hydra_layout,
    open_mpi_layout,
)
from runner.types import LaunchSpec
from tests.case_table import case_table
from tests.mpis import library_named

SIXTEEN = Topology(16)
PRRTE = """
Data for node: vm    State: 3    Flags: DAEMON_LAUNCHED
        Daemon: [prterun-vm-24506@0,0]    Daemon launched: True
            Num slots: 2    Slots in use: 2    Oversubscribed: {crowded}
        Data for proc: [prterun-vm-24506@1,1]
                Pid: 0    Local rank: 1    Node rank: 1    App rank: 1
            Binding: {second}
        Data for proc: [prterun-vm-24506@1,0]
                Pid: 0    Local rank: 0    Node rank: 0    App rank: 0
            Binding: {first}
"""
ORTE = """
 Data for node: vm    State: 3    Flags: 19
     Num slots: 16    Slots in use: 2    Oversubscribed: FALSE
     Data for proc: [[21362,1],0]
         Locale:  [B/B][./.]
         Binding: {first}
     Data for proc: [[21362,1],1]
         Locale:  [./.][B/B]
         Binding: {second}
"""
WHOLE = "package[0][core:L0-7] package[1][core:L8-15]"


def of_prrte(first: str, second: str = "UNBOUND", crowded: str = "FALSE") -> RankLayout | None:
    text = PRRTE.format(first=first, second=second, crowded=crowded)
    return open_mpi_layout(text, 2, SIXTEEN)


def test_ranks_of_open_mpi_5_are_in_order() -> None:
    core, other = "package[0][core:L0]", "package[1][core:L8-9]"
    assert of_prrte(core, other) == (f"vm: {core}", f"vm: {other}")


def test_all_cores_are_as_many_as_an_unbound_rank_may_use() -> None:
    assert of_prrte(WHOLE) == (f"vm: {ALL}",) * 2
    text = PRRTE.format(first=WHOLE, second="UNBOUND", crowded="FALSE")
    part = Topology(16, is_whole=False)
    assert open_mpi_layout(text, 2, part) == (f"vm: {ALL}", f"vm: {UNBOUND}")
    assert of_prrte("package[0][hwt:L0-15]") != of_prrte(WHOLE)


def test_a_crowded_node_is_another_layout() -> None:
    assert of_prrte(WHOLE, crowded="TRUE") not in (None, of_prrte(WHOLE))


@case_table("binding", ["N/A", "", "package[0][core:L0", "\x01\x02"])
def test_a_binding_in_another_form_is_not_known(binding: str) -> None:
    assert of_prrte(WHOLE, binding) is None


def test_a_map_without_all_ranks_is_no_layout() -> None:
    text = PRRTE.format(first=WHOLE, second=WHOLE, crowded="FALSE")
    assert open_mpi_layout(text, 3, SIXTEEN) is None
    assert open_mpi_layout("", 1, SIXTEEN) is None


def test_open_mpi_4_writes_nothing_for_all_cpus() -> None:
    text = ORTE.format(first="", second="UNBOUND")
    assert open_mpi_layout(text, 2, SIXTEEN) == (f"vm: {ALL}",) * 2
    text = ORTE.format(first="[B/.][./.]", second="[./.][BB/..]")
    assert open_mpi_layout(text, 2, SIXTEEN) == ("vm: [B/.][./.]", "vm: [./.][BB/..]")


def test_hydra_prints_bound_ranks_only() -> None:
    lines = "[proxy:0@vm] created\nprocess 1 binding: 01\nprocess 0 binding: 11\n"
    assert hydra_layout(lines, 2, SIXTEEN, is_bound=True) == (ALL, "01")
    assert hydra_layout("", 2, SIXTEEN, is_bound=False) == (ALL, ALL)
    assert hydra_layout("", 2, Topology(16, False), is_bound=False) == (UNBOUND, UNBOUND)
    assert hydra_layout("", 2, SIXTEEN, is_bound=True) is None
    assert hydra_layout(lines, 3, SIXTEEN, is_bound=True) is None


@pytest.mark.mpi
@pytest.mark.parametrize("name", ["openmpi-5", "openmpi-4.1", "mpich"])
def test_launchers_say_where_ranks_would_run(name: str) -> None:
    if count_cores(available_cpus()) < 2:
        pytest.skip("needs two cores")
    library = adapter(library_named(name))
    spec = LaunchSpec(("a-program-that-is-not-there",), 2)

    def layout(binding: str) -> RankLayout:
        bound = dataclasses.replace(spec, placement={"bind_to": binding})
        answer = rank_layout(library, bound, Topology.here())
        assert answer is not None
        return answer

    first, second = layout("core")
    assert first != second
    free = layout("none")
    assert free[0] == free[1]
    assert free[0].endswith((ALL, UNBOUND))


@pytest.mark.mpi
def test_a_refused_placement_has_no_layout() -> None:
    library = adapter(library_named("openmpi-5"))
    spec = LaunchSpec(("true",), 2, placement={"bind_to": "nonsense"})
    assert rank_layout(library, spec, Topology.here()) is None
    elsewhere = dataclasses.replace(spec, placement={}, launch_options=("--host", "a,b"))
    assert library.layout_query(elsewhere) is None
    assert library.layout_query(dataclasses.replace(elsewhere, one_machine=True)) is not None
