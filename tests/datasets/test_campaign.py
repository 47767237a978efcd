"""One block on a simulated machine: the order, the limit, and what is learned on the way."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from autotune.datasets import Cell
from autotune.datasets.campaign import (
    CampaignBlock,
    OutOfTime,
    PausingEvaluator,
    TurnBudget,
    row_of,
)
from autotune.datasets.plan import ExplorationPlan
from autotune.errors import WorkError
from autotune.measurement.evaluator import MachineBusy
from autotune.space import DEFAULT, Parameter, Setting, Space
from autotune.study.simulation import Model, SimulatedEvaluator
from runner.guard import QuietWait
from runner.types import RunRecord
from tests.datasets.conftest import SPACE, planted
from tests.refusals import refused

SETTINGS = [DEFAULT, *(s for s in SPACE.enumerate() if s != DEFAULT)]
PLAN = ExplorationPlan.model_validate(
    {
        "kind": "grid",
        "name": "p",
        "default_every": 4,
        "cells": [{"key": "c", "app": "micro", "ranks": 2, "space": "openmpi"}],
    }
)


def seconds(setting: Setting, rng: np.random.Generator) -> float | str:
    what = planted(setting)
    if what == "censored":
        return 50.0
    return what if isinstance(what, str) else 0.5 * what


def block(model: Model = seconds, inactive: frozenset[str] = frozenset()) -> CampaignBlock:
    evaluator = SimulatedEvaluator(model, np.random.default_rng(0), inactive=inactive)
    cell = Cell(key="c", app="micro", ranks=2, blocks=3)
    patient = PausingEvaluator(
        evaluator,
        lambda s, quiet_s: QuietWait(0.0, True, 0.0),
        lambda event: None,
        TurnBudget(None),
    )
    return CampaignBlock(PLAN, SPACE, cell, 0, SETTINGS, patient)


def test_the_default_runs_throughout_and_slow_runs_are_stopped() -> None:
    made = block()
    order = list(range(1, len(SETTINGS)))
    made.run(order)
    indices = [index for index, _, _ in made.runs]
    assert [i for i in indices if i] == order
    assert indices[:3] == [0, 0, 0]
    assert indices[-1] == 0
    places = [place for place, index in enumerate(indices) if index == 0]
    assert max(b - a for a, b in itertools.pairwise(places)) <= 5
    rows = [row_of("c", 0, *run, "m", "mpi", "") for run in made.runs]
    for row in rows:
        expected = planted(SETTINGS[row.setting]) if row.setting else 1.0
        assert row.state == (expected if isinstance(expected, str) else "ok")
        assert math.isnan(row.value_s) == (row.state != "ok")
        if row.state == "censored":
            assert row.limit_s == pytest.approx(1.5)
            assert row.wall_s < 3


def test_what_does_nothing_is_measured_once() -> None:
    made = block(lambda setting, rng: 0.5, inactive=frozenset({"high"}))
    made.run(range(1, len(SETTINGS)))
    assert made.idle.under == {"default": ("high",)}
    with_it = [i for i, _, _ in made.runs if "high" in SETTINGS[i]]
    assert len(with_it) == 1
    launched = {entry.key for index, _, entry in made.runs if index}
    assert len(launched) == len([i for i, _, _ in made.runs if i])


def test_what_does_nothing_under_one_mapping_is_measured_under_another() -> None:
    mapping = Parameter("map_by", ("node", "slot"), target="placement", default="slot")
    space = Space("mapped", (mapping, Parameter("links", (1, 2, 3))))
    settings = [DEFAULT, *(s for s in space.enumerate() if s != DEFAULT)]

    class OneRankANode(SimulatedEvaluator):
        def _record(self, setting: Setting, timeout_s: float | None) -> RunRecord:
            alone = setting.get("map_by") == "node"
            self.inactive = frozenset({"links"}) if alone else frozenset()
            return super()._record(setting, timeout_s)

    made = block()
    made.evaluator.evaluator = OneRankANode(lambda setting, rng: 0.5, np.random.default_rng(0))
    told = CampaignBlock(PLAN, space, made.cell, 0, settings, made.evaluator)
    told.run(range(1, len(settings)))
    launched = {entry.key for index, _, entry in told.runs if index}
    assert launched == {"links=1", "links=2", "links=3", "links=1,map_by=node", "map_by=node"}
    assert told.idle.under == {"map_by=node": ("links",)}
    # As the card keeps it.
    cell = made.cell.model_copy(update={"inactive_under": told.idle.under})
    assert Cell.model_validate(cell.model_dump()).idle(space).under == told.idle.under


def test_a_default_that_does_not_run_ends_the_work() -> None:
    with refused(WorkError, "default.fails"):
        block(lambda setting, rng: "failed").run([1])


def test_a_busy_machine_is_waited_for_until_the_budget_ends() -> None:
    class Busy(SimulatedEvaluator):
        left = 2

        def run(self, setting, phase, **more):  # type: ignore[no-untyped-def]
            if self.left:
                self.left -= 1
                raise MachineBusy("busy", code="test.error")
            return super().run(setting, phase, **more)

    told: list[object] = []
    evaluator = Busy(seconds, np.random.default_rng(0))
    quiet = iter([False, True, True])
    patient = PausingEvaluator(
        evaluator,
        lambda timeout_s, *, quiet_s: QuietWait(1.0, next(quiet), 0.0),
        told.append,
        TurnBudget(None),
    )
    assert patient.run(DEFAULT, "explore", 0).record.valid
    assert len(told) == 2
    evaluator.left = 1
    never = PausingEvaluator(
        evaluator,
        lambda timeout_s, *, quiet_s: QuietWait(1.0, False, 0.9),
        told.append,
        TurnBudget(0.0),
    )
    with pytest.raises(OutOfTime):
        never.run(DEFAULT, "explore", 0)
