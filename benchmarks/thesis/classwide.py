"""Class-wide settings in the form of Pellegrini 4.7: Tables 4.3, 4.4 and 4.5 beside the thesis'.

    python -m benchmarks.thesis.classwide [DATASET] [--json FILE]
    python -m benchmarks.thesis.classwide [DATASET] --applications lammps:melt:4 ... --keep FILE
                                          --cluster testbed --mpi MPI [--minutes 50]

DATASET (explore-thesis-testbed) is a random exploration: one list of settings on several programs.

*Table 4.3*: the level of each parameter that the one-way analysis chooses (99.9 %, no correction,
the highest mean), that of ``--preset careful``, and that of BEST, of 80 random settings the one
with the best mean gain. "-": no significant effect; "=": its default is the best level. *Table
4.4*: the one-way analysis on parts of the data, by ranks and by input over the programs that have
several, and by program. *Shares*: what each choice reaches of the best known gains, on the programs
themselves and on programs left out. *Without what harms*: what the analyses choose on all settings,
and on those that leave unset what the one-way analysis calls best at its default; the share is that
which the model of the settings gives the choice, the mean over the cells with a gain.

*Table 4.5*: programs that were not explored, APP:INPUT:RANKS, each timed with the default, the
three settings and five random ones, interleaved. ``--keep FILE`` keeps every run, and the same
command goes on; nothing begins that would end after ``--minutes``. A gain is T_default / T - 1 of
the medians; whether one is proven says ``autotune classwide``.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from autotune.anova.classwide import best_drawn, choose
from autotune.anova.factors import (
    THESIS,
    Factor,
    FactorOptions,
    chosen_setting,
    judge_factors,
)
from autotune.anova.oneway import respond
from autotune.anova.shrinkage import SettingEffects
from autotune.anova.stability import WAYS, By, Subset, shown_level, stability
from autotune.anova.table import RunTable, dataset_table
from autotune.datasets import load
from autotune.errors import UsageError, WorkError
from autotune.space import DEFAULT, Setting, Value
from autotune.wording import binary, share
from benchmarks.common import commit, options, positive, report, run_benchmark, table
from benchmarks.harness.bench import Bench, RunLog, interleaved
from benchmarks.harness.launches import Place
from benchmarks.thesis.source import printed
from runner.machine import describe_machine
from runner.types import RunRecord

DATASET = "explore-thesis-testbed"
SPACE = "openmpi+openmpi-tcp"
RANDOM = 5
"""Random settings behind the thesis' row RAND."""
DASH = "-"
PARTS: tuple[By, ...] = ("ranks", "input", "app")
CAREFUL = FactorOptions()
CHOICES = {"ANOVA": THESIS, "careful": CAREFUL}


def factors_of(runs: RunTable, judged_by: FactorOptions) -> list[Factor]:
    """The judged parameters; none if no cell can gain."""
    try:
        return judge_factors(respond(runs, "gain"), judged_by)
    except WorkError:
        return []


def settings_of(runs: RunTable, seed: int) -> dict[str, Setting]:
    """The default, what the analyses choose, BEST, and five random settings."""
    effects = SettingEffects(runs)
    rng = np.random.default_rng(seed)
    chosen = {name: chosen_setting(factors_of(runs, how)) for name, how in CHOICES.items()}
    best = best_drawn(runs, effects, rng)
    places = rng.choice(len(effects.everywhere), RANDOM, replace=False)
    drawn = {f"RAND {n}": effects.everywhere[int(at)] for n, at in enumerate(places, start=1)}
    return {"default": DEFAULT, **chosen, "BEST": best, **drawn}


def level(value: Value | None) -> str:
    """A level as the thesis prints it: sizes as 64K."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1024:
        return binary(value).upper()
    return DASH if value is None else f"{value}"


def counterparts(names: Sequence[str]) -> dict[str, str]:
    """The thesis' parameters that are here under some name, by that name."""
    renamed = printed()["settings"]["here"]
    settings = {}
    for theirs in printed()["settings"]["rows"]:
        name = renamed.get(theirs, theirs)
        # Open MPI 4 calls the shared memory of 5 vader.
        for own in (name, name.replace("btl_sm_", "btl_vader_")):
            if own in names:
                settings[own] = theirs
                break
    return settings


