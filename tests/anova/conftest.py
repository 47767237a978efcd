"""A small recorded dataset with known truth, written by the datasets' own writer."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from autotune.anova.table import CellFacts
from autotune.datasets import Card, Cell, RecordedMachine, RunRow, create_dataset, write_shard
from autotune.space import DEFAULT, Parameter, Setting, Space
from benchmarks.harness.synthetic_tables import Effect, additive, cell_facts, random_settings
from runner.machine import describe_machine

LEVELS = {"eager": (1, 2, 4), "links": (1, 2), "idle": (0, 1), "depth": (1, 2, 3)}
TRUTH = additive({"eager": {4: -0.15, 1: 0.2}, "links": {2: -0.06}})

SPACE = Space("small", tuple(Parameter(n, levels, "arg") for n, levels in LEVELS.items()))

Writer = Callable[..., Path]


def choices() -> dict[str, list[int | float | str | None]]:
    return {name: [None, *levels] for name, levels in LEVELS.items()}


def write(
    folder: Path,
    cells: Sequence[CellFacts],
    effect: Effect,
    *,
    count: int = 90,
    noise: float = 0.02,
    seed: int = 0,
    space: Space = SPACE,
    levels: dict[str, list[int | float | str | None]] | None = None,
) -> Path:
    """A dataset of kind explore: one list of settings, two runs each, default runs."""
    rng = np.random.default_rng(seed)
    settings = [DEFAULT, *random_settings(levels or choices(), count, rng)]
    machine = describe_machine().fingerprint
    listed = tuple(
        Cell(key=p.key, app=p.app, input=p.input or "", ranks=p.ranks, blocks=1) for p in cells
    )
    card = Card(
        schema=1,
        name=folder.name,
        kind="explore",
        machine=RecordedMachine(fingerprint=machine),
        cells=listed,
    )
    create_dataset(folder, card, {p.key: space for p in cells}, {"all": settings})
    for place in cells:
        order = [*[0] * 12, *list(range(1, len(settings))) * 2]
        rows = [_row(place, i, n, settings[i], effect, noise, rng, machine)
                for n, i in enumerate(order)]  # fmt: skip
        write_shard(folder, rows)
    return folder


def _row(
    place: CellFacts,
    index: int,
    order: int,
    setting: Setting,
    effect: Effect,
    noise: float,
    rng: np.random.Generator,
    machine: str,
) -> RunRow:
    value = float(np.exp(effect(setting, place) + noise * rng.standard_normal()))
    return RunRow(
        cell=place.key,
        block=0,
        order=order,
        setting=index,
        state="ok",
        reason="",
        value_s=value,
        limit_s=3.0,
        wall_s=value,
        foreign_load=0.0,
        started_at=0.0,
        machine=machine,
        mpi="openmpi 5.0",
        commit="",
    )


def three_programs() -> list[CellFacts]:
    found = cell_facts(["first", "second", "third"], ["small"], [4])
    return [CellFacts(p.key.replace(".", "-"), p.app, p.input, p.ranks) for p in found]


@pytest.fixture(scope="session")
def _three(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("recorded") / "three", three_programs(), TRUTH)


@pytest.fixture
def recorded(_three: Path, work: Path) -> Path:
    """``datasets/three`` in the current directory."""
    return Path(shutil.copytree(_three, work / "datasets" / "three"))
