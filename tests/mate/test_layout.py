"""Configuration, switches, tags, rank maps and pinning: everything before ranks run."""

from __future__ import annotations

import argparse
import itertools
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from runner.runtimes import mate
from runner.runtimes.mate.config import RankMap
from runner.runtimes.mate.tags import TagCodec
from runner.runtimes.workers import affinity
from tests.refusals import refusal, refused


@given(st.integers(15, 31), st.integers(1, 256), st.data())
def test_a_tag_reads_as_it_was_made(bits: int, ranks: int, data: st.DataObject) -> None:
    upper = 2**bits - 1
    if bits < 2 * (ranks - 1).bit_length():
        with refused(mate.ConfigError, "mate.option"):
            TagCodec.fit(upper, ranks)
        return
    codec = TagCodec.fit(upper, ranks)
    local = st.integers(0, ranks - 1)
    sender, receiver = data.draw(local), data.draw(local)
    user = data.draw(st.integers(0, codec.max_user_tag))
    tag = codec.encode(user, sender, receiver)
    assert 0 <= tag <= upper
    assert codec.decode(tag) == (user, sender, receiver)


def test_every_local_id_and_the_last_user_tag_fit_and_the_next_does_not() -> None:
    """The original's 21 bits: 256 ranks leave 5 bits, user tags 0 to 31."""
    codec = TagCodec.fit(2**21 - 1, 256)
    assert codec.max_user_tag == 31
    seen = {codec.encode(31, s, r) for s in range(256) for r in range(256)}
    assert len(seen) == 256 * 256
    for tag in (32, -1):
        with refused(mate.MateError, "mate.message"):
            codec.encode(tag, 0, 0)


def test_an_upper_bound_that_is_no_power_of_two_is_used_up_to_its_bits() -> None:
    assert TagCodec.fit(2**21 + 5, 256).user_bits == 5


@given(st.integers(1, 40), st.data())
def test_a_rank_map_finds_every_rank(size: int, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(size)))
    cuts = sorted(data.draw(st.sets(st.integers(1, max(size - 1, 1)), max_size=4)))
    bounds = [0, *[c for c in cuts if c < size], size]
    parts = [order[a:b] for a, b in itertools.pairwise(bounds)]
    ranks = RankMap(parts)
    assert ranks.size == size
    assert ranks.largest == max(len(p) for p in parts)
    for rank in range(size):
        process, local = ranks.locations[rank]
        assert ranks.ranks[process][local] == rank


def test_a_wrong_rank_map_is_refused(snapshot: SnapshotAssertion) -> None:
    maps: list[Any] = [[[0], [0]], [[0], [2]], [[0], []], [range(4097)]]
    assert [refusal(mate.ConfigError, RankMap, ranks) for ranks in maps] == snapshot


def test_what_cannot_run_is_refused_by_its_switch(snapshot: SnapshotAssertion) -> None:
    wrong: list[dict[str, Any]] = [
        {"workers": 0},
        {"ranks_per_process": -1},
        {"ranks_per_process": 4097},
        {"ranks_per_process": 4, "local_grid": (1, 2, 3)},
        {"local_grid": (0, 2, 3)},
        {"split": 0},
        {"block_size": 0},
        {"affinity": "near"},
        {"thread_level": "single"},
        {"idle_sleep_us": -1},
        {"rank_map": ((0, 2),)},
    ]
    assert [
        refusal(mate.ConfigError, lambda one: mate.Config(**one), one) for one in wrong
    ] == snapshot


def parsed(*words: str) -> mate.Config:
    parser = argparse.ArgumentParser()
    mate.add_arguments(parser)
    return mate.from_arguments(parser.parse_args(words))


def test_without_switches_the_configuration_is_the_default() -> None:
    assert parsed() == mate.Config()
    assert mate.Config().ranks_per_process == 1


def test_every_switch_reaches_its_field(tmp_path: Path) -> None:
    path = tmp_path / "map.json"
    path.write_text(json.dumps([[2, 0], [1]]))
    config = parsed(
        *("--workers", "2", "--local-grid", "1x8x4", "--block-size", "32", "--split", "3"),
        *("--in-process", "--affinity", "scatter", "--idle", "5:0"),
        *("--thread-level", "serialized", "--rank-map", str(path)),
    )
    assert config == mate.Config(
        workers=2,
        ranks_per_process=32,
        local_grid=(1, 8, 4),
        block_size=32,
        split=3,
        in_process=True,
        affinity="scatter",
        idle_spin_us=5,
        idle_sleep_us=0,
        thread_level="serialized",
        rank_map=((2, 0), (1,)),
    )
    assert config.overdecomposition == 16