def settings_table(runs: RunTable, settings: Mapping[str, Setting]) -> list[dict[str, str]]:
    """Table 4.3: a row for each parameter that is set somewhere, here or there."""
    source = printed()["settings"]
    theirs = counterparts(runs.names)
    levels = {
        name: {f.name: _shown(f) for f in factors_of(runs, how)} for name, how in CHOICES.items()
    }
    levels["BEST"] = {name: level(settings["BEST"].get(name)) for name in runs.names}
    used = [
        name
        for name in runs.names
        if name in theirs or any(own.get(name, DASH) != DASH for own in levels.values())
    ]
    rows = [
        {"parameter": name}
        | {column: own.get(name, DASH) for column, own in levels.items()}
        | _source_columns(source, theirs.get(name))
        for name in used
    ]
    missing = [name for name in source["rows"] if name not in theirs.values()]
    return [
        *rows,
        *(
            {"parameter": f"({name})"}
            | dict.fromkeys(levels, "absent")
            | _source_columns(source, name)
            for name in missing
        ),
    ]


def _shown(factor: Factor) -> str:
    # The analysis shows nothing by a longer dash.
    return (
        level(factor.chosen)
        if factor.chosen is not None
        else shown_level(factor).replace("–", DASH)
    )


def _source_columns(source: Mapping[str, Any], name: str | None) -> dict[str, str]:
    row = source["rows"].get(name, ["" for _ in source["columns"]])
    return dict(zip(source["columns"], row, strict=True))


def parts_table(runs: RunTable, by: By) -> list[dict[str, str]]:
    """Table 4.4 for parts of one kind; empty without two parts or without a chosen level.

    Parts by ranks or input have only programs with two of them, which are then in every part.
    """
    if by != "app":
        kinds: dict[str, set[object]] = {}
        for place in runs.cells.values():
            kinds.setdefault(place.app, set()).add(getattr(place, by))
        runs = runs.where(lambda place: len(kinds[place.app]) > 1)
    if not runs.cells:
        return []
    try:
        parts = stability(runs, by, "gain", THESIS)
    except UsageError:
        return []
    names = [name for name in runs.names if any(_value(part, name) != DASH for part in parts)]
    return [
        {"parameter": name} | {part.name: _value(part, name) for part in parts} for name in names
    ]


def _value(part: Subset, name: str) -> str:
    return next((_shown(factor) for factor in part.factors if factor.name == name), DASH)


def shares_table(runs: RunTable, seed: int) -> list[dict[str, str]]:
    """The share of the best known gains that each choice reaches; the analysis as the thesis makes
    it, and the careful one."""
    thesis = choose(runs, THESIS, seed).rows
    careful = [
        replace(r, name="careful") for r in choose(runs, CAREFUL, seed).rows if r.name == "anova"
    ]
    return [
        {
            "chosen by": row.name,
            "share": share(row.share),
            "cells slower": f"{row.slower:.1f}",
            "left out: share": _if_known(row.held_out, share),
            "left out: cells slower": _if_known(row.held_out_slower, lambda n: f"{n:.1f}"),
        }
        for row in (*thesis[:2], *careful, *thesis[2:])
    ]


def harmless_table(runs: RunTable) -> list[dict[str, str]]:
    """The choices of the analyses on all settings, and without those of a harmful parameter."""
    effects = SettingEffects(runs)
    harmful = [f.name for f in factors_of(runs, THESIS) if _shown(f) == "="]
    columns = [runs.names.index(name) for name in harmful]
    keep = (runs.factors[:, columns] == 0).all(axis=1)
    rest = replace(runs, rows=runs.rows[keep].reset_index(drop=True), factors=runs.factors[keep])
    rows = []
    for words, part in (("all", runs), (f"without {', '.join(harmful)}", rest)):
        for name, how in CHOICES.items():
            setting = chosen_setting(factors_of(part, how))
            rows.append(
                {
                    "settings": words,
                    "rows": f"{len(part.rows)}",
                    "chosen by": name,
                    "chosen": setting.key,
                    "share": share(effects.mean_share(setting, list(runs.cells))),
                }
            )
    return rows


def _if_known(value: float | None, words: Callable[[float], str]) -> str:
    return DASH if value is None else words(value)


