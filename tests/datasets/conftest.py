"""Small datasets made by the writer, with planted effects."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from autotune.datasets import (
    Card,
    Cell,
    Dataset,
    RecordedMachine,
    RunRow,
    create_dataset,
    load,
    write_shard,
)
from autotune.space import DEFAULT, Parameter, Setting, Space, parse_expression
from autotune.space.space import Constraint

SPACE = Space(
    "small",
    (
        Parameter("eager", (1024, 8192, 65536), default=4096),
        Parameter("flag", (0, 1), default=0),
        Parameter("low", (1, 2), when=parse_expression("flag == 1")),
        Parameter("high", (1, 2)),
    ),
    (Constraint(parse_expression("low <= high"), "low is below high"),),
)
FINGERPRINT = "0123456789abcdef"
Effect = Callable[[Setting], float | str]


def planted(setting: Setting) -> float | str:
    """Much headroom at one level, a cliff at another, one corner that fails."""
    if setting.get("eager") == 1024:
        return "censored" if setting.get("flag") == 1 else 2.0
    if setting.get("high") == 2 and setting.get("flag") == 1:
        return "failed"
    return 0.6 if setting.get("eager", 0) == 65536 else 1.0


def nothing(setting: Setting) -> float | str:
    """A null cell."""
    return 1.0


def rows_of(
    cell: str, settings: list[Setting], effect: Effect, blocks: int, noise: float, seed: int
) -> list[list[RunRow]]:
    """Rows per block; each block has a level of its own, as the hours have."""
    rng = np.random.default_rng(seed)
    found = []
    for block in range(blocks):
        level = float(rng.uniform(0.2, 0.9))
        order = [0] * 8 + list(range(1, len(settings)))
        rows = []
        for place, index in enumerate(order):
            what = effect(settings[index]) if index else 1.0
            state = what if isinstance(what, str) else "ok"
            value = math.nan if isinstance(what, str) else what * level * rng.lognormal(0, noise)
            rows.append(
                RunRow(
                    cell,
                    block,
                    place,
                    index,
                    state,
                    "" if state == "ok" else "planted",
                    value,
                    3 * level if state == "censored" else math.nan,
                    1.0,
                    0.0,
                    1e9 + place,
                    FINGERPRINT,
                    "openmpi 5.0.11",
                    "",
                )
            )
        found.append(rows)
    return found


def make(
    folder: Path,
    effects: dict[str, Effect],
    *,
    kind: str = "grid",
    space: Space = SPACE,
    inactive_under: dict[str, tuple[str, ...]] | None = None,
    blocks: int = 3,
    noise: float = 0.03,
    seed: int = 0,
) -> Dataset:
    """A dataset with one cell per effect, every setting once in each block."""
    settings = [DEFAULT, *(s for s in space.enumerate() if s != DEFAULT)]
    cells = tuple(
        Cell(
            key=key,
            app="micro",
            ranks=2,
            blocks=blocks,
            inactive_under=inactive_under,
            facts={"cores": 2},
        )
        for key in effects
    )
    card = Card(
        schema=1,
        name=folder.name,
        kind=kind,
        machine=RecordedMachine(fingerprint=FINGERPRINT),
        cells=cells,
    )
    create_dataset(folder, card, dict.fromkeys(effects, space), dict.fromkeys(effects, settings))
    for key, effect in effects.items():
        for rows in rows_of(key, settings, effect, blocks, noise, seed):
            write_shard(folder, rows)
    return load(folder)


@pytest.fixture
def grid(tmp_path: Path) -> Dataset:
    return make(tmp_path / "grid", {"planted": planted, "null": nothing})
