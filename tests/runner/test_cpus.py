"""CPU lists, and which CPUs are one core on machines of different shape."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner import cpus
from tests.case_table import case_table


@given(st.frozensets(st.integers(0, 300), min_size=1))
def test_a_list_says_exactly_its_cpus(listed: frozenset[int]) -> None:
    text = cpus.cpu_list(listed)
    assert cpus.parse_cpus(text) == listed
    assert cpus.cpu_list(sorted(listed, reverse=True)) == text


def test_lists_are_short() -> None:
    assert cpus.cpu_list([4, 0, 1, 2, 6, 7]) == "0-2,4,6-7"
    assert cpus.cpu_list([]) == ""
    assert cpus.parse_cpus(" 0 - 1, 4 ") == {0, 1, 4}


@case_table("text", ["", "a", "1-", "-1", "3-1", "1,,2", "1,", "1:2", "0x1", "999999"])
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="0-1,4"):
        cpus.parse_cpus(text)


def machine(root: Path, cores: list[list[set[int]]]) -> None:
    """A /sys with sockets of cores of hardware threads."""
    folder = root / "cpu"
    for socket in cores:
        package = cpus.cpu_list(set().union(*socket))
        for core in socket:
            for cpu in core:
                place = folder / f"cpu{cpu}" / "topology"
                place.mkdir(parents=True)
                (place / "thread_siblings_list").write_text(cpus.cpu_list(core) + "\n")
                (place / "package_cpus_list").write_text(package + "\n")


@pytest.fixture
def two_sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sockets, CPUs dealt out between them; each core's second thread has 4 more."""
    machine(tmp_path, [[{0, 4}, {2, 6}], [{1, 5}, {3, 7}]])
    monkeypatch.setattr(cpus, "_CPU", tmp_path / "cpu")
    monkeypatch.setattr(cpus, "_NODES", tmp_path / "none")


@pytest.mark.usefixtures("two_sockets")
def test_cores_and_their_threads() -> None:
    assert cpus.with_siblings({0}) == {0, 4}
    assert cpus.with_siblings({4, 1}) == {0, 1, 4, 5}
    assert cpus.with_siblings({0, 40}) == {0, 4, 40}
    assert cpus.with_siblings(()) == frozenset()
    assert cpus.count_cores({0, 4}) == 1
    assert cpus.count_cores({0, 1, 40}) == 3


@pytest.mark.usefixtures("two_sockets")
@pytest.mark.parametrize(
    ("chosen", "present", "numbers"),
    [
        ({0}, range(8), {0}),
        ({2, 6}, range(8), {1}),  # the second core of the first socket, not CPU 2's place
        ({1}, range(8), {2}),
        ({5, 3}, range(8), {2, 3}),
        ({1}, {1, 3, 5, 7}, {0}),  # a control group without the first socket
        ({9}, range(8), set()),
    ],
)
def test_cores_are_numbered_as_hwloc_does(
    chosen: set[int], present: set[int], numbers: set[int]
) -> None:
    assert cpus.core_numbers(chosen, machine=present) == numbers


def test_cores_of_this_machine() -> None:
    present = cpus.available_cpus()
    assert present
    assert cpus.core_numbers(present) == frozenset(range(cpus.count_cores(present)))


@pytest.mark.usefixtures("two_sockets")
def test_cores_are_divided_in_whole_and_in_order() -> None:
    assert cpus.core_sets(2, range(8)) == [{0, 4, 2, 6}, {1, 5, 3, 7}]
    assert cpus.core_sets(3, range(8)) == [{0, 4}, {2, 6}, {1, 5}]
    with pytest.raises(ValueError):
        cpus.core_sets(5, range(8))


def test_a_set_of_cores_lies_in_one_numa_node_where_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two nodes of five cores: pairs leave a core of each node; four by four do not fit."""
    machine(tmp_path, [[{0}, {1}, {2}, {3}, {4}], [{5}, {6}, {7}, {8}, {9}]])
    for node, listed in ((0, "0-4"), (1, "5-9")):
        place = tmp_path / "node" / f"node{node}"
        place.mkdir(parents=True)
        (place / "cpulist").write_text(listed + "\n")
    monkeypatch.setattr(cpus, "_CPU", tmp_path / "cpu")
    monkeypatch.setattr(cpus, "_NODES", tmp_path / "node")
    assert cpus.core_sets(4, range(10)) == [{0, 1}, {2, 3}, {5, 6}, {7, 8}]
    assert cpus.core_sets(3, range(10)) == [{0, 1, 2}, {3, 4, 5}, {6, 7, 8}]


def test_cpus_of_one_numa_node_have_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for node, listed in ((0, "0-4"), (3, "5-9")):
        (tmp_path / f"node{node}").mkdir()
        (tmp_path / f"node{node}" / "cpulist").write_text(listed + "\n")
    monkeypatch.setattr(cpus, "_NODES", tmp_path)
    assert [cpus.memory_domain(found) for found in ({1, 4}, {5}, {4, 5}, {12})] == [0, 3, 0, 0]
