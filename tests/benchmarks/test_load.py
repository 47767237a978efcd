"""The load generator: the duty cycle asked for, and an end that nobody has to wait for."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.load import busy_until, checked, foreign_load

CORE = min(os.sched_getaffinity(0))


@given(
    began=st.floats(0, 1e6),
    period=st.floats(1e-3, 10),
    duty=st.floats(0.01, 1),
    passed=st.floats(0, 1e3),
)
def test_busy_part_ends_in_the_period_of_now(
    began: float, period: float, duty: float, passed: float
) -> None:
    now = began + passed
    until = busy_until(began, period, duty, now)
    slack = 1e-6
    assert now - period * (1 - duty) - slack <= until <= now + duty * period + slack


def test_a_sleep_that_lasts_too_long_does_not_move_the_periods() -> None:
    # 0.75 s late into the third period of 1 s: its busy part is over already.
    assert busy_until(10.0, 1.0, 0.5, 12.75) == pytest.approx(12.5)


@pytest.mark.parametrize(
    ("duty", "period", "core", "seconds", "named"),
    [
        (0.0, 0.02, CORE, 1.0, "duty"),
        (1.5, 0.02, CORE, 1.0, "duty"),
        (0.5, 0.0, CORE, 1.0, "period"),
        (0.5, 0.02, CORE, 0.0, "seconds"),
        (0.5, 0.02, 10_000, 1.0, "core"),
    ],
)
def test_senseless_figures_are_named(
    duty: float, period: float, core: int, seconds: float, named: str
) -> None:
    with pytest.raises(ValueError, match=named):
        checked(duty, period, core, seconds)


def test_command_line_refuses_without_traceback() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.load", "--duty", "2"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert "--duty 2" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_load_is_pinned_while_the_body_runs_and_gone_afterwards() -> None:
    with foreign_load(0.3, core=CORE, seconds=60) as process:
        assert os.sched_getaffinity(process.pid) == {CORE}
    assert process.returncode is not None


def test_load_is_ended_when_the_body_fails() -> None:
    with pytest.raises(KeyError), foreign_load(0.3, core=CORE, seconds=60) as process:
        raise KeyError
    assert process.returncode is not None


def test_a_load_that_ended_too_early_voids_the_figures() -> None:
    with (
        pytest.raises(RuntimeError, match="figures are void"),
        foreign_load(0.3, core=CORE, seconds=0.05) as process,
    ):
        process.wait(timeout=10)
