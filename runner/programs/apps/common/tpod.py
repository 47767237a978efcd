"""Shared parts of the variants on TPOD: blocks as tasks that exchange faces (Barrett et al.)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from argparse import Namespace
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from runner.programs.apps.common import faces as common_faces
from runner.programs.apps.common.box import Box, box_within
from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.common.faces import Field
from runner.programs.apps.common.grid import Shape, coordinates
from runner.programs.apps.common.layout import Layout, local_grid
from runner.programs.apps.common.mated import layout_of_runtime
from runner.programs.apps.common.meter import RunTimes, timed_of
from runner.programs.apps.common.options import changed_switches, meaningless
from runner.runtimes import tpod
from runner.runtimes.core import library

Meeting = tuple[int, int, tpod.Partner]
"""A face of a box with another process behind it: axis, side, the task there."""


@dataclass(frozen=True)
class Grids:
    """The exchanged data: two ``fields`` [z][y][x] with ``depth`` ghost cells on every side.

    A field may hold several grids along z: ``groups`` are the numbers of grids that share a
    message, and a grid has ``planes`` planes. A message is ``padding`` times as long as its faces.
    """

    fields: tuple[Field, Field]
    depth: int
    groups: Sequence[range] = (range(1),)
    planes: int = 0
    padding: int = 1


class Faces(tpod.Task):
    """A task that exchanges faces of a box, and may do more.

    A message holds its face of each grid of a group.
    """

    def __init__(self, solver: TpodSolver, box: Box, meetings: Sequence[Meeting]) -> None:
        grids, place = solver.grids, solver.place
        meetings = _in_turn(meetings, place)
        super().__init__([partner for _, _, partner in meetings])
        self.grids = grids.fields
        self.calls = tpod.CALLS.index(solver.config.calls)
        self.prepost = int(solver.config.prepost)
        self.begin = self.steps = 0
        """The field that the first step reads, and the number of steps."""
        self.leads = np.array([not place[axis] % 2 for axis, _, _ in meetings], np.int64)
        """True if this side of a face sends first, when both sides block."""
        self.groups, self.width = len(grids.groups), len(grids.groups[0])
        remote = [(axis, side, partner[0]) for axis, side, partner in meetings]
        tables = common_faces.FaceTables(
            [
                common_faces.Faces(
                    *(grids.fields, box, remote, grids.depth),
                    padding=grids.padding,
                    planes=[grid * grids.planes for grid in group],
                    tag=6 * group.start,
                )
                for group in grids.groups
            ]
        )
        self.own, self.ghosts = tables.own, tables.ghosts
        # Compiled code takes the types from the lists, so none is empty.
        none = [np.empty(0)]
        self.out_parts, self.in_parts = tables.out_parts or none, tables.in_parts or none
        self.outgoing = [buffer for buffer, _, _ in tables.sends] or none
        self.incoming = [buffer for buffer, _, _ in tables.receives] or none
        both = zip(tables.sends, tables.receives, strict=True)
        tags = [(out, into) for (_, _, out), (_, _, into) in both]
        self.tags = np.array(tags, np.int64).reshape(-1, 2)
        self.top = max((max(pair) for pair in tags), default=0)
        self.kernels_s = np.zeros(3)
        """Seconds of the kernels; wall and CPU seconds of the sampled steps."""


def _in_turn(meetings: Sequence[Meeting], place: Shape) -> list[Meeting]:
    """The faces in an order in which blocking sends and receives match.

    Along each axis processes with an even place first exchange with the neighbour above, those with
    an odd place with the one below.
    """

    def key(meeting: Meeting) -> tuple[int, int]:
        axis, side, _ = meeting
        return axis, side if place[axis] % 2 else 1 - side

    return sorted(meetings, key=key)


def post(task: Faces) -> None:
    """Post all receives of the next step, or of the first one."""
    faces = len(task.leads)
    for at in range(task.groups * faces):
        task.ctx.post(task.incoming[at], task.peers[at % faces], task.tags[at, 1])


def exchange(task: Faces, step: int, field: int, first: int, last: int) -> None:
    """Fill the ghosts of groups of variables, as if the calls of MPI blocked."""
    faces = len(task.leads)
    begin, end = first * faces, last * faces
    if task.prepost != 0 and step == 0:
        post(task)
    elif task.calls >= 2 and task.prepost == 0:
        for at in range(begin, end):
            task.ctx.irecv(task.incoming[at], task.peers[at % faces], task.tags[at, 1])
    with task.ctx.buffering():
        for n in range(begin * task.width, end * task.width):
            library.pack(task.grids[field], task.own[n], task.out_parts[n])
    for at in range(begin, end):
        peer = task.peers[at % faces]
        if task.calls == 0:
            if task.leads[at % faces] != 0:
                task.ctx.send(task.outgoing[at], peer, task.tags[at, 0])
                task.ctx.recv(task.incoming[at], peer, task.tags[at, 1])
            else:
                task.ctx.recv(task.incoming[at], peer, task.tags[at, 1])
                task.ctx.send(task.outgoing[at], peer, task.tags[at, 0])
        elif task.calls == 2:
            task.ctx.send(task.outgoing[at], peer, task.tags[at, 0])
        else:
            task.ctx.isend(task.outgoing[at], peer, task.tags[at, 0])
    if task.calls == 1:
        for at in range(begin, end):
            task.ctx.recv(task.incoming[at], task.peers[at % faces], task.tags[at, 1])
    task.ctx.take()
    task.ctx.wait()
    with task.ctx.buffering():
        for n in range(begin * task.width, end * task.width):
            library.unpack(task.grids[field], task.ghosts[n], task.in_parts[n])
    if task.prepost != 0 and step + 1 < task.steps:
        post(task)


class FaceTask(Faces):
    """Exchanges a whole face of the process for all its blocks."""

    def step(self, step: int) -> None:
        """Exchange the face."""
        exchange(self, step, (self.begin + step) % 2, 0, self.groups)


class TpodSolver(ABC):
    """The solver of one process whose cells are divided into blocks; ``whole`` is all of them.

    :meth:`run` may be called again after the fields are reset.
    """

    def __init__(
        self, comm: Any, layout: Layout, config: tpod.Config, grids: Grids, whole: Box
    ) -> None:
        self.config, self.grids = config, grids
        self._layout, self._whole = layout, whole
        start, stop = layout.block(comm.rank)
        x, y, z = (b - a for a, b in zip(start, stop, strict=True))
        self._blocks = tpod.over_decompose((x, y, z), config.edge)
        self.place = coordinates(comm.rank, layout.processes)
        """The place of the process among all."""
        self._remote = [(f.axis, f.side, f.process) for f in layout.faces(comm.rank, 0)]
        self._inner = [self._block(number) for number in range(self._blocks.count)]
        self._faces = self._face_tasks() if config.messages == "face" else []
        self._runtime = tpod.Tpod(comm, config)
        for task in (*self._inner, *self._faces):
            self._runtime.spawn(task)

    @abstractmethod
    def task(self, box: Box, meetings: list[Meeting]) -> Faces:
        """The task of a block, which exchanges these faces and advances its cells."""

    def run(self, steps: int, field: int) -> RunTimes:
        """Time the steps on this process, after a barrier; ``field`` holds the newest values."""
        config, runtime = self.config, self._runtime
        for task in (*self._inner, *self._faces):
            task.begin, task.steps = field, steps
            task.kernels_s.fill(0.0)
        faces = [(axis, side) for axis, side, _ in self._remote]
        order = tpod.ordered(self._blocks, faces, config.order, config.seed)
        count = len(self._inner)
        runtime.run(steps, [*range(count, count + len(self._faces)), *order])
        traffic = runtime.messages, runtime.bytes
        waiting = runtime.task_waiting
        return timed_of(runtime.exec_time, runtime.times, self._inner, traffic, waiting)

    def _block(self, number: int) -> Faces:
        blocks, depth = self._blocks, self.grids.depth
        box = box_within([(low + depth, high + depth) for low, high in blocks.bounds(number)])
        meetings = [
            (axis, side, (process, blocks.across(number, axis, side)))
            for axis, side, process in self._remote
            if self.config.messages == "block" and blocks.neighbour(number, axis, side) is None
        ]
        task = self.task(box, meetings)
        task.after = blocks.neighbours(number)
        return task

    def _face_tasks(self) -> list[FaceTask]:
        """A task for each face of the process with another process behind it."""
        tasks: list[FaceTask] = []
        count = len(self._inner)
        for axis, side, process in self._remote:
            opposite_faces = [(f.axis, f.side) for f in self._layout.faces(process, 0)]
            partner = process, count + opposite_faces.index((axis, 1 - side))
            task = FaceTask(self, self._whole, [(axis, side, partner)])
            for number, block in enumerate(self._inner):
                if self._blocks.neighbour(number, axis, side) is None:
                    block.same.append(count + len(tasks))
                    task.after.append(number)
            tasks.append(task)
        return tasks


def with_published_blocks(
    config: tpod.Config, layout: Layout, largest_face: int | None
) -> tpod.Config:
    """The configuration with the edges of the blocks that a published layout asks for; the same
    one if none does. ``largest_face``: cells of a face between processes at most."""
    if config.parts == 0:
        return config
    block = [n // p for n, p in zip(layout.size, layout.processes, strict=True)]
    parts = local_grid(layout.size, layout.processes, config.parts, 1, largest_face)
    x, y, z = (-(-n // p) if p > 1 else 0 for n, p in zip(block, parts, strict=True))
    return replace(config, edge=(x, y, z), parts=0)


def config_of(
    options: Namespace, tasks: Iterable[str], own_calls: bool = False, **others: Any
) -> tpod.Config:
    """The configuration of the tasks; the default for a variant without any.

    ``tasks``: the variants with tasks; ``own_calls``: the switches of the calls belong only to
    these; ``others``: values of the application's own switches. Raises :class:`AppUsageError` for a
    switch without a meaning for the variant, and for an impossible configuration.
    """
    able = tuple(tasks)
    if options.variant in able:
        if options.block_edge is None:
            factor = layout_of_runtime("tpod").factor
            others["parts"] = 0 if factor is None else factor * others["workers"]
        try:
            return tpod.from_arguments(options, **others)
        except tpod.TpodError as error:
            raise AppUsageError(str(error), code=error.code) from None
    for switch in changed_switches(options, lambda parser: tpod.add_arguments(parser, own_calls)):
        raise meaningless(switch, options.variant, able)
    return tpod.Config()
