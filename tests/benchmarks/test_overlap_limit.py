"""The bounds of over-decomposition, on traces whose times follow by hand."""

from __future__ import annotations

import pytest

from benchmarks.overlap.replay import Network, Replay, flat_seconds, limit
from benchmarks.testbed_mate import limit_of

Events = list[list[object]]
NETWORK = Network(latency_s=3.0, bytes_per_s=100.0, eager=200)


def swaps(rank: int, work: float, times: int = 2, size: int = 100) -> Events:
    """A rank that computes, sends to its partner in the other half of four, and waits for it."""
    other = (rank + 2) % 4
    one: Events = [["compute", work], ["send", other, 0, size]]
    return [event for n in range(times) for event in (*one, ["receive", other, 0, n])]


def pair(work: float, size: int = 100) -> list[Events]:
    return [
        [["compute", work], ["send", 1 - rank, 0, size], ["receive", 1 - rank, 0, 0]]
        for rank in range(2)
    ]


def test_a_flat_program_waits_for_latency_link_and_announcement() -> None:
    assert flat_seconds(pair(5.0), 2, NETWORK) == pytest.approx(5.0 + 1.0 + 3.0)
    assert flat_seconds(pair(5.0, size=300), 2, NETWORK) == pytest.approx(5.0 + 3.0 + 9.0)
    assert flat_seconds(pair(5.0), 1, NETWORK) == pytest.approx(5.0)


def test_bounds_and_forecast_of_two_ranks_for_each_core() -> None:
    trace = [swaps(rank, 2.0) for rank in range(4)]
    bounds = limit(trace, 2, 2, NETWORK)
    # Of each rank twice: 2 s of work, 1 s on the link, 3 s of latency.
    assert bounds.chain_s == pytest.approx(12.0)
    assert bounds.work_s == pytest.approx(8.0)
    assert bounds.wire_s == pytest.approx(4.0)
    assert bounds.least_s == pytest.approx(12.0)
    # The second rank of a core works from 2 to 4 and from 8 to 10.
    assert bounds.forecast_s == pytest.approx(14.0)
    # With one rank of twice the work a core waits for both messages.
    assert flat_seconds(pair(4.0), 2, NETWORK) == pytest.approx(8.0)


def test_a_delay_line_takes_its_time_from_what_can_be_gained() -> None:
    bounds = limit([swaps(rank, 4.0) for rank in range(4)], 2, 2, NETWORK)
    assert bounds.with_line(0.0) == bounds.least_s == pytest.approx(bounds.work_s)
    assert bounds.with_line(0.5) == pytest.approx(bounds.work_s + 0.5)
    assert limit_of(0.5, 0.0) == pytest.approx(2.0)
    assert limit_of(0.3, 0.1) == pytest.approx(1.25)
    assert limit_of(0.1, 0.2) > 1.0


def test_messages_that_share_a_link_leave_one_after_the_other() -> None:
    apart: list[Events] = [
        [["send", 1, 0, 100], ["send", 1, 1, 100]],
        [["receive", 0, 1, 0], ["receive", 0, 0, 0], ["compute", 1.0]],
    ]
    assert flat_seconds(apart, 2, NETWORK) == pytest.approx(2.0 + 3.0 + 1.0)
    assert Replay(apart, 2, NETWORK).seconds() == pytest.approx(1.0 + 3.0 + 1.0)


def test_a_message_that_nobody_sends_is_said() -> None:
    with pytest.raises(ValueError, match="nobody"):
        Replay([[["receive", 0, 0, 0]]], 1, NETWORK).seconds()
