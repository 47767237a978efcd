"""``autotune studies | show | export``: what the results database holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from autotune.cli.options import JsonOut, StoreUrl
from autotune.cli.outcome import print_result
from autotune.cli.render import console, table, write_json
from autotune.errors import UsageError
from autotune.store import Store, Study
from autotune.study.conduct import FINISHED
from autotune.study.result import Result
from autotune.words import UNGUARDED, percent, seconds

StudyName = Annotated[
    str, typer.Argument(metavar="STUDY", help="Its number, or the beginning of its hash.")
]


def studies(store: StoreUrl = None, json_out: JsonOut = None) -> None:
    """List the studies, the newest first."""
    with Store.open_existing(store) as opened:
        found = opened.studies()
        shown = opened.shown
    if json_out:
        write_json([vars(s) | {"argv": list(s.argv)} for s in found], json_out)
        return
    out = console()
    if not found:
        out.print(f"no studies in {shown}", markup=False)
        return
    rows = [
        [
            s.hash[:8],
            s.app,
            str(s.ranks),
            s.strategy,
            f"{s.trials}",
            f"{s.runs}",
            s.status,
            s.created_at[:10],
        ]
        for s in found
    ]
    columns = ["study", "app", ">ranks", "strategy", ">trials", ">runs", "status", "begun"]
    out.print(table("", columns, rows))


def show(
    study: StudyName,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many settings to list.")] = 10,
    store: StoreUrl = None,
    json_out: JsonOut = None,
) -> None:
    """Show one study: its result, the best settings seen, and how runs ended."""
    with Store.open_existing(store) as opened:
        found = opened.find_study(study)
        best = opened.best(found.id, limit)
        states = opened.run_counts(found.id, "state")
        trials = opened.trials(found.id)
    if json_out:
        data = {
            "study": found.hash,
            "status": found.status,
            "result": found.result,
            "best": [vars(b) for b in best],
            "run_states": states,
            "trials": [
                {
                    "number": t.number,
                    "setting": t.setting,
                    "state": t.state,
                    "estimate": t.estimate,
                    "reason": t.reason,
                }
                for t in trials
            ],
        }
        write_json(data, json_out)
        return
    _print_key(found)
    if found.result is not None and found.status in FINISHED:
        print_result(Result.from_json(found.result))
    out = console()
    out.print()
    reference = next((b.median_s for b in best if b.key == "default"), None)
    rows = [
        [
            b.key.replace(",", " "),
            seconds(b.median_s),
            "-" if reference is None else percent(reference / b.median_s - 1),
            str(b.runs),
        ]
        for b in best
    ]
    title = "fastest settings by median of all their runs (not a comparison: see gain above)"
    out.print(table(title, ["setting", ">median", ">raw", ">runs"], rows))
    words = ", ".join(f"{count} {state}" for state, count in states.items())
    out.print(f"runs: {words or 'none'}; status {found.status}", markup=False)


def _print_key(study: Study) -> None:
    key = study.key
    out = console()
    out.print(
        f"study {study.hash[:12]} of {study.created_at[:16]}: {key.app.name} on {key.ranks} ranks, "
        f"{key.mpi.family} {key.mpi.version}, cluster {key.cluster}, space {key.space_name}, "
        f"{key.strategy}, seed {key.seed}",
        markup=False,
    )
    if not key.guarded:
        out.print(f"{UNGUARDED}: nothing is proven by it", markup=False)


def export(
    study: StudyName,
    to: Annotated[
        str, typer.Option("--to", metavar="FORMAT", help="csv, parquet or optuna.")
    ] = "csv",
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="FILE", help="Default: autotune-STUDY.FORMAT here."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    output: Annotated[
        bool, typer.Option("--output", help="csv, parquet: also what the programs printed.")
    ] = False,
    store: StoreUrl = None,
) -> None:
    """Write all runs of a study to a file (optuna: a storage that optuna-dashboard opens)."""
    endings = {"csv": "csv", "parquet": "parquet", "optuna": "optuna.db"}
    if to not in endings:
        raise UsageError(f"--to {to!r} is not a format; expected {', '.join(endings)}")
    with Store.open_existing(store) as opened:
        found = opened.find_study(study)
        path = out or Path(f"autotune-{found.hash[:8]}.{endings[to]}")
        written = opened.export(found.id, to, path, force, output)
    console().print(f"wrote {written}", markup=False)
