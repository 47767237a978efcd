"""What a calibration launches, and that it finds what is true."""

from __future__ import annotations

import statistics

from autotune.calibration.candidate_levels import level_settings, pack_launches
from autotune.calibration.launch_rounds import (
    FIRST_MESSAGES,
    JOINT,
    MOST_JOINT,
    MOST_WINNERS,
    TIMES,
    joint_settings,
)
from autotune.calibration.points import MESSAGES, SIZES, Point
from autotune.space import Setting
from tests.calibration.machines import (
    BCAST,
    DEPTH,
    EAGER,
    FLAGS,
    PML,
    REDUCE,
    SPACE,
    calibrated,
    truth,
)
from tests.case_table import case_table

LEVELS = level_settings(SPACE)
ALGORITHMS = {
    "bcast": [Setting({BCAST: n}) for n in (1, 2, 3)],
    "reduce": [Setting({REDUCE: n}) for n in (1, 2)],
}


def test_levels_stand_with_what_makes_them_act() -> None:
    assert Setting({DEPTH: 1, PML: "ucx"}) in LEVELS  # It acts under this transport only.
    assert Setting({EAGER: 1024}) in LEVELS  # It acts unless the other transport is asked for.
    assert Setting({DEPTH: 1}) not in LEVELS
    names = {name for setting in LEVELS for name in setting}
    assert names == {PML, DEPTH, EAGER, FLAGS}  # Mapping, waiting and algorithms are not levels.


def test_algorithms_of_different_collectives_share_a_launch() -> None:
    packs = pack_launches(ALGORITHMS, SPACE)
    assert len(packs) == 3
    assert sorted(len(pack) for pack in packs) == [1, 2, 2]
    assert {s for pack in packs for s in pack.values()} == {
        s for own in ALGORITHMS.values() for s in own
    }


def test_settings_that_disagree_are_not_packed() -> None:
    left, right = Setting({PML: "ob1", BCAST: 1}), Setting({PML: "ucx", REDUCE: 1})
    assert len(pack_launches({"bcast": [left], "reduce": [right]}, SPACE)) == 2


def test_the_rounds_find_the_truth() -> None:
    rounds, asked = calibrated(LEVELS, ALGORITHMS, noise=0.02)
    for setting, points in rounds.logs.items():
        for point, logs in points.items():
            assert abs(statistics.median(logs) - truth(setting, point)) < 0.08, (setting, point)
    assert all(len(rounds.logs[s]) > 20 for s in LEVELS)
    # What makes something faster was measured three times at all sizes of it.
    for size in SIZES:
        assert len(rounds.logs[Setting({FLAGS: "get"})][Point("exchange", size)]) >= 3 - (
            size not in FIRST_MESSAGES
        )
    assert Setting({EAGER: 65536, FLAGS: "get"}) in rounds.logs  # The best together.
    assert rounds.points < 0.6 * rounds.grid  # Few levels, so most of them have an effect here.
    assert len(asked[0]) == len(LEVELS) + 3


def test_the_fastest_are_measured_at_other_times_too() -> None:
    rounds, asked = calibrated(LEVELS, ALGORITHMS, noise=0.01)
    last = asked[-TIMES:]
    assert all(jobs == last[0] for jobs in last)
    assert 0 < len(last[0]) <= MOST_WINNERS
    assert Setting({BCAST: 2}) in last[0]
    assert len(rounds.logs[Setting({BCAST: 2})][Point("bcast", 65536)]) > TIMES


def test_an_effect_at_one_size_alone_is_found() -> None:
    """A limit at 64 KiB, as that of eager messages."""

    def narrow(setting: Setting, point: Point) -> float:
        return -0.7 if point.size == 65536 and setting.get(EAGER) else 0.0

    rounds, _ = calibrated(LEVELS, ALGORITHMS, noise=0.02, of=narrow)
    for operation in ("pingpong", "exchange", "bcast", "alltoall"):
        logs = rounds.logs[Setting({EAGER: 65536})][Point(operation, 65536)]
        assert len(logs) >= 3, operation


def test_levels_without_an_effect_are_measured_once() -> None:
    rounds, asked = calibrated(LEVELS, ALGORITHMS, noise=0.02, of=lambda setting, point: 0.0)
    assert len(asked) <= 3  # One round of levels, and those of the tournaments.
    assert all(len(logs) == 1 for s in LEVELS for logs in rounds.logs[s].values())


def test_a_setting_that_fails_does_not_spoil_its_pack() -> None:
    bad = Setting({REDUCE: 1})
    rounds, asked = calibrated([], ALGORITHMS, fails=lambda s: s.get(REDUCE) == 1)
    assert bad not in rounds.logs
    assert {Setting({BCAST: n}) for n in (1, 2, 3)} <= set(rounds.logs)
    assert any(bad in jobs and len(bad) == 1 for jobs in asked)  # It was tried by itself.


def test_joint_settings_are_few_and_valid() -> None:
    seen = {
        Setting({EAGER: 8192}): {Point("exchange", 4096): 0.7},
        Setting({FLAGS: "get"}): {Point("exchange", 4096): 0.8},
        Setting({PML: "ucx", DEPTH: 1}): {Point("exchange", 4096): 0.6},
    }
    found = joint_settings(seen, SPACE)
    assert len(found) <= MOST_JOINT
    for setting, points in found.items():
        assert 2 <= len(setting) <= 2 * JOINT
        assert SPACE.is_valid(setting)
        assert {p.operation for p in points} == {"exchange"}
    # The fastest one excludes the others.
    assert found == {}


@case_table("operation", MESSAGES)
def test_nothing_is_measured_without_levels(operation: str) -> None:
    rounds, asked = calibrated([], {operation: []})
    assert not asked
    assert not rounds.logs
