"""``autotune calibrate``: what the operations of MPI cost here, and how they answer to settings."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from autotune.api.requests import CalibrateRequest
from autotune.cli.options import JsonOut, StoreUrl, rank_counts
from autotune.cli.requests import takes_request
from autotune.terminal.render import (
    print_line,
    print_message,
    print_table,
    write_json,
)
from autotune.wording import HEADLINES, WHY_UNGUARDED, count, percent, seconds

if TYPE_CHECKING:
    from autotune.calibration.response import Calibration, ResponseTable

_SHOWN = 10
_NOTABLE = 0.05


@takes_request
def calibrate(request: CalibrateRequest, store: StoreUrl = None, json_out: JsonOut = None) -> None:
    """Measure what the operations of MPI cost on this cluster and how they answer to settings.

    Twice for each cluster, an hour apart, with another --seed. autotune predict then knows the
    machine and needs one traced run of a program. The same command continues an interrupted
    calibration.
    """
    from autotune.api.target import find_target
    from autotune.calibration.calibrate import CalibrationTerms
    from autotune.calibration.calibrate import calibrate as measure
    from autotune.calibration.response import CALIBRATIONS
    from autotune.collectives.tables import with_ranks
    from autotune.store import Store
    from autotune.terminal.progress import Progress

    counts = rank_counts(request.ranks)
    asked = request.target.model_copy(update={"app": "micro", "ranks": counts[0]})
    targets = with_ranks(find_target(asked), counts)
    with Store.open(store) as opened, Progress(None, None, True) as progress:
        terms = CalibrationTerms(
            store=opened,
            space=request.space,
            seed=request.seed,
            guard=request.guard,
            watch=progress,
            say=lambda note: print_message(note.words),
            budget_s=request.budget_s,
        )
        try:
            result = measure(targets, terms)
        except KeyboardInterrupt:
            print_message("Interrupted. Every finished run is stored; the same command continues.")
            raise
    path = CALIBRATIONS.save(result)
    if json_out:
        write_json(result.to_json(), json_out)
    if json_out != "-":
        _print(result)
        print_line(f"result calibrate:{result.id}  ({path})", whole=True)


def _print(result: Calibration) -> None:
    for one in result.tables:
        print_line()
        print_line(
            f"{count(one.ranks, 'rank')} on {count(one.nodes, 'node')}: "
            f"{len(one.responses)} settings",
            bold=True,
        )
        print_table("", ["operation", ">bytes", ">default us", "fastest", ">gain"], _rows(one))
    print_line(
        f"\n{result.launches} launches in {seconds(result.seconds)}; {result.points} of "
        f"{result.grid} points of a full grid ({result.points / max(result.grid, 1):.0%})"
    )
    if not result.guarded:
        print_line(HEADLINES["unguarded"], bold=True)
        print_line(WHY_UNGUARDED)


def _rows(one: ResponseTable) -> list[list[str]]:
    """The points with the largest gains, one row for each operation and size."""
    found = []
    for point, level in one.default.items():
        known = [
            (points[point].shrunk, setting.key)
            for setting, points in one.responses.items()
            if point in points
        ]
        log, key = min(known, default=(0.0, ""))
        if log < -_NOTABLE:
            row = [point.operation, f"{point.size}", f"{level.us:.4g}", key]
            found.append((log, [*row, percent(math.expm1(-log))]))
    return [row for _, row in sorted(found)[:_SHOWN]]
