"""CPU lists, and which CPUs are one core on machines of different shape."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner import cpuset


@given(st.frozensets(st.integers(0, 300), min_size=1))
def test_a_list_says_exactly_its_cpus(cpus: frozenset[int]) -> None:
    text = cpuset.text_of(cpus)
    assert cpuset.parse_cpus(text) == cpus
    assert cpuset.text_of(sorted(cpus, reverse=True)) == text


def test_lists_are_short() -> None:
    assert cpuset.text_of([4, 0, 1, 2, 6, 7]) == "0-2,4,6-7"
    assert cpuset.text_of([]) == ""
    assert cpuset.parse_cpus(" 0 - 1, 4 ") == {0, 1, 4}


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "3-1", "1,,2", "1,", "1:2", "0x1", "999999"])
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="0-1,4"):
        cpuset.parse_cpus(text)


def machine(root: Path, cores: list[list[set[int]]]) -> None:
    """A /sys with sockets of cores of hardware threads."""
    cpus = root / "cpu"
    for socket in cores:
        package = cpuset.text_of(set().union(*socket))
        for core in socket:
            for cpu in core:
                place = cpus / f"cpu{cpu}" / "topology"
                place.mkdir(parents=True)
                (place / "thread_siblings_list").write_text(cpuset.text_of(core) + "\n")
                (place / "package_cpus_list").write_text(package + "\n")


@pytest.fixture
def two_sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sockets, CPUs dealt out between them; each core's second thread has 4 more."""
    machine(tmp_path, [[{0, 4}, {2, 6}], [{1, 5}, {3, 7}]])
    monkeypatch.setattr(cpuset, "_CPU", tmp_path / "cpu")
    monkeypatch.setattr(cpuset, "_NODES", tmp_path / "none")


@pytest.mark.usefixtures("two_sockets")
def test_cores_and_their_threads() -> None:
    assert cpuset.with_siblings({0}) == {0, 4}
    assert cpuset.with_siblings({4, 1}) == {0, 1, 4, 5}
    assert cpuset.with_siblings({0, 40}) == {0, 4, 40}
    assert cpuset.with_siblings(()) == frozenset()
    assert cpuset.count_cores({0, 4}) == 1
    assert cpuset.count_cores({0, 1, 40}) == 3


@pytest.mark.usefixtures("two_sockets")
@pytest.mark.parametrize(
    ("cpus", "present", "numbers"),
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
    cpus: set[int], present: set[int], numbers: set[int]
) -> None:
    assert cpuset.core_numbers(cpus, machine=present) == numbers


def test_cores_of_this_machine() -> None:
    present = cpuset._available()
    assert present
    assert cpuset.core_numbers(present) == frozenset(range(cpuset.count_cores(present)))
