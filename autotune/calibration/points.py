"""Points of a calibration: an operation at a message size; and the program that times them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, NamedTuple

from autotune.collectives.measurement import MICRO, RoundMeasurement
from autotune.config.app import load_app
from autotune.measurement.budget import SearchPlan
from autotune.space import Parameter, Setting, Space
from autotune.targets.target import Target
from runner.message_sizes import points_text
from runner.types import RunRecord

POINTS = "points"
"""The parameter with the points that a launch times; an option of the probe."""
_PROBE = "runner.programs.micro.probe"

MESSAGES = ("pingpong", "exchange", "bw")
"""Patterns of messages between two ranks: one at a time; one to each neighbour; many at once."""
COLLECTIVES = (
    *("barrier", "bcast", "reduce", "allreduce", "allgather"),
    *("alltoall", "gather", "scatter", "reduce_scatter"),
)
SIZES = (8, 128, 1024, 4096, 16384, 65536, 262144, 1048576)
"""Message sizes in bytes, as the micro-benchmarks count them."""
_LARGEST = {"bw": 65536, "allgather": 262144, "alltoall": 262144, "reduce_scatter": 262144}
"""Larger sizes of these move too many bytes in one call: a window, or a block for each rank."""


class Point(NamedTuple):
    """An operation at a message size in bytes; a barrier has the size 0."""

    operation: str
    size: int


def points_of(operations: Iterable[str], sizes: Sequence[int] = SIZES) -> list[Point]:
    """All points of these operations at their sizes among ``sizes``."""
    return [
        Point(operation, size)
        for operation in operations
        for size in ((0,) if operation == "barrier" else sizes)
        if size <= _LARGEST.get(operation, size)
    ]


def option_text(points: Iterable[Point]) -> str:
    """The points in the form of the probe's option."""
    sizes: dict[str, list[int]] = {}
    for operation, size in sorted(points):
        sizes.setdefault(operation, []).append(size)
    return points_text(sizes)


def probe_target(target: Target, points: Sequence[Point]) -> Target:
    """``target`` with the probe of these points as its program."""
    base = load_app(MICRO)
    app = base.model_copy(
        update={
            "command": (*base.command[:-1], _PROBE, f"--{POINTS}", option_text(points)),
            "inputs": {},
            "default_input": "",
        }
    )
    return dataclasses.replace(target, app=app, input=None)


def probe_space(space: Space, points: Sequence[Point]) -> Space:
    """``space`` with the points of a launch as a further parameter; unset means all of them."""
    parameter = Parameter(POINTS, (option_text(points),), "arg")
    return dataclasses.replace(space, parameters=(*space.parameters, parameter))


def by_point(record: RunRecord) -> dict[Point, float]:
    """Microseconds per call at each point; empty for a run that is not valid."""
    if not record.valid:
        return {}
    rows = record.extra["points"]
    return {Point(str(row["operation"]), int(row["size"])): float(row["us"]) for row in rows}


class PointMeasurement(RoundMeasurement[Point]):
    """The rounds of a calibration.  A run of the default times all points, so it comes rarely."""

    plan: ClassVar[SearchPlan] = SearchPlan(trials=None, default_every=8)

    def launch_setting(self, setting: Setting, points: Sequence[Point]) -> Setting:
        return setting.with_values({POINTS: option_text(points)})

    def figures(self, record: RunRecord) -> Mapping[Point, float]:
        return by_point(record)
