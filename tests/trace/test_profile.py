"""Counts -> profile, and the profile in a features file."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.trace import FeaturesError, Profile, ProfileRow, load_features
from runner.trace.counts import OPERATIONS, RankCounts, RowKind, RowSums
from runner.trace.profile import profile_of
from runner.trace.schema import SIZE_BINS
from tests.trace.samples import features, rank_counts

SMALL = RowKind("allreduce", False, 4, 4, False)
LARGE = RowKind("allreduce", False, 11, 4, False)
SENT = RowKind("send", True, 4, 0, True)


def ranks_with(*rows: dict[RowKind, RowSums], wall_ns: int = 10**9) -> list[RankCounts]:
    """One rank for each set of rows; its times by operation are the sums of the rows."""
    ranks = []
    for number, mine in enumerate(rows):
        rank = rank_counts(number, len(rows), wall_ns=wall_ns)
        rank.rows = mine
        for kind, sums in mine.items():
            rank.ops[kind.operation].ns += sums.ns
        ranks.append(rank)
    return ranks


def test_means_and_the_least_of_a_row() -> None:
    profile = profile_of(
        ranks_with(
            {SMALL: RowSums(10, 80, 400_000_000)},
            {SMALL: RowSums(10, 80, 100_000_000), SENT: RowSums(6, 48, 20_000_000)},
            {SMALL: RowSums(10, 80, 100_000_000)},
            {SMALL: RowSums(10, 80, 200_000_000), SENT: RowSums(2, 16, 40_000_000)},
        )
    )
    sent, reduced = profile.rows
    assert sent == ProfileRow("send", True, 4, 0, True, 2, 16, 0.015, 0.02, 0.5)
    assert reduced == ProfileRow("allreduce", False, 4, 4, False, 10, 80, 0.2, 0.1)
    # The ranks that send nothing do not wait for others in sends.
    assert sent.waiting_s == pytest.approx(0.005)
    assert profile.waiting == pytest.approx({"send": 0.005, "allreduce": 0.1})
    assert profile.waiting_s == pytest.approx(0.105)
    assert profile.communication_s == pytest.approx(0.215)
    assert profile.compute_s == pytest.approx(1 - 0.215)
    assert profile.seconds("allreduce") == 0.2
    assert profile.seconds("bcast") == 0


def test_waiting_is_that_of_an_operation_not_of_its_rows() -> None:
    # Each rank waits in another row, but both spend the same in the operation.
    profile = profile_of(
        ranks_with(
            {SMALL: RowSums(1, 8, 300), LARGE: RowSums(1, 1024, 100)},
            {SMALL: RowSums(1, 8, 100), LARGE: RowSums(1, 1024, 300)},
        )
    )
    assert profile.waiting == {"allreduce": 0}
    assert sum(row.waiting_s for row in profile.rows) == pytest.approx(200e-9)


def test_a_run_without_calls() -> None:
    profile = profile_of(ranks_with({}, {}))
    assert profile == Profile((), 1.0, {})
    assert (profile.waiting_s, profile.communication_s) == (0, 0)


KINDS = st.builds(
    RowKind,
    st.sampled_from(OPERATIONS),
    st.booleans(),
    st.integers(0, SIZE_BINS - 1),
    st.integers(0, 1 << 31),
    st.booleans(),
)
SUMS = st.builds(RowSums, *[st.integers(0, (1 << 63) - 1)] * 3)
RANKS = st.lists(st.dictionaries(KINDS, SUMS, max_size=8), min_size=1, max_size=4)


@settings(max_examples=30, deadline=None)
@given(RANKS)
def test_any_profile_survives_the_file(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[RowKind, RowSums]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "profile.json"
    profile = profile_of(ranks_with(*rows))
    wanted = dataclasses.replace(features(), profile=profile, figure_s=1.0)
    wanted.save(path)
    assert load_features(path) == wanted


@settings(max_examples=30, deadline=None)
@given(RANKS)
def test_waiting_is_a_part_of_the_time(rows: list[dict[RowKind, RowSums]]) -> None:
    profile = profile_of(ranks_with(*rows))
    assert set(profile.waiting) == {row.operation for row in profile.rows}
    for name, waiting in profile.waiting.items():
        assert 0 <= waiting <= profile.seconds(name) * (1 + 1e-9)
    for row in profile.rows:
        assert 0 <= row.waiting_s <= row.seconds
    means = sum(sums.calls for mine in rows for sums in mine.values()) / len(rows)
    assert sum(row.calls for row in profile.rows) == pytest.approx(means)


PROFILE = profile_of(
    ranks_with(
        {SMALL: RowSums(10, 80, 400_000_000)},
        {SMALL: RowSums(10, 80, 100_000_000), SENT: RowSums(6, 48, 20_000_000)},
    )
)
"""Rows 0 (send) and 1 (allreduce)."""


def _profile(**changes: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda data: data["profile"].update(changes)


def _row(name: str, value: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda data: data["profile"]["rows"][1].update({name: value})


def _waiting(name: str, value: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda data: data["profile"]["waiting"].update({name: value})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.pop("profile"), "missing profile"),
        (lambda d: d.pop("figure_s"), "missing figure_s"),
        (lambda d: d.update(figure_s=-1.0), "figure_s is -1.0"),
        (lambda d: d.update(profile=[]), "profile is [], expected a JSON object"),
        (lambda d: d["profile"].pop("waiting"), "missing profile.waiting"),
        (_profile(colour=1), "unknown profile.colour; the schema has no"),
        (_profile(compute_s=math.nan), "profile.compute_s is nan, expected a finite number"),
        (_profile(compute_s=-1), "profile.compute_s is -1"),
        (_profile(rows={}), "profile.rows is {}, expected a list"),
        (_profile(rows=[1]), "profile.rows[0] is 1, expected a JSON object"),
        (_row("operation", "shout"), "profile.rows[1].operation is 'shout', expected send or"),
        (_row("operation", ["send"]), "profile.rows[1].operation is ['send']"),
        (_row("size_bin", SIZE_BINS), "rows[1].size_bin is 26, expected a whole number of 0 to 25"),
        (_row("size_bin", -1), "profile.rows[1].size_bin is -1"),
        (_row("size_bin", 4.0), "profile.rows[1].size_bin is 4.0"),
        (_row("comm_size", -4), "rows[1].comm_size is -4, expected a whole number of 0 or more"),
        (_row("comm_size", True), "profile.rows[1].comm_size is True"),
        (_row("far", 0), "profile.rows[1].far is 0, expected true or false"),
        (_row("nonblocking", None), "profile.rows[1].nonblocking is None"),
        (_row("calls", math.inf), "profile.rows[1].calls is inf"),
        (_row("bytes", "8"), "profile.rows[1].bytes is '8', expected a number"),
        (_row("seconds", -0.1), "profile.rows[1].seconds is -0.1"),
        (_row("least_seconds", 0.3), "profile.rows[1].least_seconds is 0.3, expected 0.25"),
        (_row("rank_share", 0), "profile.rows[1].rank_share is 0.0, expected a number above 0"),
        (_row("rank_share", 1.5), "profile.rows[1].rank_share is 1.5"),
        (_row("colour", 1), "unknown profile.rows[1].colour"),
        (lambda d: d["profile"]["rows"][0].pop("far"), "missing profile.rows[0].far"),
        (
            lambda d: d["profile"]["rows"].append(copy.deepcopy(d["profile"]["rows"][0])),
            "profile.rows[2] is ('send', True, 4, 0, True), expected one row of each kind",
        ),
        (_waiting("bcast", 0), "unknown profile.waiting.bcast"),
        (_waiting("send", math.nan), "profile.waiting.send is nan"),
        (_waiting("allreduce", 0.26), "profile.waiting.allreduce is 0.26, expected 0.25"),
        (lambda d: d["profile"]["waiting"].pop("send"), "missing profile.waiting.send"),
        (_profile(waiting=[]), "profile.waiting is [], expected a JSON object"),
    ],
)
def test_what_is_wrong_is_said_with_its_key(
    tmp_path: Path, change: Callable[[dict[str, Any]], Any], words: str
) -> None:
    data = dataclasses.replace(features(), profile=PROFILE, figure_s=1.0).to_json()
    change(data)
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(data))
    with pytest.raises(FeaturesError) as caught:
        load_features(path)
    assert words in str(caught.value)
    assert str(path) in str(caught.value)
