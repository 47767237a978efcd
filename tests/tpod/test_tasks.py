"""Tasks in one process and over MPI: results, order, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from syrupy.assertion import SnapshotAssertion

from runner.runtimes import mate, tpod
from runner.runtimes.tpod import Config, Tpod
from tests.apps.conftest import Launch, launch
from tests.refusals import refusal, refused

__all__ = ["launch"]


class Count(tpod.Task):
    """Notes when it ran."""

    def __init__(self, place: int, trace: Any) -> None:
        super().__init__()
        self.place, self.trace = place, trace

    def step(self, step: int) -> None:
        """Append its place."""
        self.trace[1 + self.trace[0]] = self.place
        self.trace[0] += 1


@pytest.mark.parametrize("barrier", ["global", "process"])
def test_every_step_follows_the_order(barrier: str) -> None:
    trace = np.zeros(100, np.int64)
    runtime = Tpod(None, Config(barrier=barrier))
    for place in range(4):
        runtime.spawn(Count(place, trace))
    runtime.run(5, [2, 0, 3, 1])
    assert trace[0] == 20
    assert trace[1:21].tolist() == [2, 0, 3, 1] * 5


def test_no_steps_run_nothing() -> None:
    trace = np.zeros(100, np.int64)
    runtime = Tpod()
    runtime.spawn(Count(0, trace))
    runtime.run(0)
    assert trace[0] == 0


def test_tasks_run_again() -> None:
    trace = np.zeros(100, np.int64)
    runtime = Tpod()
    runtime.spawn(Count(0, trace))
    runtime.run(3)
    runtime.run(4)
    assert trace[0] == 7


def test_tasks_that_wait_for_each_other_are_named() -> None:
    runtime = Tpod(None, Config(barrier="neighbours"))
    trace = np.zeros(100, np.int64)
    tasks = [Count(place, trace) for place in range(3)]
    for task in tasks:
        runtime.spawn(task)
    tasks[0].same, tasks[1].same = [1], [0]
    with pytest.raises(tpod.Deadlock) as caught:
        runtime.run(4)
    assert "task 0: step 0 of 4" in str(caught.value)
    assert "task 1: step 0 of 4" in str(caught.value)
    assert "task 2" not in str(caught.value)


class Talk(tpod.Task):
    """Receives from its partner."""

    def __init__(self, partner: tpod.Partner) -> None:
        super().__init__([partner])
        self.buffer = np.zeros(1)

    def step(self, step: int) -> None:
        """Wait for a message."""
        self.ctx.recv(self.buffer, self.peers[0])


def test_a_partner_that_does_not_exist_is_refused() -> None:
    runtime = Tpod(None, Config(barrier="neighbours"))
    runtime.spawn(Talk((1, 7)))
    with refused(tpod.TaskError, "tpod.graph"):
        runtime.run(1)


def test_an_order_that_forgets_a_task_is_refused() -> None:
    runtime = Tpod()
    runtime.spawn(Count(0, np.zeros(4, np.int64)))
    with refused(tpod.TaskError, "tpod.graph"):
        runtime.run(1, [])


WAITS = mate.Graph("waits")


@WAITS.region(compiled=True)
def impatient(part: Any, i: int) -> None:
    part.ctx.wait()


def test_a_region_of_mate_does_not_wait() -> None:
    class Part:
        def __init__(self, ctx: mate.Context) -> None:
            self.ctx = ctx

    async def main(ctx: mate.Context) -> None:
        await ctx.execute(WAITS, 1, state=Part(ctx))

    with refused(mate.GraphError, "mate.not_compilable"):
        mate.run(main, mate.Config(core="native"))


def test_a_wrong_configuration_is_refused(snapshot: SnapshotAssertion) -> None:
    wrong: list[dict[str, Any]] = [
        {"order": "none"},
        {"messages": "none"},
        {"calls": "RS"},
        {"barrier": "none"},
        {"workers": 0},
        {"polls": -1},
        {"calls": "SR", "prepost": True},
    ]
    assert [refusal(tpod.ConfigError, lambda one: Config(**one), one) for one in wrong] == snapshot


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("processes", "schedules"),
    [(2, 12), *(pytest.param(n, 20, marks=pytest.mark.slow) for n in (2, 4))],
)
def test_any_exchange_under_any_schedule(launch: Launch, processes: int, schedules: int) -> None:
    done = launch(processes, "-m", "tests.tpod.pairs", str(schedules))
    assert done.code == 0, done.out + done.err
