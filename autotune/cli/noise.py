"""``autotune noise``: which gain can be detected on this machine, and with how many runs."""

from __future__ import annotations

from autotune.cli.options import JsonOut, Quiet, StoreUrl
from autotune.cli.requests import takes_request
from autotune.study.study_request import NoiseRequest
from autotune.terminal.noise import print_measured_noise
from autotune.terminal.render import interruption, to_stderr, write_document


@takes_request
def noise(
    request: NoiseRequest,
    quiet: Quiet = False,
    store: StoreUrl = None,
    json_out: JsonOut = None,
) -> None:
    """Measure the noise of the default, and with it which gain can be detected at which cost."""
    from autotune.api.figures import measured_target
    from autotune.api.target import silent_say
    from autotune.comparison.noise import measure_noise
    from autotune.store import Store
    from autotune.terminal.progress import Progress

    say = silent_say if quiet else to_stderr
    is_quiet = quiet or json_out == "-"
    with Store.open(store) as database, Progress(None, None, is_quiet) as progress:
        target = measured_target(request.target, database, say, guard=request.guard)
        with interruption(
            "\nInterrupted. Every finished run is stored; the same command measures anew."
        ):
            report = measure_noise(
                target,
                target.space(None),
                database,
                runs=request.runs,
                budget_s=request.budget_s,
                guard=request.guard,
                watch=progress,
            )
    document = report.model_copy(update={"mpi_choice": target.choice_row})
    if write_document(document, json_out):
        print_measured_noise(report)
