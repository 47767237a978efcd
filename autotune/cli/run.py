"""``autotune run`` and ``autotune compare``: one guarded run, and a comparison of settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from autotune.api.compare import comparison_request
from autotune.api.run import run_once
from autotune.api.target import find_target
from autotune.cli import options as o
from autotune.cli.options import opt
from autotune.errors import WorkError
from autotune.stats import LOOKS
from autotune.store import Store
from autotune.study.comparison import compare_settings
from autotune.study.inactive import inactive_words
from autotune.study.study_key import several_words, too_long_words
from autotune.targets.layout import replaced_words
from autotune.targets.metric import failure_lines
from autotune.targets.target import NOT_PARAMETERS, TargetRequest, limit_words
from autotune.terminal.outcome import print_comparison
from autotune.terminal.progress import Progress
from autotune.terminal.render import console, error_console, table, write_json
from autotune.wording import UNGUARDED, parse_duration, seconds
from runner.types import LIBRARY, RunRecord, to_json

SpaceName = Annotated[
    str | None,
    opt(
        "--space NAME|FILE",
        "Parameter space that the setting is checked against. Default: that of the MPI library.",
    ),
]


def run(
    program: o.Program = None,
    setting: Annotated[
        str,
        opt(
            "--setting -s SETTING",
            "Setting of the run: default, name=value,name=value, @FILE, or study:ID (the "
            "setting recommended by a study).",
        ),
    ] = "default",
    app: o.AppName = None,
    input_name: o.InputName = None,
    ranks: o.Ranks = None,
    space: SpaceName = None,
    cluster: o.ClusterName = "local",
    mpi: o.Mpi = None,
    metric: o.Metric = None,
    metric_choice: o.Choice = None,
    verify: o.Verify = None,
    stdin: o.Stdin = None,
    timeout: o.Timeout = None,
    clean_env: o.CleanEnv = False,
    guard: o.Guard = True,
    store: o.StoreUrl = None,
    json_out: o.JsonOut = None,
) -> None:
    """Run a program once with one setting; show the result and which parameters took effect."""
    words = TargetRequest(
        program, app, input_name, ranks, cluster, mpi, metric, verify, timeout, clean_env, "run",
        metric_choice, stdin,
    )  # fmt: skip
    target = find_target(words)
    known = target.space(space)
    if target.timeout_s is None and json_out != "-":
        _say(limit_words(target))
    if (replaced := replaced_words(known)) and json_out != "-":
        _say(replaced)
    with Store.open(store) as opened:
        try:
            done = run_once(setting, target, known, opened, guard=guard)
        except KeyboardInterrupt:
            _say("\nInterrupted: the program was ended; nothing was stored.")
            raise
    record = done.record
    if json_out:
        write_json({"setting": done.setting.to_json(), "run": to_json(record)}, json_out)
    if json_out != "-":
        _print(record, guard)
        _print_effects(record, done.space.launched(done.setting))
        if (record.metric_count or 0) > 1 and target.app.metric_choice is None:
            _say(several_words(record.metric_count or 0))
        if too_long := too_long_words(record, target.metric_choice):
            _say(too_long)
    if not record.valid:
        raise typer.Exit(1)


def _say(words: str) -> None:
    error_console().print(words, markup=False)


def _print(record: RunRecord, guard: bool) -> None:
    out = console()
    words = f"{record.state}" + (f": {record.reason}" if record.reason else "")
    out.print(words, markup=False, style="bold")
    figure = "" if record.metric_s is None else f"metric {seconds(record.metric_s)}, "
    verified = {True: "verified", False: "NOT verified", None: "not verified (no --verify)"}
    out.print(
        f"{figure}wall time {seconds(record.wall_s)}, CPU time "
        f"{seconds(record.cpu_s)}, foreign load {seconds(record.foreign_cpu_s)}, "
        f"{verified[record.verified]}",
        markup=False,
    )
    if not guard and record.foreign_cpu_s > record.foreign_limit_s:
        out.print(
            f"{UNGUARDED}, which would have rejected this run (limit: "
            f"{seconds(record.foreign_limit_s)} of foreign load)",
            markup=False,
        )
    if record.bindings:
        out.print(f"ranks bound to CPUs: {' | '.join(record.bindings)}", markup=False)
    if record.read_back:
        rows = [
            [name, r.requested, r.effective or "-", r.state]
            for name, r in sorted(record.read_back.items())
        ]
        out.print(table("", ["parameter", "requested", "in force", "state"], rows))
    if record.inherited:
        names = ", ".join(f"{k}={v}" for k, v in sorted(record.inherited.items()))
        out.print(f"inherited settings in force: {names}", markup=False)
    for line in failure_lines(record):
        out.print(line, markup=False, soft_wrap=line.startswith(" "))


_TOLD = NOT_PARAMETERS - {"env"} | {LIBRARY}
"""Parts of a launched setting whose effect is read back, or seen in the launch itself."""


def _print_effects(record: RunRecord, launched: Mapping[str, Mapping[str, str]]) -> None:
    """Print the inactive parameters, and those that cannot be observed."""
    lines = [inactive_words(name, back) for name, back in sorted(record.read_back.items())]
    unseen = [pair for g in launched if g not in _TOLD for pair in launched[g].items()]
    threads = record.read_back.get("threads")
    if threads is not None and threads.state == "not observable":
        lines.append(f"threads: {threads.source}")
    lines += [f"{n}={v}: not observable" for n, v in unseen if n not in record.read_back]
    for line in filter(None, lines):
        console().print(line, markup=False)


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
    space: SpaceName = None,
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
