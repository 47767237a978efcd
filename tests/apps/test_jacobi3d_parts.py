"""How the grid is cut for the variants, the team of threads, the options; all in one process."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from syrupy.assertion import SnapshotAssertion

from runner.programs.apps.common.box import Box, box_cells, cut, split_phase
from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.common.layout import Layout, make_layout
from runner.programs.apps.common.meter import Meter
from runner.programs.apps.common.team import Team
from runner.programs.apps.jacobi3d.block import Block, Call
from runner.programs.apps.jacobi3d.options import VARIANTS, parse, thread_level
from tests.refusals import refusal, refused

grids = st.tuples(*[st.integers(1, 3)] * 3)
spare = st.tuples(*[st.integers(0, 3)] * 3)


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    processes, local, more = draw(grids), draw(grids), draw(spare)
    size = tuple(2 * p * q + m for p, q, m in zip(processes, local, more, strict=True))
    return make_layout(size, math.prod(processes), processes, math.prod(local), local)


@given(layout=layouts())
def test_every_cell_has_one_rank(layout: Layout) -> None:
    owners = np.zeros(layout.size, dtype=int)
    for process in range(math.prod(layout.processes)):
        for local in range(layout.local_count):
            start, stop = layout.part(process, local)
            owners[tuple(slice(a, b) for a, b in zip(start, stop, strict=True))] += 1
    assert (owners == 1).all()


@settings(max_examples=30)
@given(layout=layouts())
def test_neighbours_touch_and_know_each_other(layout: Layout) -> None:
    for process in range(math.prod(layout.processes)):
        for local in range(layout.local_count):
            mine = layout.part(process, local)
            faces = layout.faces(process, local)
            inner = [
                (a, s) for a in range(3) for s in (0, 1) if mine[s][a] not in (0, layout.size[a])
            ]
            assert [(f.axis, f.side) for f in faces] == inner
            for f in faces:
                theirs = layout.part(f.process, f.local)
                assert mine[f.side][f.axis] == theirs[1 - f.side][f.axis]
                across = [axis for axis in range(3) if axis != f.axis]
                assert all(mine[e][a] == theirs[e][a] for e in (0, 1) for a in across)
                back = {
                    (g.axis, g.side): (g.process, g.local) for g in layout.faces(f.process, f.local)
                }
                assert back[f.axis, 1 - f.side] == (process, local)


cells = st.tuples(*[st.integers(1, 9)] * 3)


def marked(size: tuple[int, ...], boxes: Sequence[Box]) -> NDArray[np.int64]:
    count = np.zeros(tuple(n + 4 for n in reversed(size)), dtype=int)
    for z0, z1, y0, y1, x0, x1 in boxes:
        count[z0:z1, y0:y1, x0:x1] += 1
    return count


@given(size=cells, faces=st.sets(st.tuples(st.integers(0, 2), st.integers(0, 1))), grid=grids)
def test_inner_tiles_and_slabs_cover_a_block_once(
    size: tuple[int, ...], faces: set[tuple[int, int]], grid: tuple[int, ...]
) -> None:
    x, y, z = (n + 2 for n in size)
    whole = (2, z, 2, y, 2, x)
    inner, slabs = split_phase(whole, sorted(faces), 2)
    tiles = cut(inner, grid)
    assert (marked(size, [*tiles, *slabs]) == marked(size, [whole])).all()
    assert sum(map(box_cells, tiles)) == box_cells(inner)
    if box_cells(inner):
        for axis, side in faces:
            low, high = inner[4 - 2 * axis], inner[5 - 2 * axis]
            # Two cells away from the face: no ghost behind it is read.
            assert low >= 4 if side == 0 else high <= size[axis]


@given(layout=layouts())
def test_box_of_a_part_holds_its_cells(layout: Layout) -> None:
    process = math.prod(layout.processes) - 1
    block = Block(layout.size, *layout.block(process), 64)
    boxes = [block.box_of(*layout.part(process, r)) for r in range(layout.local_count)]
    assert (marked(block.cells, boxes) == marked(block.cells, [block.whole])).all()


def test_x_is_not_cut_within_a_process_unless_it_must() -> None:
    assert make_layout((64, 64, 64), 2, None, 8, None).local == (1, 4, 2)
    assert make_layout((64, 2, 2), 1, None, 8, None).local == (8, 1, 1)


def test_parts_that_are_too_thin(snapshot: SnapshotAssertion) -> None:
    cut = [((1, 1, 8), 8), (None, 65)]
    assert [
        refusal(AppUsageError, make_layout, (8, 8, 8), 1, None, parts, local)
        for local, parts in cut
    ] == snapshot


def test_team_does_every_step_once_on_every_worker() -> None:
    done: list[list[int]] = [[], [], []]

    def task(worker: int, kind: int) -> Call:
        return lambda: done[worker].append(kind)

    tasks = [(task(w, 0), task(w, 1)) for w in range(3)]
    meters = [Meter() for _ in tasks]
    with Team(tasks, [None] * 3, meters) as team:
        for step in range(40):
            team.step(step % 2)
            # The join: nobody is still at work.
            assert [len(d) for d in done] == [step + 1] * 3
    assert done == [[0, 1] * 20] * 3
    assert all(m.compute > 0 for m in meters)


def test_team_tells_what_a_worker_raised() -> None:
    def fail() -> None:
        raise ValueError("broken kernel")

    def good() -> None:
        pass

    with (
        pytest.raises(RuntimeError) as caught,
        Team([(good, good), (fail, fail)], [None, None], [Meter(), Meter()]) as team,
    ):
        team.step(0)
    assert str(caught.value.__cause__) == "broken kernel"


def test_kernel_time_is_compute_and_cpu_time_is_no_more() -> None:
    meter = Meter()

    def kernel() -> None:
        sum(range(20_000))

    spent = [meter.run(kernel) for _ in range(20)]
    meter.copy(lambda: None)
    assert meter.compute == pytest.approx(sum(spent))
    assert 0 < meter.compute_cpu <= meter.compute
    assert meter.buffering > 0
    assert (meter.mpi, meter.waiting) == (0, 0)


def test_wrong_options(snapshot: SnapshotAssertion) -> None:
    lines = [
        "--variant mpi --workers 2",
        "--ranks-per-process 4",
        "--variant overlap --split 2",
        "--variant threads --in-process",
        "--variant overlap --idle 1:2",
        "--variant threads --workers 2 --ranks-per-process 4",
        "--variant mate --workers 4 --ranks-per-process 2",
        "--variant mate --local-grid 2x2",
        "--variant mate --local-grid 1x2x2 --ranks-per-process 3",
        "--variant mate --thread-level two",
        "--variant mate --rank-map no/such/file",
        "--variant other",
    ]
    assert {line: refusal(AppUsageError, parse, line.split()) for line in lines} == snapshot
    assert {thread_level(line.split()) for line in lines} == {"single"}


def test_rank_map_is_refused(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("map") / "map.json"
    path.write_text("[[0], [1, 2]]")
    with refused(AppUsageError, "app_option.ranks"):
        parse(["--variant", "mate", "--rank-map", str(path)])


def test_thread_levels() -> None:
    levels = {v: parse(["--variant", v]).thread_level for v in VARIANTS}
    assert levels == {
        "mpi": "single", "overlap": "single", "threads": "funneled",
        "openmp": "funneled", "tarragon": "single", "tpod": "single",
        "over": "multiple", "barrier": "multiple", "mate": "multiple",
    }  # fmt: skip
    assert thread_level(["--variant", "mate", "--thread-level", "serialized"]) == "serialized"


def test_block_may_be_given_in_both_ways() -> None:
    assert parse([]).block == 64
    assert parse(["--block-size", "16"]).block == 16
    assert parse(["--block", "8", "--block-size", "16"]).block == 8
