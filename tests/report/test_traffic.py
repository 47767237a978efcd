"""The matrix of messages between ranks: its squares, its sums, and programs without any."""

from __future__ import annotations

import dataclasses

import pytest

from autotune.errors import UsageError
from autotune.report.traffic import LARGEST_MATRIX, traffic_section
from runner.trace import Features
from runner.trace.partners import Pair, Partners
from tests.refusals import refused
from tests.trace.samples import features

PAIRS = (Pair(0, 1, 10, 4096), Pair(1, 0, 10, 2048), Pair(2, 3, 20, 2048), Pair(1, 2, 40, 0))


def traffic(ranks: int = 4, pairs: tuple[Pair, ...] = PAIRS) -> Features:
    """Features of ranks of which the second half is on another node."""
    sample = features()
    nodes = tuple(2 * rank // ranks for rank in range(ranks))
    values = {**sample.values, "ranks": ranks}
    partners = Partners(nodes, pairs)
    return dataclasses.replace(sample, values=values, ranks=ranks, nodes=2, partners=partners)


def squares(section_figures: tuple[str, ...]) -> int:
    (figure,) = section_figures
    return figure.count("fill: #0072b2")


def test_each_pair_that_sends_bytes_is_a_square() -> None:
    section = traffic_section(traffic())
    assert squares(section.figures) == 3
    (words,) = section.words
    assert "80 messages" in words  # data
    assert "50%" in words
    (table,) = section.tables
    assert table.rows[0] == ("0 to 1", "0 to 0", "10", "4 KiB", "50%")
    assert table.rows[-1] == ("1 to 2", "0 to 1", "40", "0 B", "0%")


def test_many_ranks_are_drawn_in_groups() -> None:
    ranks = 2 * LARGEST_MATRIX
    pairs = tuple(Pair(rank, rank + 1, 1, 8) for rank in range(ranks - 1))
    section = traffic_section(traffic(ranks, pairs))
    # Each group sends to itself and to the next one.
    assert squares(section.figures) == 2 * LARGEST_MATRIX - 1


@pytest.mark.parametrize("pairs", [(), None])
def test_without_messages_there_is_no_matrix(pairs: tuple[Pair, ...] | None) -> None:
    sample = traffic(pairs=()) if pairs is not None else traffic()
    if pairs is None:
        sample = dataclasses.replace(sample, partners=None)
    with refused(UsageError, "page.no_messages"):
        traffic_section(sample)
