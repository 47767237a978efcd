"""``autotune features``: writes the features of a program from one traced run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from autotune.cli import options as o
from autotune.cli.options import opt
from autotune.files import check_writable
from autotune.terminal.render import console, error_console, note_line, table, write_json
from autotune.wording import Metric, count, seconds

if TYPE_CHECKING:
    from runner.trace import Features
    from runner.trace.run import Traced


_PRINTED_GROUPS = ("thesis", "extra")


def features(
    program: o.Program = None,
    out: Annotated[Path, opt("--output -o FILE", "File for the features (JSON).")] = Path(
        "app_features.json"
    ),
    app: o.AppName = None,
    input_name: o.InputName = None,
    ranks: o.Ranks = None,
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
    method: Annotated[
        Literal["auto", "pmpi", "mpi4py"],
        opt(
            "--method",
            "How MPI calls are counted. pmpi: by the compiled profiling library, for any "
            "program; mpi4py: in Python, for mpi4py programs; auto: the first of these "
            "that works.",
        ),
    ] = "auto",
    explain: Annotated[
        bool, opt("--list", "List every feature with its unit and definition; run nothing.")
    ] = False,
    guard: o.Guard = True,
    store: o.StoreUrl = None,
    json_out: o.JsonOut = None,
) -> None:
    """Trace one run of a program and write its communication features (app_features.json).

    The results database keeps them, too: a search of the program then begins with predicted
    settings.
    """
    from autotune.api.features import keep_features, traced_features
    from autotune.api.target import find_target
    from autotune.store import Store
    from autotune.targets.metric import failure_lines
    from autotune.targets.request import TargetRequest

    if explain:
        _explain(json_out)
        return
    words = TargetRequest(
        program, app, input_name, ranks, cluster, mpi, metric, verify, timeout, clean_env,
        "features", metric_choice, stdin, metric_rate, o.command_words(before),
        fresh_dir,
        verify_absent=verify_absent, exit_codes=exit_codes,
    )  # fmt: skip
    target = find_target(words)
    check_writable(out)
    found, traced = traced_features(target, method, guard)
    found.save(out)
    with Store.open(store) as opened:
        keep_features(found, traced, target, opened)
    if json_out:
        write_json(found.to_json(), json_out)
    if (metric or metric_rate) and traced.record.state == "no_metric":
        for line in (
            note_line("metric.none", traced.record.reason),
            *failure_lines(traced.record),
        ):
            error_console().print(line, markup=False)
    if json_out != "-":
        _print(found, traced)
        console().print(f"features written to {out}", markup=False, soft_wrap=True)


def _print(found: Features, traced: Traced) -> None:
    from runner.trace import SPECS

    out = console()
    figure = traced.record.metric_s
    metric_words = Metric.of(traced.record).words(figure)
    told = (
        ""
        if figure is None
        else f", metric {metric_words} (slower than usual, because it was traced)"
    )
    out.print(
        f"{found.ranks} ranks on {count(found.nodes, 'node')}; {seconds(found.wall_s)} "
        "between MPI_Init and MPI_Finalize, wall time "
        f"{seconds(traced.record.wall_s)}{told}",
        markup=False,
    )
    rows = [
        [name, f"{found.values[name]:.6g}", spec.unit, spec.kind]
        for name, spec in SPECS.items()
        if spec.group in _PRINTED_GROUPS and found.values[name]
    ]
    out.print(table("", ["feature", ">value", "unit", "from"], rows))
    rest = sum(1 for value in found.values.values() if not value)
    out.print(
        f"{rest} features are 0; for all features and their definitions: autotune features --list"
    )
    if found.profile and found.profile.rows:
        from autotune.terminal.profile import profile_table

        out.print()
        out.print(profile_table(found.profile))


def _explain(json_out: str | None) -> None:
    from runner.trace import FEATURES

    if json_out:
        rows = [
            {"name": s.name, "unit": s.unit, "kind": s.kind, "definition": s.definition}
            for s in FEATURES
        ]
        write_json(rows, json_out)
    if json_out != "-":
        lines = [[s.name, s.unit, s.kind, s.definition] for s in FEATURES]
        console().print(table("", ["feature", "unit", "from", "definition"], lines))
