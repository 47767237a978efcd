"""``autotune noise``: which gain can be detected on this machine, and with how many runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from autotune.cli import options as o
from autotune.cli.options import opt
from autotune.study.noise import FEWEST
from autotune.terminal.render import console, error_console, write_json
from autotune.wording import parse_duration

if TYPE_CHECKING:
    from autotune.study.noise import NoiseReport


def noise(
    program: o.Program = None,
    app: o.AppName = None,
    input_name: o.InputName = None,
    ranks: o.Ranks = None,
    runs: Annotated[int, opt("--runs N", "Number of valid runs of the default.", min=FEWEST)] = 20,
    budget: o.Budget = None,
    cluster: o.ClusterName = "local",
    mpi: o.Mpi = None,
    metric: o.Metric = None,
    metric_rate: o.Rate = None,
    metric_choice: o.Choice = None,
    verify: o.Verify = None,
    verify_absent: o.VerifyAbsent = None,
    exit_codes: o.ExitCodes = None,
    stdin: o.Stdin = None,
    before: o.Before = None,
    fresh_dir: o.FreshDir = None,
    timeout: o.Timeout = None,
    clean_env: o.CleanEnv = False,
    guard: o.Guard = True,
    quiet: o.Quiet = False,
    store: o.StoreUrl = None,
    json_out: o.JsonOut = None,
) -> None:
    """Measure the noise of the default, and with it which gain can be detected at which cost."""
    from autotune.api.target import find_target, silent_say, to_stderr
    from autotune.store import Store
    from autotune.study.noise import measure_noise
    from autotune.targets.request import TargetRequest
    from autotune.terminal.progress import Progress

    words = TargetRequest(
        program, app, input_name, ranks, cluster, mpi, metric, verify, timeout, clean_env, "noise",
        metric_choice, stdin, metric_rate, o.command_words(before),
        fresh_dir,
        verify_absent=verify_absent, exit_codes=exit_codes,
    )  # fmt: skip
    target = find_target(words, silent_say if quiet else to_stderr)
    hidden = quiet or json_out == "-"
    with Store.open(store) as opened, Progress(None, None, hidden) as progress:
        try:
            report = measure_noise(
                target,
                target.space(None),
                opened,
                runs=runs,
                budget_s=None if budget is None else parse_duration(budget),
                guard=guard,
                watch=progress,
            )
        except KeyboardInterrupt:
            said = "\nInterrupted. Every finished run is stored; the same command measures anew."
            error_console().print(said, markup=False)
            raise
    if json_out:
        write_json(report.to_json(), json_out)
    if json_out != "-":
        _print(report)


def _print(report: NoiseReport) -> None:
    from autotune.stats import estimate_words
    from autotune.terminal.outcome import print_noise

    out = console()
    words = estimate_words(report.seconds)
    if report.metric.unit != "s":
        shown, seen = report.metric.words, report.seconds
        span = "interval" if seen.interval else "range"
        # The largest time is the smallest rate.
        words = f"{shown(seen.median)}, {span} {shown(seen.hi)} to {shown(seen.lo)}, {seen.n} runs"
    out.print(f"default: {words}", style="bold", markup=False)
    print_noise(report.to_json())
