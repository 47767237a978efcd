"""How programs answer to settings that a calibration measured: traces and interleaved runs.

    python -m benchmarks.prediction_cells training --calibration ID --store URL --out FOLDER
    python -m benchmarks.prediction_cells reporting --calibration ID --store URL --out FOLDER

Each cell (a program with ranks and place) is traced once.  Then the default, the settings that its
composition expects to be fastest and as many drawn ones run in interleaved blocks, guard on.
FOLDER gets one JSON file for each cell: features, settings, T / T_default of every block.  Cells
with a file are left out, so the same command continues.

With --partners nothing is measured: programs across nodes that were traced before features had
partners are traced again for them alone.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from autotune.api.features import traced_features
from autotune.calibration.response import CALIBRATIONS, Calibration, merged
from autotune.datasets.campaign import commit_of, row_of
from autotune.datasets.recorded_space import recorded_space
from autotune.errors import AutotuneError
from autotune.files import write_text
from autotune.prediction.composed import ComposedModel
from autotune.prediction.program_effects import ProgramEffects
from autotune.space import DEFAULT, Setting
from autotune.store import Store
from autotune.study.budget import Budget
from autotune.study.comparison import hang_limit
from autotune.study.confirmation import Blocks
from autotune.study.run_history import CONFIRM, WARMUP
from autotune.study.session import Session
from autotune.study.study_key import study_key
from autotune.targets.target import Target
from benchmarks.common import run_benchmark
from benchmarks.prediction_programs import cells
from benchmarks.program_cells import PLACES, Cell
from runner.errors import RunnerError
from runner.machine import describe_machine
from runner.trace import Features

PHASE = f"{CONFIRM}:cells"
BEST, DRAWN = 4, 2
"""Settings of a cell: those with the best composition, and drawn ones (not of reporting cells)."""
GENERAL = (
    Setting({"pml": "ucx"}),
    Setting({"btl_sm_rndv_eager_limit": 131072}),
    Setting({"btl_tcp_eager_limit": 262144}),
    Setting({"mpi_yield_when_idle": True}),
    Setting({"bind_to": "none"}),
    Setting({"map_by": "node"}),
)
"""Settings that every cell runs whose space allows them: methods without a calibration compare
programs by settings that all have run.  The last three cannot be composed."""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = made.add_argument
    add("what", choices=("training", "known", "reporting"))
    add("--seed", type=int, default=1)
    add("--count", type=int, default=40, help="training: number of patterns")
    add("--places", nargs="+", choices=PLACES, default=list(PLACES))
    add("--only", metavar="WORD", default="", help="programs whose name contains this")
    add("--blocks", type=int, default=3)
    add("--calibration", action="append", required=True, metavar="ID")
    add("--testbed", default="testbed", metavar="NAME", help="the testbed that is up")
    add("--mpi", metavar="PREFIX", help="the MPI library, if there are several")
    add("--store", required=True, metavar="URL")
    add("--out", type=Path, required=True, metavar="FOLDER")
    add("--partners", action="store_true", help="add partners to the features of measured cells")
    add("--budget", type=float, default=1e9, metavar="S", help="start no cell after so many s")
    return made


def chosen_settings(
    features: Features, calibration: Calibration, target: Target, seed: str, drawn: int
) -> list[Setting]:
    """The settings of one cell, without the default; that which is named is among them."""
    model = ComposedModel(ProgramEffects.shipped())
    found = model.composition(features, calibration)
    if found is None:
        raise AutotuneError(
            f"calibrate:{calibration.id} has no table for {features.nodes} nodes",
            code="benchmark.fails",
        )
    space = target.space(None)

    settings = model.candidates(found, calibration, space.is_canonical)
    judged = model.judge(found, features, settings)
    judged.sort(key=lambda one: (one.log, one.setting.key))
    best = [one.setting for one in (model.choose(judged), *judged[:BEST])]
    general = [space.canonical(s) for s in GENERAL if space.is_valid(s)]
    others = [s for s in calibration.settings if space.is_canonical(s) and s not in best]
    some = random.Random(seed).sample(others, min(drawn, len(others)))
    return [s for s in dict.fromkeys([*best, *general, *some]) if s != DEFAULT]


def measured(
    cell: Cell, calibration: Calibration, given: argparse.Namespace, store: Store
) -> dict[str, Any]:
    """The traces and ratios of one cell."""
    target = cell.target(given.testbed, given.mpi)
    features, _ = traced_features(target, tell=lambda words: None)
    drawn = 0 if given.what == "reporting" else DRAWN
    seed = f"{given.seed} {key_of(cell)}"
    settings = chosen_settings(features, calibration, target, seed, drawn)
    space = target.space(None)
    options = {"settings": [s.key for s in settings]}
    key = study_key(target, space, Session.adapter(target), "prediction", options, given.seed)
    with Session(store, key, target, space) as on:
        evaluator = on.evaluator
        evaluator.budget = Budget(evaluator.history)
        warm = evaluator.run(DEFAULT, WARMUP)
        limit_s = hang_limit(warm.record.wall_s, evaluator.budget)
        blocks = Blocks(evaluator, PHASE, settings, given.seed, limit_s)
        blocks.ensure(given.blocks)
        known = evaluator.history.blocks(PHASE)
        ratios = {
            s.key: [_ratio(known[n], s) for n in range(given.blocks)] for s in (DEFAULT, *settings)
        }
        default_s = [known[n][DEFAULT.key].record.value_s for n in range(given.blocks)]
        machine, mpi = describe_machine().fingerprint, f"{key.mpi.family} {key.mpi.version}"
        rows = [
            row_of(key_of(cell), 0, index, math.nan, known[n][s.key], machine, mpi, commit_of())
            for n in range(given.blocks)
            for index, s in enumerate((DEFAULT, *settings))
        ]
    return {
        "what": given.what,
        "space": recorded_space(space),
        "facts": dict(space.facts),
        "runs": [dataclasses.asdict(row) for row in sorted(rows, key=lambda row: row.order)],
        "name": cell.name,
        "place": cell.place,
        "ranks": cell.ranks,
        "calibration": calibration.id,
        "features": features.portable().to_json(),
        "settings": [s.to_json() for s in (DEFAULT, *settings)],
        "ratios": list(ratios.values()),
        "default_s": default_s,
    }


def add_partners(path: Path, cell: Cell, given: argparse.Namespace) -> bool:
    """Add the partners to a cell's file; returns whether they were missing."""
    found = json.loads(path.read_text(encoding="utf-8"))
    if "partners" in found["features"]:
        return False
    features, _ = traced_features(cell.target(given.testbed, given.mpi), tell=lambda words: None)
    if features.partners is None or features.nodes != found["features"]["nodes"]:
        raise AutotuneError(
            "the ranks are elsewhere than when the cell was measured", code="benchmark.fails"
        )
    found["features"]["partners"] = features.partners.to_json()
    write_text(path, json.dumps(found) + "\n")
    return True


