"""Make a dataset of measured prediction cells.

    python -m benchmarks.prediction_dataset CELLS --calibration ID... -o datasets/programs-node

CELLS is a folder that ``benchmarks.prediction_cells`` wrote. Only the cells of the calibrations'
place are taken: on one node, or across several. The calibrations, which count together and may be
newer than the cells, go along, so that the dataset can be learned from (``autotune train --model
composed``) and evaluated (``autotune evaluate predict``) anywhere.
"""

from __future__ import annotations

import argparse
import datetime
import json
from pathlib import Path
from typing import Any

from autotune.calibration.response import CALIBRATIONS, merged
from autotune.datasets.card import Card, Cell, RecordedMachine
from autotune.datasets.dataset import (
    CALIBRATION,
    FEATURES,
    SPACE,
    SPACES,
    create_dataset,
    write_dataset_file,
)
from autotune.datasets.shards import RunRow, write_shard
from autotune.names import slug
from autotune.space import Setting
from benchmarks.common import run_benchmark
from runner.machine import describe_machine

PROTOCOL = (
    "each cell is traced once, then runs in interleaved blocks: the default and all its settings",
    "settings: the named one, the four best composed, a few of all cells, drawn ones: no sample",
    "a run that takes 30 times the default's first and 10 s more is stopped: censored",
    "runs beside foreign load are repeated and not kept here",
)
WHY = "Learning how programs differ from their composition, and its evaluation"
WHY_REPORTING = (
    "Only for reporting: programs that were fixed beforehand, and from which nothing is learned"
)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = made.add_argument
    add("cells", type=Path, nargs="+", metavar="CELLS")
    add("--calibration", action="append", required=True, metavar="ID")
    add("-o", "--output", type=Path, required=True, metavar="FOLDER")
    return made


def cell_of(key: str, found: dict[str, Any], cluster: str) -> Cell:
    return Cell(
        key=key,
        app=slug(found["name"]),
        ranks=found["ranks"],
        cluster=cluster,
        split="report" if found["what"] == "reporting" else "design",
        note=found["what"],
        facts=found["facts"],
        blocks=1,
    )


def main() -> int:
    given = parser().parse_args()
    calibration = merged([CALIBRATIONS.find(name) for name in given.calibration])
    paths = sorted(path for folder in given.cells for path in folder.glob("*.json"))
    found = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    across = any(table.nodes > 1 for table in calibration.tables)
    chosen = {
        slug(path.stem): one
        for path, one in zip(paths, found, strict=True)
        if (one["features"]["nodes"] > 1) == across and "runs" in one
    }
    if not chosen:
        raise SystemExit(f"no cell of the place of calibrate:{calibration.id} in {given.cells}")
    runs = {
        key: [RunRow(**{**row, "cell": key}) for row in one["runs"]] for key, one in chosen.items()
    }
    first = next(iter(runs.values()))[0]
    card = Card(
        schema=1,
        name=given.output.name,
        kind="explore",
        title="Programs with what a calibration of the machine composes for them",
        why=WHY_REPORTING if all(c["what"] == "reporting" for c in chosen.values()) else WHY,
        date=f"{datetime.date.today()}",
        machine=RecordedMachine.of(describe_machine()),
        mpi=first.mpi,
        protocol=PROTOCOL,
        measured_s=round(sum(row.wall_s for rows in runs.values() for row in rows), 1),
        regenerate="python -m benchmarks.prediction_cells",
        cells=tuple(cell_of(key, one, calibration.cluster) for key, one in chosen.items()),
    )
    listed = {key: [Setting(s) for s in one["settings"]] for key, one in chosen.items()}
    folder = given.output
    create_dataset(folder, card, {}, listed)
    spaces = {one["space"] for one in chosen.values()}
    if len(spaces) == 1:
        write_dataset_file(folder / SPACE, spaces.pop())
    for key, one in chosen.items():
        if spaces:
            write_dataset_file(folder / SPACES / f"{key}.toml", one["space"])
        write_dataset_file(folder / FEATURES / f"{key}.json", json.dumps(one["features"]) + "\n")
        write_shard(folder, runs[key])
    write_dataset_file(folder / CALIBRATION, json.dumps(calibration.to_json()) + "\n")
    print(f"{folder}: {len(chosen)} cells, {sum(map(len, runs.values()))} runs")
    return 0


if __name__ == "__main__":
    run_benchmark(main)
