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
from syrupy.assertion import SnapshotAssertion

from runner.trace import FeaturesError, Profile, ProfileRow, load_features
from runner.trace.counts import OPERATIONS, RankCounts, RowKind, RowSums
from runner.trace.profile import profile_of
from runner.trace.schema import SIZE_BINS
from tests.refusals import refusal
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


CHANGES: list[Callable[[dict[str, Any]], Any]] = [
    lambda d: d.pop("profile"),
    lambda d: d.pop("figure_s"),
    lambda d: d.update(figure_s=-1.0),
    lambda d: d.update(profile=[]),
    lambda d: d["profile"].pop("waiting"),
    _profile(colour=1),
    _profile(compute_s=math.nan),
    _profile(compute_s=-1),
    _profile(rows={}),
    _profile(rows=[1]),
    _row("operation", "shout"),
    _row("operation", ["send"]),
    _row("size_bin", SIZE_BINS),
    _row("size_bin", -1),
    _row("size_bin", 4.0),
    _row("comm_size", -4),
    _row("comm_size", True),
    _row("far", 0),
    _row("nonblocking", None),
    _row("calls", math.inf),
    _row("bytes", "8"),
    _row("seconds", -0.1),
    _row("least_seconds", 0.3),
    _row("rank_share", 0),
    _row("rank_share", 1.5),
    _row("colour", 1),
    lambda d: d["profile"]["rows"][0].pop("far"),
    lambda d: d["profile"]["rows"].append(copy.deepcopy(d["profile"]["rows"][0])),
    _waiting("bcast", 0),
    _waiting("send", math.nan),
    _waiting("allreduce", 0.26),
    lambda d: d["profile"]["waiting"].pop("send"),
    _profile(waiting=[]),
]


def test_what_is_wrong_is_said_with_its_key(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    path, texts = tmp_path / "bad.json", []
    for change in CHANGES:
        data = dataclasses.replace(features(), profile=PROFILE, figure_s=1.0).to_json()
        change(data)
        path.write_text(json.dumps(data))
        texts.append(refusal(FeaturesError, load_features, path).replace(str(path), "FILE"))
    assert texts == snapshot
