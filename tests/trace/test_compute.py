"""Counts -> features: the thesis's own figures, and what holds for any counts."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.trace import COUNT_NAMES, SPECS, features_from_json
from runner.trace.compute import PATTERNS, feature_values
from runner.trace.counts import OPERATIONS, RankCounts
from tests.case_table import case_table
from tests.trace.samples import features, rank_counts


def multi_partition(side: int) -> list[RankCounts]:
    """BT and SP on side x side ranks: neighbours +-x, +-y, and the diagonal ones."""
    ranks = []
    for rank in range(side * side):
        i, j = divmod(rank, side)
        steps = [(1, 0), (-1, 0), (0, 1), (0, -1), (-1, 1), (1, -1)]
        there = {(i + di) % side * side + (j + dj) % side: (10, 80) for di, dj in steps}
        ranks.append(rank_counts(rank, side * side, there))
    return ranks


@case_table(
    ("side", "distance"),
    [(4, 4.5), (5, 5.8667), (6, 7.2222), (7, 8.5714), (8, 9.9167), (9, 11.2593), (16, 20.625)],
)
def test_receivers_and_distance_of_multi_partition(side: int, distance: float) -> None:
    # Pellegrini 1.9.3: 6 receivers, distance 9.9 for BT and SP on 64 processes.
    values = feature_values(multi_partition(side), 2)
    assert values["p2p_receivers"] == 6
    assert values["p2p_distance"] == pytest.approx(distance, abs=5e-5)
    assert values["p2p_bytes"] == 8


def test_receivers_are_weighted_by_messages() -> None:
    ranks = [
        rank_counts(0, 3, {1: (90, 90), 2: (90, 90)}),
        rank_counts(1, 3, {0: (20, 20)}),
        rank_counts(2, 3),
    ]
    values = feature_values(ranks, 3)
    assert values["p2p_receivers"] == pytest.approx((180 * 2 + 20 * 1) / 200)
    assert values["p2p_neighbours"] == pytest.approx(1.0)
    assert values["p2p_distance"] == pytest.approx((90 * 1 + 90 * 2 + 20 * 1) / 200)


def test_a_program_that_sends_nothing() -> None:
    values = feature_values([rank_counts(r, 2) for r in range(2)], 4)
    assert values["ranks_per_core"] == 0.5
    assert values["comm_imbalance"] == 1
    used = {name for name, value in values.items() if value}
    assert used == {"ranks", "ranks_per_core", "ranks_per_node", "comm_imbalance"}


def test_nothing_but_communication_is_capped() -> None:
    ranks = [rank_counts(r, 2, wall_ns=1000) for r in range(2)]
    for rank in ranks:
        rank.ops["barrier"].ns = 5000
    values = feature_values(ranks, 2)
    assert values["comm_fraction"] == 1
    assert values["comm_to_comp"] == 1000
    assert values["sync_share"] == 1


figures = st.integers(0, 10**12)


@st.composite
def any_ranks(draw: st.DrawFn) -> list[RankCounts]:
    size = draw(st.integers(1, 4))
    ranks = []
    for rank in range(size):
        to = draw(
            st.dictionaries(
                st.integers(0, size - 1), st.tuples(st.integers(1, 10**6), figures), max_size=size
            )
        )
        counts = rank_counts(rank, size, to, draw(st.integers(1, 10**12)))
        for name in draw(st.lists(st.sampled_from(OPERATIONS), unique=True)):
            op = counts.ops[name]
            op.ns = draw(figures)
            if name in ("send", "recv", "wait", "rma", "other"):
                continue
            op.calls = draw(st.integers(1, 10**6))
            op.nonblocking = draw(st.integers(0, op.calls))
            op.bytes, op.comm_sizes = draw(figures), op.calls * size
        ranks.append(counts)
    return ranks


@settings(max_examples=30, deadline=None)
@given(any_ranks())
def test_what_holds_for_any_counts(ranks: list[RankCounts]) -> None:
    values = feature_values(ranks, 2)
    size = len(ranks)
    assert values["p2p_receivers"] <= size
    assert values["p2p_distance"] <= size - 1
    parts = sum(values[f"{name}_share"] for name in ("wait", "sync", "p2p", "coll", "other"))
    assert parts == pytest.approx(1) or parts == 0
    classes = sum(values[f"{pattern}_share"] for pattern in PATTERNS)
    assert classes <= values["coll_share"] + 1e-9
    for prefix in ("p2p", "coll"):
        bins = sum(v for name, v in values.items() if name.startswith(f"{prefix}_size_"))
        assert bins == pytest.approx(1) or bins == 0
    for name, spec in SPECS.items():
        assert 0 <= values[name] <= (spec.largest or float("inf")) + 1e-9, name


@settings(max_examples=30, deadline=None)
@given(any_ranks(), st.integers(2, 1000))
def test_count_features_do_not_depend_on_time(ranks: list[RankCounts], slower: int) -> None:
    later = copy.deepcopy(ranks)
    for rank in later:
        rank.wall_ns *= slower
        for at, op in enumerate(rank.ops.values()):
            op.ns = op.ns * (at + 1) + slower
    # Polling differs from run to run: it may show in time features only.
    later[0].ops["wait"].calls += slower
    first, second = feature_values(ranks, 2), feature_values(later, 2)
    assert {n: first[n] for n in COUNT_NAMES} == {n: second[n] for n in COUNT_NAMES}


def test_computed_values_are_a_valid_file() -> None:
    data = features().to_json()
    assert features_from_json(data).values == feature_values(
        [rank_counts(0, 2, {1: (3, 24)}), rank_counts(1, 2)], 2
    )
