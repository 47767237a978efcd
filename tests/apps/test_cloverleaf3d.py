"""The hydrodynamics step: the same bits in every layout; the race of the printed graph."""

from __future__ import annotations

import math
import shutil
import time
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from runner.mpi.library import Library
from runner.programs.apps.cloverleaf3d import halo, hydro
from runner.programs.apps.cloverleaf3d.block import Block, serial
from runner.programs.apps.cloverleaf3d.options import ENERGIES, INPUTS, parse
from runner.programs.apps.cloverleaf3d.part import BODIES, Part
from runner.programs.apps.cloverleaf3d.problem import (
    ADVANCED_FIELDS,
    COUNT,
    FIELDS,
    STEP,
    reflection,
)
from runner.programs.apps.cloverleaf3d.variant_mate import GRAPH, IN_PYTHON, OnMate, make_graph
from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.common.layout import make_layout
from runner.runtimes import mate
from tests.apps.conftest import Launch, results_of
from tests.case_table import case_table
from tests.programs import compiled

ROOT = Path(__file__).parents[2]
SIZE, STEPS = (12, 10, 8), 4


def solved(
    ranks: int | tuple[int, ...],
    workers: int = 1,
    seed: int | None = None,
    *,
    size: tuple[int, ...] = SIZE,
    core: Literal["native", "python"] = "native",
    graph: mate.Graph | None = None,
) -> OnMate:
    local = ranks if isinstance(ranks, tuple) else None
    count = math.prod(local) if local else int(ranks)  # type: ignore[arg-type]
    layout = make_layout(size, 1, None, count, local, 1)
    config = mate.Config(
        workers=workers,
        ranks_per_process=count,
        affinity="none",
        schedule_seed=seed,
        core=core,
    )
    solver = OnMate(None, layout, config, graph)
    solver.solve(STEPS)
    return solver


def same(solver: OnMate, whole: Block) -> bool:
    for block in solver.blocks:
        (x0, y0, z0), (x1, y1, z1) = block.start, block.stop
        if not np.array_equal(block.interior, whole.interior[:, z0:z1, y0:y1, x0:x1]):
            return False
    return True


@cache
def whole() -> Block:
    """The serial run, and with it the kernels, which are compiled in one process of the tests."""
    return serial(SIZE, STEPS)


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
            for kernel in ("ideal_gas", "viscosity", "accelerate"):
                changed.run(STEP.index(kernel))
        advanced = list(ADVANCED_FIELDS)
        assert not np.array_equal(block.fields[advanced, 5, 5, 5], plain.fields[advanced, 5, 5, 5])


def test_the_kernels_agree_with_plain_python() -> None:
    """A kernel as machine code gives the bits of the function that Python runs."""
    block = serial((5, 4, 3), 2)
    halos = [block.reflector(phase, face) for phase in range(4) for face in range(6)]
    for phase in range(len(STEP)):
        for call in halos:
            call()
        expected = block.fields.copy()
        lines = expected.reshape(len(expected), -1)
        hydro.run(lines, phase, [int(n) for n in block.geometry], block.factors)
        block.run(phase)
        assert np.array_equal(expected, block.fields), STEP[phase]


def test_a_layer_carries_the_ghosts_of_the_axes_before() -> None:
    own, ghosts = halo.boxes((4, 3, 2), ghost=False), halo.boxes((4, 3, 2), ghost=True)
    assert own[0].tolist() == [1, 3, 1, 4, 1, 2]
    assert ghosts[1].tolist() == [1, 3, 1, 4, 5, 6]
    assert own[3].tolist() == [1, 3, 3, 4, 0, 6]
    assert ghosts[4].tolist() == [0, 1, 0, 5, 0, 6]
    assert own[5].tolist() == [2, 3, 0, 5, 0, 6]


def test_walls_let_nothing_through() -> None:
    assert len(FIELDS) == COUNT == 14
    for axis in range(3):
        assert reflection(5 + axis, axis) == -1
        assert reflection(8 + axis, axis) == reflection(11 + axis, axis) == 0
        assert [reflection(f, axis) for f in range(5)] == [1] * 5


@pytest.mark.parametrize(
    ("ranks", "workers"),
    [
        (1, 1),
        (8, 3),
        *(pytest.param(*more, marks=pytest.mark.slow) for more in [(2, 1), (8, 1), (12, 2)]),
    ],
)
def test_ranks_of_one_process_give_every_bit(ranks: int, workers: int) -> None:
    for seed in (None, 1, 2):
        assert same(solved(ranks, workers, seed), whole())


