"""``autotune calibrate``: how long MPI's operations take here, and how settings change this."""

from __future__ import annotations

from autotune.api.requests import CalibrateRequest
from autotune.cli.options import JsonOut, StoreUrl, rank_counts
from autotune.cli.requests import takes_request
from autotune.terminal.calibration import print_calibration
from autotune.terminal.render import (
    INTERRUPTION_NOTE,
    interruption,
    print_line,
    to_stderr,
    write_document,
)


@takes_request
def calibrate(request: CalibrateRequest, store: StoreUrl = None, json_out: JsonOut = None) -> None:
    """Measure how long MPI's operations take on this cluster, and how settings change this.

    Calibrate each cluster twice, an hour apart, with another --seed. autotune predict then knows
    the machine and needs one traced run of a program. The same command continues an interrupted
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
    target_request = request.target.model_copy(update={"app": "micro", "ranks": counts[0]})
    targets = with_ranks(find_target(target_request), counts)
    with Store.open(store) as database, Progress(None, None, True) as progress:
        terms = CalibrationTerms(
            store=database,
            space=request.space,
            seed=request.seed,
            guard=request.guard,
            watch=progress,
            say=to_stderr,
            budget_s=request.budget_s,
        )
        with interruption(INTERRUPTION_NOTE):
            result = measure(targets, terms)
    path = CALIBRATIONS.save(result)
    if write_document(result.to_json(), json_out):
        print_calibration(result)
        print_line(f"result calibrate:{result.id}  ({path})", whole=True)
