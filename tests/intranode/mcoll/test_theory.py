"""The closed formulas against figures of the source, and against counting."""

from __future__ import annotations

from runner.programs.apps.mcoll import theory
from tests.case_table import case_table


def test_two_steps_of_nineteen_instead_of_eight_of_two() -> None:
    """256 nodes of 18 ranks (Ouyang 4.4)."""
    assert theory.allgather("bruck", 8, 256, 18, 18, 19).steps == 2
    assert theory.allgather("bruck", 8, 256, 18, 1, 2).steps == 8
    assert theory.allreduce("bruck", 1, 8, 64, 18, 19).steps == 2
    assert theory.scatter(1, 256, 18, 19).steps == 2


def test_the_example_of_sixteen_nodes_of_three() -> None:
    """Ouyang, Fig. 4.3: two steps, three messages of each node in each."""
    found = theory.allgather("bruck", 10, 16, 3, 3, 4)
    assert (found.steps, found.messages) == (2, 16 * 6)
    assert found.bytes == 16 * 15 * 30


@case_table("form", ["bruck", "ring", "rd"])
def test_all_forms_of_allgather_move_the_same_bytes(form: str) -> None:
    found = theory.allgather(form, 5, 8, 3, 2, 3)
    assert found.bytes == 8 * 7 * 15
    assert theory.allgather(form, 0, 8, 3, 2, 3) == theory.Traffic(0, 0, 0)
    assert theory.allgather(form, 5, 1, 3, 2, 3).messages == 0


def test_remainders_of_allreduce_make_some_messages_longer() -> None:
    whole = theory.allreduce("bruck", 8, 8, 9, 2, 3)
    rest = theory.allreduce("bruck", 8, 8, 7, 1, 2)
    assert whole.bytes == whole.messages * 64
    assert rest.bytes > rest.messages * 64
    # Of all vectors, each node gets all others.
    assert theory.allreduce("bruck", 8, 8, 7, 1, 2, exact=False).bytes == 7 * 6 * 64


def test_a_scatter_sends_one_message_to_each_node() -> None:
    for nodes in range(1, 30):
        found = theory.scatter(4, nodes, 2, 4)
        assert found.messages == nodes - 1
        assert 4 ** (found.steps - 1) < nodes <= 4**found.steps or nodes == 1
    assert theory.scatter(4, 4, 2, 2).bytes == 8 * (2 + 1 + 1)
