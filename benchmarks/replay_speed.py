"""Speed of a replayed grid: answers per second, without any launch.

Without a dataset a synthetic grid of 64 settings with three runs each is used; the speed does not
depend on the figures.

Usage: python -m benchmarks.replay_speed [--dataset NAME --cell KEY] [--json FILE]
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from pathlib import Path

import numpy as np

from autotune.datasets import (
    Card,
    Cell,
    Landscape,
    RecordedMachine,
    RunRow,
    create_dataset,
    load,
    write_shard,
)
from autotune.space import DEFAULT, Parameter, Space
from benchmarks.common import conclude, run_benchmark

GOAL = 10_000.0
DRAWS = 100_000


def synthetic(folder: Path) -> Landscape:
    """A complete grid with three blocks."""
    space = Space("synthetic", tuple(Parameter(f"p{i}", (1, 2, 3)) for i in range(3)))
    settings = [DEFAULT, *(s for s in space.enumerate() if s != DEFAULT)]
    cell = Cell(key="c", app="none", ranks=1, blocks=3)
    card = Card(
        schema=1, name="speed", kind="grid", machine=RecordedMachine(fingerprint="0"), cells=(cell,)
    )
    create_dataset(folder, card, {"c": space}, {"c": settings})
    rng = np.random.default_rng(0)
    for block in range(3):
        values = rng.lognormal(0, 0.03, len(settings))
        rows = [
            RunRow("c", block, i, i, "ok", "", float(v), math.nan, 1.0, 0.0, 0.0, "0", "none", "")
            for i, v in enumerate(values)
        ]
        write_shard(folder, rows)
    return Landscape(load(folder), "c")


def answers_per_s(land: Landscape, draws: int) -> float:
    """Answers per second for random settings of the grid; the settings are made beforehand."""
    rng = np.random.default_rng(1)
    asked = [land.settings[i] for i in rng.integers(len(land.settings), size=draws)]
    began = time.perf_counter()
    for setting in asked:
        land.draw(setting, rng)
    return draws / (time.perf_counter() - began)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", help="a name in datasets/, or a folder")
    parser.add_argument("--cell", help="a cell of it; default: the first")
    parser.add_argument("--json", metavar="FILE", help="write the figures as JSON")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        if given.dataset:
            found = load(given.dataset)
            land = Landscape(found, given.cell or found.cells[0].key)
        else:
            land = synthetic(Path(place) / "speed")
        speed = answers_per_s(land, DRAWS)
    figures = {"grid": land.name, "settings": len(land.settings), "answers_per_s": round(speed)}
    failures = [] if speed >= GOAL else [f"{speed:.0f} answers a second"]
    return conclude(
        "replay speed", f">= {GOAL:.0f} answers a second", failures, figures, given.json
    )


if __name__ == "__main__":
    run_benchmark(main)