def test_wrong_switches_are_refused_in_words(snapshot: SnapshotAssertion) -> None:
    lines = [
        *("--local-grid 4x4", "--local-grid axbxc", "--idle 200"),
        *("--workers 4 --ranks-per-process 2", "--rank-map nowhere.json"),
    ]
    assert {line: refusal(mate.ConfigError, parsed, *line.split()) for line in lines} == snapshot


@pytest.mark.parametrize("text", ["{", "[1, 2]", '[["a"]]', "{}", "[[true]]"])
def test_a_rank_map_that_is_no_list_of_lists_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "map.json"
    path.write_text(text)
    with pytest.raises(mate.ConfigError, match=r"map\.json"):
        parsed("--rank-map", str(path))


def test_the_grid_of_a_rank() -> None:
    config = mate.Config(local_grid=(1, 8, 4))
    assert config.ranks_per_process == 32
    assert config.rank_extent((64, 64, 64), ghost=2) == (64, 8, 16)
    places = {config.local_coordinates(r) for r in range(32)}
    assert places == {(0, y, z) for y in range(8) for z in range(4)}
    with refused(mate.ConfigError, "mate.option"):
        config.rank_extent((64, 60, 64))
    with refused(mate.ConfigError, "mate.option"):
        config.rank_extent((64, 8, 64), ghost=2)
    with refused(mate.ConfigError, "mate.option"):
        mate.Config().rank_extent((1, 1, 1))


def test_a_rank_map_for_another_number_of_processes_is_refused() -> None:
    with refused(mate.ConfigError, "mate.option"):
        mate.Config(rank_map=((0, 1),)).map_for(2)


def test_more_workers_than_cpus_names_the_launchers_option() -> None:
    with refused(mate.ConfigError, "workers.too_many"):
        affinity.check_affinity(3, (0, 1), "compact", mate.ConfigError)
    affinity.check_affinity(3, (0, 1), "none", mate.ConfigError)
    affinity.check_affinity(2, (0, 1), "scatter", mate.ConfigError)


def test_processes_with_the_same_cpus_take_turns_in_them() -> None:
    masks = [(0, 1, 2, 3), (0, 1, 2, 3), (4, 5)]
    assert affinity.cpu_places(2, "compact", masks, 0) == [0, 1]
    assert affinity.cpu_places(2, "compact", masks, 1) == [2, 3]
    assert affinity.cpu_places(2, "compact", masks, 2) == [4, 5]
    assert affinity.cpu_places(2, "none", masks, 2) == [None, None]


def test_a_node_is_crowded_with_more_workers_than_cpus() -> None:
    assert not affinity.is_crowded(2, [(0, 1, 2, 3), (0, 1, 2, 3)])
    assert affinity.is_crowded(3, [(0, 1, 2, 3), (0, 1, 2, 3)])
    assert not affinity.is_crowded(2, [(0, 1), (2, 3)])


def test_scatter_takes_one_cpu_of_each_package_in_turn() -> None:
    assert affinity.order_by_package((0, 1, 2, 3, 4), lambda cpu: cpu // 3) == [0, 3, 1, 4, 2]


def test_workers_are_pinned_and_the_caller_is_not() -> None:
    before = os.sched_getaffinity(0)

    async def main(ctx: mate.Context) -> set[int]:
        return os.sched_getaffinity(0)

    (pinned,) = mate.run(main, mate.Config()).results
    assert len(pinned) == 1
    assert pinned <= before
    assert os.sched_getaffinity(0) == before


def test_pieces_cover_an_array_without_copies() -> None:
    array = np.arange(10.0).reshape(2, 5)
    parts = mate.pieces(array, 4)
    assert [p.size for p in parts] == [3, 3, 2, 2]
    assert all(np.shares_memory(p, array) for p in parts)
    assert np.concatenate(parts).tolist() == array.reshape(-1).tolist()
    assert len(mate.pieces(array[0, :2].copy(), 4)) == 2
