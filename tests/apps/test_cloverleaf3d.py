"""The hydrodynamics step: the same bits in every layout; the race of the printed graph."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from runner import mate
from runner.apps.cloverleaf3d.block import Block, serial
from runner.apps.cloverleaf3d.options import ENERGIES, INPUTS, parse
from runner.apps.cloverleaf3d.problem import COUNT, FIELDS, reflection
from runner.apps.cloverleaf3d.variant_mate import OnMate
from runner.apps.common_errors import AppUsageError
from runner.apps.common_layout import make_layout
from tests.apps.conftest import Launch, results_of

ROOT = Path(__file__).parents[2]
SIZE, STEPS = (12, 10, 8), 4


def solved(ranks: int, workers: int = 1, seed: int | None = None, finish: bool = True) -> OnMate:
    layout = make_layout(SIZE, 1, None, ranks, None, 1)
    config = mate.Config(
        workers=workers, ranks_per_process=ranks, affinity="none", schedule_seed=seed
    )
    solver = OnMate(None, layout, config, finish)
    solver.solve(STEPS)
    return solver


def same(solver: OnMate, whole: Block) -> bool:
    for block in solver.blocks:
        (x0, y0, z0), (x1, y1, z1) = block.start, block.stop
        if not np.array_equal(block.interior, whole.interior[:, z0:z1, y0:y1, x0:x1]):
            return False
    return True


def test_nothing_is_lost_and_something_happens() -> None:
    begin, end = Block(SIZE, (0, 0, 0), SIZE), serial(SIZE, 20)
    assert end.mass() == pytest.approx(begin.mass(), rel=1e-13)
    assert end.energy() == pytest.approx(begin.energy(), rel=0.02)
    assert np.abs(end.interior[2:]).max() > 1e-3
    assert end.interior[0].min() > 0
    assert not np.array_equal(end.interior, begin.interior)


def test_all_26_neighbours_count() -> None:
    """A change anywhere round a cell is seen in it after one step, corners included."""
    for place in np.ndindex(3, 3, 3):
        block = Block((9, 9, 9), (0, 0, 0), (9, 9, 9))
        plain = serial((9, 9, 9), 0)
        block.fields[...] = plain.fields
        z, y, x = (4 + p for p in place)
        block.fields[1, z, y, x] *= 1.25
        for changed in (plain, block):
            changed.run(["ideal_gas", "viscosity", "accelerate", "take_room"])
        assert not np.array_equal(block.fields[:, 5, 5, 5], plain.fields[:, 5, 5, 5])


def test_walls_let_nothing_through() -> None:
    assert len(FIELDS) == COUNT == 14
    for axis in range(3):
        assert reflection(5 + axis, axis) == -1
        assert reflection(8 + axis, axis) == reflection(11 + axis, axis) == 0
        assert [reflection(f, axis) for f in range(5)] == [1] * 5


@pytest.mark.parametrize(("ranks", "workers"), [(1, 1), (2, 1), (8, 1), (8, 3), (12, 2)])
def test_ranks_of_one_process_give_every_bit(ranks: int, workers: int) -> None:
    whole = serial(SIZE, STEPS)
    for seed in (None, 1, 2):
        assert same(solved(ranks, workers, seed), whole)


def test_without_finish_a_rank_computes_with_old_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Martin's graph as printed (digest 8.3.5): one rank is slow to write its neighbour's halo."""
    push = Block.push

    def slow(self: Block, fields: object, axis: int, side: int, other: Block) -> None:
        if self.start == (0, 0, 0):
            time.sleep(0.002)
        push(self, fields, axis, side, other)  # type: ignore[arg-type]

    monkeypatch.setattr(Block, "push", slow)
    whole = serial(SIZE, STEPS)
    assert any(not same(solved(4, 4, seed, finish=False), whole) for seed in range(5))
    assert all(same(solved(4, 4, seed), whole) for seed in range(5))


@pytest.mark.parametrize("name", INPUTS)
def test_the_stored_energies_are_those_of_a_serial_run(name: str) -> None:
    size, steps, _ = INPUTS[name]
    assert serial(size, steps).energy() == pytest.approx(ENERGIES[*size, steps], rel=1e-12)


@pytest.mark.parametrize(
    "words", [["--input", "x"], ["--size", "8"], ["--workers", "2"], ["--steps", "0"]]
)
def test_wrong_words(words: list[str]) -> None:
    with pytest.raises(AppUsageError):
        parse(words)


@pytest.mark.mpi
@pytest.mark.parametrize("processes", [1, 2, 4])
def test_all_variants_give_every_bit(launch: Launch, processes: int) -> None:
    common = ["--input", "tiny", "--verify", "full", "--variant"]
    grid = ["--workers", "2", "--local-grid", "2x1x2", "--affinity", "none", "--split", "3"]
    lines = [
        [*common, "mpi"],
        [*common, "mate", "--ranks-per-process", "4", "--repetitions", "2"],
        [*common, "mate", *grid],
    ]
    found = results_of(launch, processes, "cloverleaf3d", lines)
    assert all(result["verified"] is True for result in found)
