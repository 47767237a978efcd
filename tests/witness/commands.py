"""What the commands write with ``--json`` about recorded data; no MPI program is launched."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from autotune.store import Store
from tests.revision import ROOT
from tests.witness.plain import write_document, write_lines
from tests.witness.replayed_study import replayed

STUDIES = (
    *(("is-A", "auto"), ("jacobi3d-small", "auto"), ("cg-W", "auto"), ("cg-W-null", "auto")),
    *(("cg-W", name) for name in ("ga", "random", "exhaustive")),
    *(("cg-W", f"optuna:{name}Sampler") for name in ("TPE", "NSGAII", "CmaEs")),
)
"""Cell and strategy of each replayed study; the first one has the number 1 in the database."""
FEATURES = ROOT / "datasets/grid-node/features/cg-W.json"
COMMANDS = (
    "studies", "status 1", *(f"show {number + 1} --limit 100" for number in range(len(STUDIES))),
    "importance study:1 --seed 1", "report 1", "publish --from study:3 --dry-run --format sh",
    "publish --from study:3 --dry-run --format sh --force",
    "dataset list", "dataset describe grid-node", "dataset classes grid-node", "anova grid-node",
    "importance grid-node --seed 1", "classwide explore-node-xeon --no-measure",
    "explore grid-node --dry-run", "train --from grid-node --output model.json",
    f"predict {FEATURES} --model model.json", "evaluate predict grid-node", "features --list",
    "apps", "apps jacobi3d", "cluster list", "cluster show local", "space list",
    "space show openmpi", "space check openmpi", "space discover btl_sm",
    "show 99", "dataset describe grid-nowhere", "search --app jacobi3d --trials 0",
)  # fmt: skip
"""Each is recorded with its exit code; the last three are refused."""
TIMES = frozenset({"started_at", "created_at", "finished_at"})


def autotune(place: Path, *words: str) -> tuple[int, Any]:
    """Exit code and document of a command in ``place``; its text if it wrote none."""
    line = [sys.executable, "-m", "autotune", *words, "--json", "-"]
    done = subprocess.run(line, cwd=place, capture_output=True, text=True, check=False)
    try:
        return done.returncode, json.loads(done.stdout)
    except ValueError:
        return done.returncode, f"{done.stdout}{done.stderr}"


def export(place: Path, number: int, to: str) -> Path:
    """The file with all runs of a study."""
    words = ["export", str(number), "--to", to, "-o", f"{number}.{to}", "--output"]
    subprocess.run([sys.executable, "-m", "autotune", *words], cwd=place, check=True)
    return place / f"{number}.{to}"


def filled(place: Path, studies: Sequence[tuple[str, str]] = STUDIES) -> Path:
    """A database with these studies, which is that of the commands from now on."""
    database = place / "results.db"
    with Store.open(database) as store:
        for cell, strategy in studies:
            replayed(store, cell, 1, strategy=strategy)
    os.environ["AUTOTUNE_STORE"] = str(database)
    return database


def record(name: str, out: Path, place: Path) -> None:
    """Write a file for each command, and one for the runs of each study."""
    filled(place)
    for words in COMMANDS:
        code, document = autotune(place, *words.split())
        file = words.replace(f"{ROOT}/", "").replace("/", ".").replace(" ", "_")
        write_document(out / f"{file}.json", {"exit": code, "document": document}, place)
    for number in range(1, len(STUDIES) + 1):
        with export(place, number, "csv").open(newline="") as file:
            rows = [_without_times(row) for row in csv.DictReader(file)]
        write_lines(out / f"runs_of_{number}.jsonl", rows, place)


def _without_times(row: dict[str, str]) -> dict[str, str | float]:
    """The columns of a run that have a value."""
    kept = {name: value for name, value in row.items() if value and name not in TIMES}
    numbers = {name: float(v) for name, v in kept.items() if re.fullmatch(r"[\d.]+(e-\d+)?", v)}
    return kept | numbers
