"""``autotune compare``: a comparison of two settings of a program."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from autotune.api.compare import comparison_request
from autotune.api.target import find_target
from autotune.cli import options as o
from autotune.cli.options import opt
from autotune.errors import WorkError
from autotune.stats import LOOKS
from autotune.store import Store
from autotune.study.comparison import compare_settings
from autotune.targets.target import TargetRequest
from autotune.terminal.outcome import print_comparison
from autotune.terminal.progress import Progress
from autotune.terminal.render import write_json
from autotune.wording import parse_duration


def compare(
    first: Annotated[
        str,
        typer.Argument(
            metavar="A", help="Reference setting: default, name=value,..., @FILE or study:ID."
        ),
    ],
    second: Annotated[
        str, typer.Argument(metavar="B", help="Setting that is compared with A, in the same form.")
    ],
    program: o.Program = None,
    app: o.AppName = None,
    input_name: o.InputName = None,
    ranks: o.Ranks = None,
    budget: o.Budget = None,
    runs: o.MaxRuns = None,
    pairs: Annotated[
        int | None,
        opt(
            "--pairs N",
            "Measure exactly N pairs and test once. Default: a sequential test after "
            f"{', '.join(map(str, LOOKS))} pairs.",
            min=6,
        ),
    ] = None,
    min_gain: Annotated[
        float,
        opt(
            "--min-gain PERCENT", "Smallest gain that counts as a gain, in percent.", min=0, max=50
        ),
    ] = 2.0,
    seed: Annotated[
        int, opt("--seed N", "Seed of the random generator (order within the pairs).", min=0)
    ] = 0,
    space: o.SpaceName = None,
    cluster: o.ClusterName = "local",
    mpi: o.Mpi = None,
    metric: o.Metric = None,
    metric_choice: o.Choice = None,
    verify: o.Verify = None,
    stdin: o.Stdin = None,
    timeout: o.Timeout = None,
    clean_env: o.CleanEnv = False,
    guard: o.Guard = True,
    remeasure: Annotated[
        bool,
        opt("--remeasure", "Measure new pairs; do not use the stored ones of this comparison."),
    ] = False,
    store: o.StoreUrl = None,
    json_out: o.JsonOut = None,
) -> None:
    """Compare two settings of a program by interleaved pairs of runs.

    The comparison ends when the sequential test decides or the budget is spent.
    """
    words = TargetRequest(
        program,
        app,
        input_name,
        ranks,
        cluster,
        mpi,
        metric,
        verify,
        timeout,
        clean_env,
        "compare A B",
        metric_choice,
        stdin,
    )
    target = find_target(words)
    budget_s = None if budget is None else parse_duration(budget)
    with Store.open(store) as opened, Progress(None, budget_s, json_out == "-") as progress:
        request = comparison_request(
            first,
            second,
            target,
            target.space(space),
            opened,
            pairs=pairs,
            min_gain=min_gain / 100,
            budget_s=budget_s,
            max_runs=runs,
            seed=seed,
            guard=guard,
            remeasure=remeasure,
            watch=progress,
        )
        outcome = compare_settings(request, opened)
    data: dict[str, Any] = {
        "schema": "autotune-comparison-1",
        "a": request.first.to_json(),
        "b": request.second.to_json(),
        **outcome.to_json(),
    }
    if json_out:
        write_json(data, json_out)
    if outcome.failed:
        raise WorkError(f"{outcome.failed}.\nB is {request.second.key}. Nothing was compared")
    if json_out != "-":
        print_comparison(request.first.key, request.second.key, data, command=True)
