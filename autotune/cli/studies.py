"""``autotune studies``, ``show`` and ``export``: the studies in the results database."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from autotune.api.status import as_now
from autotune.cli import completion
from autotune.cli.options import JsonOut, StoreUrl, opt
from autotune.cli.reading import reading
from autotune.document import Document, Number, Unchecked, ValuesByName
from autotune.errors import UsageError
from autotune.space import Setting
from autotune.store import BestRuns, Store, StudyRecord, StudySummary
from autotune.store.export import export_study
from autotune.store.keys import COMPARE, NOISE
from autotune.store.model import DEFAULT_KEY
from autotune.study.checks import MARK, StoredAnswer, unchecked
from autotune.study.executables import stored_executables
from autotune.study.result import FINISHED, Result
from autotune.targets.executables import changes_of
from autotune.targets.rows import ExecutableRows
from autotune.terminal.outcome import print_result
from autotune.terminal.render import print_line, print_table, write_json
from autotune.terminal.studies import (
    ROOM,
    print_executables,
    print_key,
    print_stored_comparison,
    print_stored_noise,
)
from autotune.terminal.transports import Carriers, carried_by, print_transports
from autotune.wording import Metric, beginning, key_parts, percent

StudyName = Annotated[
    str,
    typer.Argument(
        metavar="STUDY",
        help="Study: its number or the first digits of its hash (autotune studies).",
        autocompletion=completion.studies,
    ),
]


class StudyLine(Document):
    """A line of the list of studies."""

    id: int
    hash: str
    app: str
    argv: tuple[str, ...]
    ranks: int
    mpi: str
    cluster: str
    space: str
    strategy: str
    seed: int
    status: str
    created_at: str
    trials: int
    runs: int
    metric: str | None
    verify: str | None
    recommended: dict[str, Any] | None
    """The setting of its answer, empty for the default; null: no answer."""
    unchecked: Unchecked


StudyList = list[StudyLine]


class ShownTrial(Document):
    """A setting of a study."""

    number: int
    setting: ValuesByName
    state: str
    estimate: Number | None
    """Time divided by that of the default."""
    reason: str


class ShownStudy(Document):
    """A study: its answer, its fastest settings, and how its runs ended."""

    study: str
    """Hash of the study."""
    status: str
    result: dict[str, Any] | None
    """Result of search, of compare (without a, b and schema) or of noise; null before the end."""
    unchecked: Unchecked
    best: list[BestRuns]
    """Fastest settings by the median of all their runs."""
    run_states: dict[str, int]
    """Number of runs by state."""
    executables: ExecutableRows
    changed: list[str]
    """Those of these files that have changed since, in words."""
    carried: dict[str, dict[str, str]]
    """What carried the messages, by setting."""
    trials: list[ShownTrial]


def studies(store: StoreUrl = None, json_out: JsonOut = None) -> None:
    """List the studies in the results database, newest first."""
    with reading(store) as opened:
        found = [as_now(opened, line) for line in opened.studies()]
        shown = opened.label
    if json_out:
        write_json([_row(s) for s in found], json_out)
        return
    if not found:
        print_line(f"no studies in {shown}")
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
            MARK if unchecked(StoredAnswer.of_summary(s)) else "",
            s.created_at[:10],
        ]
        for s in found
    ]
    columns = ["study", "app", ">ranks", "strategy", ">trials", ">runs", "status", "", "begun"]
    print_table("", columns, rows)


def _row(study: StudySummary) -> StudyLine:
    """A line of the list."""
    reasons = unchecked(StoredAnswer.of_summary(study))
    columns = {name: value for name, value in vars(study).items() if name != "terms"}
    return StudyLine(**columns, unchecked=reasons)


def show(
    study: StudyName,
    limit: Annotated[int, opt("--limit N", "Number of settings to list.", min=1)] = 10,
    whole: Annotated[
        bool, opt("--whole", "List every parameter of each setting; do not shorten.")
    ] = False,
    store: StoreUrl = None,
    json_out: JsonOut = None,
) -> None:
    """Show one study: its result, the best settings seen, what carried the messages, and how its
    runs ended."""
    with reading(store) as opened:
        found = opened.find_study(study)
        best = opened.best(found.id, sys.maxsize)
        states = opened.run_counts(found.id, "state")
        trials = opened.trials(found.id)
        files = stored_executables(opened, found.id)
        reasons = unchecked(StoredAnswer.of_study(found))
        carried = {key: _carried(opened, found, key) for key in _compared(found, best)}
    changes = changes_of(files)
    if json_out:
        document = ShownStudy(
            study=found.hash,
            status=found.status,
            result=found.result,
            unchecked=reasons,
            best=list(best[:limit]),
            run_states=states,
            executables=[file.row for file in files],
            changed=[change.words for change in changes],
            carried=carried,
            trials=[
                ShownTrial(
                    number=t.number,
                    setting=t.setting,
                    state=t.state,
                    estimate=t.estimate,
                    reason=t.reason,
                )
                for t in trials
            ],
        )
        write_json(document, json_out)
        return
    print_key(found)
    if found.result is not None and found.key.strategy == COMPARE:
        print_stored_comparison(found)
    elif found.result is not None and found.key.strategy == NOISE:
        print_stored_noise(found)
    elif found.result is not None and found.status in FINISHED:
        print_result(replace(Result.from_json(found.result), unchecked=reasons))
    print_line()
    stored = (found.result or {}).get("metric")
    metric = Metric() if stored is None else Metric(**stored)
    reference = next((b.median_s for b in best if b.key == DEFAULT_KEY), None)
    rows = [
        [
            " ".join(key_parts(b.key)) if whole else beginning(b.key, ROOM),
            metric.words(b.median_s),
            "-" if reference is None else percent(reference / b.median_s - 1),
            str(b.runs),
        ]
        for b in best[:limit]
    ]
    compared = found.key.strategy == COMPARE or found.status in FINISHED
    printed = found.result is not None and found.key.strategy != NOISE and compared
    above = "; for the comparison see gain above" if printed else ""
    title = f"fastest settings by the median of all their runs (no comparison{above})"
    if not whole and any(row[0].endswith(" more") for row in rows):
        title += "; --whole lists them in full"
    print_table(title, ["setting", ">median", ">raw", ">runs"], rows)
    print_transports({key if whole else beginning(key, ROOM): f for key, f in carried.items()})
    print_executables(files, changes)
    words = ", ".join(f"{count} {state}" for state, count in states.items())
    print_line(f"runs: {words or 'none'}; status {found.status}")


def _compared(study: StudyRecord, best: Sequence[BestRuns]) -> list[str]:
    """Keys of two settings: of the default and the recommended one, else of the best ones seen."""
    keys = [b.key for b in best]
    named = (study.result or {}).get("recommended")
    first = [DEFAULT_KEY] if DEFAULT_KEY in keys else []
    first += [key for key in keys if named and Setting.parse(key).to_json() == named]
    return list(dict.fromkeys([*first, *keys]))[:2]


def _carried(store: Store, study: StudyRecord, key: str) -> Carriers:
    """What carried the messages in the valid runs of a setting, the last one first.

    Some is seen only in the warm-up (windows).
    """
    found: Carriers = {}
    for run in store.runs(study.id, setting_key=key, states=("ok",)):
        found |= carried_by(run.record.read_back)
    return found


def export(
    study: StudyName,
    to: Annotated[
        str,
        opt("--to FORMAT", "File format: csv, parquet or optuna (a storage for optuna-dashboard)."),
    ] = "csv",
    out: Annotated[
        Path | None,
        opt("-o --out FILE", "File to write. Default: autotune-STUDY.FORMAT in this directory."),
    ] = None,
    force: Annotated[bool, opt("--force", "Replace the file if it exists.")] = False,
    output: Annotated[
        bool, opt("--output", "Write also what the programs printed (csv and parquet only).")
    ] = False,
    store: StoreUrl = None,
) -> None:
    """Write all runs of a study to a file: csv, parquet, or a storage for optuna-dashboard."""
    endings = {"csv": "csv", "parquet": "parquet", "optuna": "optuna.db"}
    if to not in endings:
        raise UsageError(
            f"--to {to!r} is not a known format; expected one of {', '.join(endings)}",
            code="study.unknown",
        )
    with reading(store) as opened:
        found = opened.find_study(study)
        path = out or Path(f"autotune-{found.hash[:8]}.{endings[to]}")
        written = export_study(opened, found.id, to, path, force, output)
    print_line(f"wrote {written}")
