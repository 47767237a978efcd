"""Calibrated machines whose truth is known, for tests of the rounds and of what is made of them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

from autotune.calibration.launch_rounds import CalibrationRounds, Launches, Ratios
from autotune.calibration.points import COLLECTIVES, MESSAGES, Point, points_of
from autotune.calibration.response import Calibration, Level, Response, ResponseTable
from autotune.space import Parameter, Setting, Space
from autotune.space.expression import parse_expression

EAGER, FLAGS, PML, DEPTH = "btl_sm_eager_limit", "btl_sm_flags", "pml", "UCX_DEPTH"
BCAST, REDUCE = "coll_tuned_bcast_algorithm", "coll_tuned_reduce_algorithm"
SPACE = Space(
    "test",
    (
        Parameter(PML, ("ob1", "ucx")),
        Parameter(DEPTH, (1, 10), "env", when=parse_expression("pml == 'ucx'")),
        Parameter(EAGER, (1024, 8192, 65536), when=parse_expression("pml != 'ucx'")),
        Parameter(FLAGS, ("get",), when=parse_expression("pml != 'ucx'")),
        Parameter("map_by", ("node",), "placement"),
        Parameter("mpi_yield_when_idle", (0, 1)),
        Parameter(BCAST, (1, 2, 3)),
        Parameter(REDUCE, (1, 2)),
    ),
)

Truth = Callable[[Setting, Point], float]
"""log(T / T_default) of a setting at a point."""


def truth(setting: Setting, point: Point) -> float:
    """An eager limit makes messages faster up to itself and slower above; flags make exchanges
    faster; a broadcast's algorithms differ by size."""
    log = 0.0
    limit = setting.get(EAGER)
    if isinstance(limit, int) and point.operation in MESSAGES:
        log += -0.4 if 4096 <= point.size <= limit else 0.3 if point.size > 4 * limit else 0.0
    if FLAGS in setting and point.operation == "exchange":
        log -= 0.2
    if setting.get(BCAST) == 2 and point.operation == "bcast":
        log += -0.5 if point.size >= 16384 else 0.4
    if setting.get(BCAST) == 3 and point.operation == "bcast":
        log += 0.2
    return log


def calibrated(
    levels: Sequence[Setting],
    algorithms: dict[str, Sequence[Setting]],
    noise: float = 0.0,
    fails: Callable[[Setting], bool] = lambda setting: False,
    of: Truth = truth,
) -> tuple[CalibrationRounds, list[Launches]]:
    """Run all rounds against the truth; also returns the launches of each round."""
    rng = random.Random(7)
    rounds = CalibrationRounds(SPACE, levels, algorithms)
    rounds.scatter.update(dict.fromkeys(points_of((*MESSAGES, *COLLECTIVES)), noise))
    running, asked = rounds.run(), []
    jobs = next(running, None)
    while jobs is not None:
        asked.append(jobs)
        found: Ratios = {
            setting: {}
            if fails(setting)
            else {p: math.exp(of(setting, p) + rng.gauss(0, noise)) for p in points}
            for setting, points in jobs.items()
        }
        try:
            jobs = running.send(found)
        except StopIteration:
            jobs = None
    return rounds, asked


def table(
    settings: Sequence[Setting], us: float = 10.0, ranks: int = 2, nodes: int = 1, of: Truth = truth
) -> ResponseTable:
    """A table without noise: every operation takes ``us`` at every size."""
    points = points_of((*MESSAGES, *COLLECTIVES))
    default = {point: Level(us, 0.01) for point in points}
    responses = {s: {p: Response(of(s, p), 0.01, 3) for p in points} for s in settings}
    return ResponseTable(ranks, nodes, 2, default, responses)


def calibration(*tables: ResponseTable) -> Calibration:
    """A calibration of these tables."""
    return Calibration(
        cluster="local",
        machine="f" * 16,
        mpi={"name": "openmpi", "version": "5.0.11"},
        date="2026-11-25T10:00:00",
        tables=tables,
        launches=10,
        seconds=12.5,
        points=100,
        grid=400,
    )
