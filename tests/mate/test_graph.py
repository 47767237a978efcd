"""The description of graphs: grammar, tables, and graphs that cannot be."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runner.runtimes import mate
from runner.runtimes.mate.graph import Dependency, parse_dependency
from tests.case_table import case_table
from tests.mate.graphs import STENCIL, graph_of
from tests.refusals import refused


def nothing(*_: object) -> None:
    pass


names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)


@given(names, st.booleans(), st.booleans(), st.booleans())
def test_a_dependency_reads_as_it_is_written(
    name: str, previous: bool, neighbors: bool, swap: bool
) -> None:
    marks = ["*" * previous, "@" * neighbors]
    text = name + "".join(reversed(marks) if swap else marks)
    assert parse_dependency(text) == Dependency(name, previous, neighbors)
    assert parse_dependency(f" {text} ") == parse_dependency(str(parse_dependency(text)))


@case_table("text", ["", "*", "a**", "a@@", "a*@*", "1a", "a b", "a&", "compute*0"])
def test_anything_else_is_refused(text: str) -> None:
    with refused(mate.GraphError, "mate.graph"):
        parse_dependency(text)


def test_the_stencil_has_the_table_of_the_dissertation() -> None:
    """Fig. 4.6 with its wrong line (2, 2, true) corrected to (2, 3, true)."""
    assert graph_of(STENCIL, nothing).table() == {
        "own": [
            (0, 2, True),
            (0, 4, True),
            (1, 4, True),
            (2, 0, False),
            (2, 3, True),
            (3, 2, False),
            (4, 0, False),
            (4, 1, False),
        ],
        "neighbors": [(0, 0, True)],
    }


def test_an_unknown_region_is_named() -> None:
    with refused(mate.GraphError, "mate.graph"):
        graph_of({"a": ["b*"]}, nothing).edges()


def test_regions_that_wait_for_each_other_are_refused() -> None:
    with refused(mate.GraphError, "mate.graph"):
        graph_of({"a": ["b"], "b": ["a"], "c": []}, nothing).edges()


def test_a_region_cannot_wait_for_itself() -> None:
    with refused(mate.GraphError, "mate.graph"):
        graph_of({"a": ["a"]}, nothing).edges()


def test_no_two_regions_of_a_name_and_none_after_the_first_use() -> None:
    graph = graph_of({"a": []}, nothing)
    with refused(mate.GraphError, "mate.graph"):
        graph.region("a")(nothing)
    graph.edges()
    with refused(mate.GraphError, "mate.graph"):
        graph.region("b")(nothing)


def test_depends_must_be_a_list() -> None:
    with refused(mate.GraphError, "mate.graph"):
        mate.Graph().region("a", "b")


def test_an_empty_graph_is_refused() -> None:
    with refused(mate.GraphError, "mate.graph"):
        mate.Graph().edges()