@pytest.mark.parametrize("core", ["native", "python"])
@pytest.mark.parametrize(
    "local",
    [
        *[(3, 2, 2), (7, 1, 1)],
        *(
            pytest.param(cut, marks=pytest.mark.slow)
            for cut in [(3, 1, 1), (1, 3, 1), (1, 1, 3), (2, 1, 2), (2, 3, 1)]
        ),
    ],
)
def test_any_cut_of_an_odd_grid_gives_every_bit(
    local: tuple[int, ...], core: Literal["native", "python"]
) -> None:
    """Each set of cut axes has other stages: the walls of the rest come before or after them."""
    size = (7, 9, 5)
    assert same(solved(local, 2, 5, size=size, core=core), serial(size, STEPS))


def test_all_regions_of_the_native_core_are_compiled() -> None:
    assert [region.name for region in GRAPH.regions if region.compiled] == list(BODIES)
    assert not IN_PYTHON.compiled


def test_without_its_neighbours_a_rank_computes_with_old_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Martin's graph as printed (digest 8.3.5): one rank is slow to write its neighbour's halo."""
    compute = Part.compute

    def slow(self: Part, i: int) -> None:
        if self.block.start == (0, 0, 0):
            time.sleep(0.002)
        compute(self, i)

    monkeypatch.setitem(BODIES, "compute", slow)

    def right(neighbours: bool, seed: int) -> bool:
        graph = make_graph(is_compiled=False, neighbours=neighbours)
        return same(solved(4, 4, seed, core="python", graph=graph), whole())

    assert any(not right(False, seed) for seed in range(5))
    assert all(right(True, seed) for seed in range(5))


@pytest.mark.parametrize(
    "name",
    [
        name if name in ("tiny", "small") else pytest.param(name, marks=pytest.mark.slow)
        for name in INPUTS
    ],
)
def test_the_stored_energies_are_those_of_a_serial_run(name: str) -> None:
    size, steps, _ = INPUTS[name]
    assert serial(size, steps).energy() == pytest.approx(ENERGIES[*size, steps], rel=1e-12)


@case_table("words", [["--input", "x"], ["--size", "8"], ["--workers", "2"], ["--steps", "0"]])
def test_wrong_words(words: list[str]) -> None:
    with pytest.raises(AppUsageError):
        parse(words)


ON_MATE = (
    ["--ranks-per-process", "4", "--repetitions", "2"],
    ["--workers", "2", "--local-grid", "2x1x2", "--affinity", "none", "--split", "3"],
    ["--ranks-per-process", "3", "--core", "python"],
    [],
)


@pytest.mark.mpi
@pytest.mark.parametrize(
    "processes", [*[pytest.param(n, marks=pytest.mark.slow) for n in (1, 2)], 4]
)
def test_all_variants_give_every_bit(launch: Launch, processes: int) -> None:
    common = ["--input", "tiny", "--verify", "full", "--variant"]
    lines = [[*common, "mpi"], *([*common, "mate", *more] for more in ON_MATE)]
    found = results_of(launch, processes, "cloverleaf3d", lines)
    assert all(result["verified"] is True for result in found)
    sent = [(result["messages"], result["bytes"]) for result in found]
    # One message for all fields of a face: four exchanges a step over each inner face.
    faces = {1: 0, 2: 2, 4: 8}[processes]
    assert sent[0][0] == sent[-1][0] == 4 * 5 * faces
    assert sent[0] == sent[-1]


@pytest.mark.mpi
def test_the_reference_in_c_gives_the_same_energy(
    launch: Launch, library: Library, tmp_path: Path
) -> None:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    place = Path(library.bin)
    wrapper = next(
        (p for p in (place / f"mpicc.{library.family}", place / "mpicc") if p.exists()), "cc"
    )
    around = [
        f"-I{place.parent}/include",
        f"-L{place.parent}/lib",
        f"-Wl,-rpath,{place.parent}/lib",
    ]
    words = ["-lm", *around, "-lmpi"] if wrapper == "cc" else ["-lm"]
    source = (ROOT / "benchmarks/references/cloverleaf3d.c").read_text()
    line = [str(wrapper), "-O3", "-Wall", "-Werror"]
    program = compiled(line, source, tmp_path / "cloverleaf3d", *words)
    for numbers in (["12", "10", "8", "5"], ["7", "9", "5", "3", "1", "2", "1"]):
        done = launch(2, *numbers, program=str(program))
        assert done.code == 0, done.err
        *size, steps = map(int, numbers[:4])
        energy = serial(tuple(size), steps).energy()
        assert done.result["checksum"] == pytest.approx(energy, rel=1e-12)
        assert done.result["solver_s"] > 0
    refused = launch(2, "12", "10", "8", program=str(program))
    assert refused.code != 0
    assert "NX NY NZ STEPS" in refused.err
