"""Proven settings measured again later or elsewhere: how many still gain.

The settings are those of the recorded grids: of each cell with a significant gain the setting with
the smallest median, and the gain that the dataset describes for it (chosen on one half of the runs,
valued on the other). Cells that were recorded on this machine's fingerprint within the last six
hours are left out. The order of the cells follows from ``--seed`` alone. Each is one ``autotune
compare`` of the default and the setting, with the guard; a comparison that ended is kept in
``--keep`` and not repeated, so that the next one who measures goes on with the same file.

The question is that of TUNA (EuroSys 2025): of the settings that a tuner calls good, how many are
good on another machine of the same kind. Settings for a cluster that is not there are named as
refused (``autotune testbed up --nodes 2 --latency 1ms --rate 1gbit``). Printed are the
comparisons, the number with a proven gain (the 95 % interval lies above 0), the share of gains of
at least 0 with its exact interval, and the median.

Usage: python -m benchmarks.restudy [--settings 20] [--seed 65] [--keep FILE.jsonl] [--store URL]
           [--budget 60s] [--least 0.5] [--no-guard] [--json FILE]

Expected on a quiet machine: about 40 s a setting.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from autotune.config.app import load_app
from autotune.config.find import find_config
from autotune.datasets.catalog import list_datasets
from autotune.datasets.dataset import load
from autotune.datasets.describe import describe
from autotune.space import Space
from autotune.space.definition import KIND, read_definition
from benchmarks.common import autotune, conclude, options, positive, run_benchmark, table
from benchmarks.null_studies import clopper_pearson
from runner.machine import describe_machine

AGE = timedelta(hours=6)


@dataclass(frozen=True)
class ProvenSetting:
    """The best setting of a recorded cell, and where it was proven."""

    dataset: str
    cell: str
    cpu_model: str
    fingerprint: str
    date: str
    setting: str
    gain: float
    words: tuple[str, ...]
    """Options of ``autotune compare`` that name the program."""

    @property
    def name(self) -> str:
        return f"{self.dataset}/{self.cell}"


@dataclass(frozen=True)
class Remeasured:
    """What a comparison shows of a proven setting today; ``gain`` is None if it was refused."""

    name: str
    recorded: float
    gain: float | None
    low: float | None
    high: float | None
    outcome: str
    pairs: int
    seconds: float
    fingerprint: str
    date: str


def proven_settings(fingerprint: str) -> Iterator[ProvenSetting]:
    """Best settings of all complete grid cells with a significant gain, in the order of names."""
    oldest = datetime.now(UTC) - AGE
    for folder in sorted(list_datasets()):
        dataset = load(folder)
        machine, date = dataset.card.machine, dataset.card.date
        if dataset.kind != "grid":
            continue
        if machine.fingerprint == fingerprint and date >= f"{oldest.date()}":
            continue  # A card has the day only.
        for cell in describe(dataset).cells:
            if cell.null or not cell.complete or not cell.best or (cell.gain or 0) <= 0:
                continue
            words = (
                *("--app", cell.app, "--input", cell.input, "--ranks", f"{cell.ranks}"),
                *("--cluster", cell.cluster),
                *("--space", _space(cell.app, dataset.space(cell.key), folder, cell.key)),
            )
            yield ProvenSetting(
                dataset.name, cell.key, machine.cpu_model, machine.fingerprint, date, cell.best,
                float(cell.gain or 0), words,
            )  # fmt: skip


def _space(app: str, recorded: Space, folder: Path, key: str) -> str:
    """The application's own space for the runtime of a recorded one, else the recorded one.

    A recorded space lacks the options of a runtime that had one value only.
    """
    forms = load_app(app).spaces.values()
    own = (f for f in forms if read_definition(find_config(KIND, f)).requires in recorded.requires)
    return next(own, f"{folder}/spaces/{key}.toml")


def measure(proven: ProvenSetting, options: list[str], fingerprint: str) -> Remeasured:
    """One comparison of the default with a proven setting."""
    began = time.monotonic()
    answer = autotune("compare", "default", proven.setting, *proven.words, *options)
    result = answer.result
    low, high = result.get("gain_ci95") or (None, None)
    refused = (
        answer.text.strip().splitlines()[-1][:120] if not result and answer.text else "refused"
    )
    return Remeasured(
        proven.name, round(proven.gain, 4), result.get("gain"), low, high,
        result.get("outcome", refused), result.get("pairs", 0), round(time.monotonic() - began, 1),
        fingerprint, f"{datetime.now(UTC):%Y-%m-%d}",
    )  # fmt: skip


def summary(rows: list[Remeasured]) -> dict[str, Any]:
    """The figures of all comparisons that were made."""
    measured = [row for row in rows if row.gain is not None]
    gains = [row.gain for row in measured if row.gain is not None]
    ahead = sum(gain >= 0 for gain in gains)
    share = clopper_pearson(ahead, len(gains)) if gains else (0.0, 1.0)
    return {
        "settings": len(rows),
        "refused": len(rows) - len(measured),
        "proven_again": sum(row.low is not None and row.low > 0 for row in measured),
        "slower": sum(row.high is not None and row.high < 0 for row in measured),
        "gain_of_0_or_more": ahead,
        "share_95_percent": [round(end, 3) for end in share],
        "median_gain": round(statistics.median(gains), 4) if gains else None,
        "median_recorded_gain": round(statistics.median(row.recorded for row in measured), 4)
        if measured
        else None,
    }


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--settings", type=positive, default=20)
    parser.add_argument("--seed", type=int, default=65)
    parser.add_argument("--keep", type=Path, help="JSON lines of the comparisons made so far")
    parser.add_argument("--store", help="results database; default: the user's own")
    parser.add_argument("--budget", default="60s", help="machine time of a comparison")
    parser.add_argument("--least", type=float, default=0.5, help="least share of gains >= 0")
    given = parser.parse_args()
    fingerprint = describe_machine().fingerprint
    every = sorted(proven_settings(fingerprint), key=lambda one: one.name)
    random.Random(given.seed).shuffle(every)
    rows: list[Remeasured] = []
    if given.keep and given.keep.exists():
        rows = [Remeasured(**json.loads(line)) for line in given.keep.read_text().splitlines()]
    done = {row.name for row in rows}
    store = ["--store", given.store] if given.store else []
    for proven in every:
        if sum(row.gain is not None for row in rows) >= given.settings:
            break
        if proven.name in done:
            continue
        row = measure(proven, ["--budget", given.budget, *store, *given.guard], fingerprint)
        print(asdict(row), file=sys.stderr)
        rows.append(row)
        # What was refused (a cluster is not up) is tried again by the next call.
        if given.keep and row.gain is not None:
            with given.keep.open("a") as out:
                out.write(json.dumps(asdict(row)) + "\n")
    table([asdict(row) for row in rows])
    figures = summary(rows)
    share = figures["gain_of_0_or_more"] / max(1, figures["settings"] - figures["refused"])
    failures = [] if share >= given.least else [f"only {share:.0%} of the gains are 0 or more"]
    bound = f"at least {given.least:.0%} of the gains are 0 or more"
    rows_of_json = {"comparisons": [asdict(row) for row in rows]}
    return conclude(
        "proven settings again", bound, failures, {**figures, **rows_of_json}, given.json
    )


if __name__ == "__main__":
    run_benchmark(main)