def _ratio(block: dict[str, Any], setting: Setting) -> float | None:
    """T / T_default of the setting in one block; None for a run that failed or was stopped."""
    record = block[setting.key].record
    default = block[DEFAULT.key].record.value_s
    return record.value_s / default if record.valid else None


def key_of(cell: Cell) -> str:
    return f"{cell.name}-{cell.place}-{cell.ranks}"


def calibrations_of(known: Sequence[Calibration]) -> dict[str, Calibration]:
    """Those of each place together."""
    found: dict[str, list[Calibration]] = {}
    for one in known:
        across = any(table.nodes > 1 for table in one.tables)
        found.setdefault("testbed" if across else "node", []).append(one)
    return {place: merged(own) for place, own in found.items()}


def main() -> int:
    given = parser().parse_args()
    known = calibrations_of([CALIBRATIONS.find(name) for name in given.calibration])
    given.out.mkdir(parents=True, exist_ok=True)
    began, failed = time.monotonic(), 0
    with Store.open(given.store) as store:
        for cell in cells(given):
            path = given.out / f"{key_of(cell)}.json"
            if given.partners:
                if path.exists() and cell.place == "testbed" and add_partners(path, cell, given):
                    print(f"{key_of(cell)}: partners", flush=True)
                continue
            if path.exists() or time.monotonic() - began > given.budget:
                continue
            if cell.place not in known:
                print(f"{key_of(cell)}: no calibration was given for its place", file=sys.stderr)
                failed += 1
                continue
            try:
                found = measured(cell, known[cell.place], given, store)
            except (AutotuneError, RunnerError) as problem:
                failed += 1
                print(f"{key_of(cell)}: {problem}", file=sys.stderr, flush=True)
                continue
            write_text(path, json.dumps(found) + "\n")
            best = min((r for own in found["ratios"] for r in own if r), default=1.0)
            print(f"{key_of(cell)}: {time.monotonic() - began:.0f} s, least {best:.2f}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    run_benchmark(main)
