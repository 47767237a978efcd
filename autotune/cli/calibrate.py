"""``autotune calibrate``: what the operations of MPI cost here, and how they answer to settings."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

from autotune.cli import options as o
from autotune.cli.options import opt, rank_counts
from autotune.terminal.render import console, error_console, table, write_json
from autotune.wording import HEADLINES, WHY_UNGUARDED, count, parse_duration, percent, seconds

if TYPE_CHECKING:
    from autotune.calibration.response import Calibration, ResponseTable

_SHOWN = 10
_NOTABLE = 0.05


def calibrate(
    ranks: Annotated[
        str,
        opt(
            "--ranks N,M",
            "Numbers of ranks, separated by commas; each gets a table of its own.",
        ),
    ] = "2,4",
    space: o.SpaceName = None,
    budget: o.Budget = None,
    seed: Annotated[
        int, opt("--seed N", "Seed of the random generator (order of runs).", min=0)
    ] = 0,
    cluster: o.ClusterName = "local",
    mpi: o.Mpi = None,
    guard: o.Guard = True,
    store: o.StoreUrl = None,
    json_out: o.JsonOut = None,
) -> None:
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
    from autotune.targets.request import TargetRequest
    from autotune.terminal.progress import Progress

    counts = rank_counts(ranks)
    words = TargetRequest(
        app="micro", ranks=counts[0], cluster=cluster, mpi=mpi, command="calibrate"
    )
    targets = with_ranks(find_target(words), counts)
    with Store.open(store) as opened, Progress(None, None, True) as progress:
        terms = CalibrationTerms(
            store=opened,
            space=space,
            seed=seed,
            guard=guard,
            watch=progress,
            say=lambda note: error_console().print(note.words, markup=False),
            budget_s=None if budget is None else parse_duration(budget),
        )
        try:
            result = measure(targets, terms)
        except KeyboardInterrupt:
            error_console().print(
                "Interrupted. Every finished run is stored; the same command continues."
            )
            raise
    path = CALIBRATIONS.save(result)
    if json_out:
        write_json(result.to_json(), json_out)
    if json_out != "-":
        _print(result)
        console().print(f"result calibrate:{result.id}  ({path})", markup=False, soft_wrap=True)


def _print(result: Calibration) -> None:
    out = console()
    for one in result.tables:
        out.print()
        out.print(
            f"{count(one.ranks, 'rank')} on {count(one.nodes, 'node')}: "
            f"{len(one.responses)} settings",
            markup=False,
            style="bold",
        )
        out.print(table("", ["operation", ">bytes", ">default us", "fastest", ">gain"], _rows(one)))
    out.print(
        f"\n{result.launches} launches in {seconds(result.seconds)}; {result.points} of "
        f"{result.grid} points of a full grid ({result.points / max(result.grid, 1):.0%})",
        markup=False,
    )
    if not result.guarded:
        out.print(HEADLINES["unguarded"], style="bold", markup=False)
        out.print(WHY_UNGUARDED, markup=False)


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