def times_of(
    words: str,
    settings: Mapping[str, Setting],
    given: argparse.Namespace,
    log: RunLog,
    left_s: float,
) -> dict[str, list[float]]:
    """Seconds of a program for each setting, one for each block; infinite for a run that failed."""
    app, input_, ranks = (*words.split(":"), "", "")[:3]
    if not ranks.isdigit():
        raise UsageError(
            f"--applications {words!r} is not understood; expected APP:INPUT:RANKS",
            code="benchmark.application",
        )
    target = Place.of(given.cluster, given.mpi).target(app, input_, int(ranks), timeout_s=300.0)
    space = target.space(SPACE)
    with target.locked_runner(guard=not given.guard) as runner:
        bench = Bench(runner)

        def run(name: str, block: int) -> float:
            def launch() -> RunRecord:
                return bench.run(target.spec(space, space.canonical(settings[name])), name)

            try:
                return log.run(f"{words} {settings[name].key} {block}", launch).value_s
            except WorkError as failure:
                if failure.code != "benchmark.fails" or name == "default":
                    raise
                return math.inf

        return interleaved(list(settings), run, given.blocks, given.seed, left_s / 60)


def application_row(words: str, times: Mapping[str, Sequence[float]]) -> dict[str, str]:
    """A row of Table 4.5: seconds of the default, gains of the others."""
    middle = {name: statistics.median(values) for name, values in times.items()}
    gains = {name: middle["default"] / seconds - 1 for name, seconds in middle.items()}
    rand = statistics.fmean(gain for name, gain in gains.items() if name.startswith("RAND"))
    shown = {"RAND": rand, **{name: gains[name] for name in ("BEST", *CHOICES)}}
    return {
        "application": words,
        "default": f"{middle['default']:.3f} s",
        **{name: f"{gain:+.1%}" for name, gain in shown.items()},
        "blocks": f"{min(map(len, times.values()))}",
    }


def source_rows() -> list[dict[str, str]]:
    """Table 4.5 as the thesis printed it."""
    return [
        {"cluster": cluster, "application": name}
        | {way: f"{gain:+.1f} %" for way, gain in zip(("RAND", "BEST", "ANOVA"), row, strict=True)}
        for cluster, rows in printed()["applications"].items()
        for name, row in rows.items()
    ]


def applications(
    settings: Mapping[str, Setting], given: argparse.Namespace, identity: dict[str, Any]
) -> list[dict[str, str]]:
    """The rows of Table 4.5 that are measured; the others wait for the next call."""
    log = RunLog(given.keep, identity)
    end = time.monotonic() + 60 * given.minutes
    rows = []
    for words in given.applications:
        left_s = end - time.monotonic()
        if left_s <= 0:
            print(f"note: {words} is left for the next call")
            continue
        rows.append(application_row(words, times_of(words, settings, given, log, left_s)))
    return rows


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("dataset", nargs="?", default=DATASET)
    parser.add_argument("--applications", nargs="+", default=[], metavar="APP:INPUT:RANKS")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="runs of the applications")
    parser.add_argument("--cluster", default="testbed")
    parser.add_argument("--mpi", help="the MPI library of the applications")
    parser.add_argument("--blocks", type=positive, default=5)
    parser.add_argument("--minutes", type=positive, default=50)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    dataset = load(given.dataset)
    runs = dataset_table(dataset)
    settings = settings_of(runs, given.seed)
    tables: dict[str, list[dict[str, str]]] = {
        "Table 4.3, settings": settings_table(runs, settings),
        **{f"Table 4.4, by {by}": parts_table(runs, by) for by in PARTS if by in WAYS},
        "Shares of the best known gains": shares_table(runs, given.seed),
        "Without what harms": harmless_table(runs),
        "Table 4.5, the thesis": source_rows(),
    }
    if given.applications:
        machine = describe_machine().fingerprint
        identity = {"commit": commit(), "machine": machine, "dataset": dataset.name}
        tables["Table 4.5, here"] = applications(settings, given, identity)
    for title, rows in tables.items():
        print(title)
        table(rows or [{"": "no parameter has a significant effect in two parts"}])
        print()
    figures: dict[str, Any] = {
        "dataset": given.dataset,
        "mpi": dataset.card.mpi,
        "cells": list(runs.cells),
        "null_cells": sum(best.null for best in runs.best.values()),
        "settings": {name: setting.key for name, setting in settings.items()},
        "thesis share": printed()["kernels"]["share"],
        "tables": tables,
    }
    report("thesis classwide", figures, given.json)
    return 0


if __name__ == "__main__":
    run_benchmark(main)
