"""The family as a dataset on disk, with features beside the runs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Literal

import numpy as np

from autotune.datasets import Card, Cell, RecordedMachine, RunRow, create_dataset, write_shard
from autotune.datasets.dataset import Dataset
from autotune.space import Parameter, Space
from tests.prediction.family import BIND, EAGER, LIMIT, SETTINGS, SIZES, traced, truth

FINGERPRINT = "f" * 16
SPACE = Space(
    name="toy",
    parameters=(
        Parameter(LIMIT, tuple(EAGER), default=4096),
        Parameter("bind_to", tuple(BIND), target="placement"),
    ),
)


def record(
    folder: Path, kind: Literal["grid", "explore"] = "grid", traced_cells: int = len(SIZES)
) -> Dataset:
    """Write the dataset; only the first ``traced_cells`` cells get features."""
    keys = [f"app{i:02d}" for i in range(len(SIZES))]
    card = Card(
        schema=1,
        name=folder.name,
        kind=kind,
        machine=RecordedMachine(fingerprint=FINGERPRINT),
        mpi="openmpi 5.0.11",
        cells=tuple(Cell(key=k, app=k, ranks=4, blocks=1) for k in keys),
    )
    dataset = create_dataset(folder, card, dict.fromkeys(keys, SPACE), {"all": SETTINGS})
    rng = np.random.default_rng(7)
    for number, (key, size) in enumerate(zip(keys, SIZES, strict=True)):
        order = [i for i in range(len(SETTINGS)) for _ in range(6 if i == 0 else 3)]
        rows = [
            run_row(key, at, i, 0.5 * truth(size, SETTINGS[i]) * math.exp(rng.normal(0, 0.01)))
            for at, i in enumerate(order)
        ]
        write_shard(folder, rows)
        if number < traced_cells:
            (folder / "features").mkdir(exist_ok=True)
            traced(size, app=key).save(folder / "features" / f"{key}.json")
    return dataset


def run_row(cell: str, order: int, setting: int, value_s: float) -> RunRow:
    return RunRow(
        cell=cell,
        block=0,
        order=order,
        setting=setting,
        state="ok",
        reason="",
        value_s=value_s,
        limit_s=math.nan,
        wall_s=value_s,
        foreign_load=0.0,
        started_at=0.0,
        machine=FINGERPRINT,
        mpi="openmpi 5.0.11",
        commit="",
    )
