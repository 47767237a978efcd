"""Variant tpod: the blocks of a process as tasks that exchange their own faces (Barrett et al.)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner import tpod
from runner.apps.common_box import Box, box_cells, box_within, face_of
from runner.apps.common_grid import Shape, coordinates
from runner.apps.common_layout import Layout
from runner.apps.common_meter import SAMPLE, Timed, meter_of
from runner.apps.minighost import stencil
from runner.apps.minighost.domain import Domain
from runner.apps.minighost.options import Options
from runner.apps.minighost.problem import DEPTH
from runner.native import library

Meeting = tuple[int, int, tpod.Partner]
"""A face of a box with another process behind it: axis, side, the task there."""


class Faces(tpod.Task):
    """A task that exchanges faces of a box, each of some variables, and may do more.

    A message holds its face of each variable of a group; the groups are exchanged in turn.
    """

    def __init__(
        self,
        domain: Domain,
        groups: Sequence[range],
        box: Box,
        meetings: Sequence[Meeting],
        place: Shape,
        config: tpod.Config,
    ) -> None:
        super().__init__([partner for _, _, partner in meetings])
        _, planes, rows, row = domain.fields[0].shape
        self.grids = tuple(field.reshape(-1, rows, row) for field in domain.fields)
        self.calls, self.ahead = tpod.CALLS.index(config.calls), int(config.prepost)
        self.begin = domain.current
        """The field that the first step reads."""
        self.steps = 0
        meetings = _in_turn(meetings, place)
        self.partners = [partner for _, _, partner in meetings]
        self.leads = np.array([not place[axis] % 2 for axis, _, _ in meetings], np.int64)
        """Whether this side of a face sends first, where both sides block."""
        self.groups, self.width = len(groups), len(groups[0])
        own: list[Box] = []
        ghosts: list[Box] = []
        self.out_parts: list[NDArray[np.float64]] = []
        self.in_parts: list[NDArray[np.float64]] = []
        self.outgoing: list[NDArray[np.float64]] = []
        self.incoming: list[NDArray[np.float64]] = []
        tags: list[tuple[int, int]] = []
        for group in groups:
            for axis, side, _ in meetings:
                face = face_of(box, axis, side, False, DEPTH)
                ghost = face_of(box, axis, side, True, DEPTH)
                cells = box_cells(face)
                out, into = np.zeros(cells * len(group)), np.zeros(cells * len(group))
                self.outgoing.append(out)
                self.incoming.append(into)
                # A message is named by the face of its sender.
                tags.append((_tag(group, axis, side), _tag(group, axis, 1 - side)))
                for n, variable in enumerate(group):
                    own.append(_moved(face, variable * planes))
                    ghosts.append(_moved(ghost, variable * planes))
                    self.out_parts.append(out[n * cells : (n + 1) * cells])
                    self.in_parts.append(into[n * cells : (n + 1) * cells])
        none = [np.empty(0)]
        self.outgoing, self.incoming = self.outgoing or none, self.incoming or none
        self.out_parts, self.in_parts = self.out_parts or none, self.in_parts or none
        self.own = np.array(own, np.int64).reshape(-1, 6)
        self.ghosts = np.array(ghosts, np.int64).reshape(-1, 6)
        self.tags = np.array(tags, np.int64).reshape(-1, 2)
        self.top = max((max(pair) for pair in tags), default=0)


def _tag(group: range, axis: int, side: int) -> int:
    return 6 * group.start + 2 * axis + side


def _moved(box: Box, planes: int) -> Box:
    """The box of another variable's grid."""
    z0, z1, *across = box
    y0, y1, x0, x1 = across
    return z0 + planes, z1 + planes, y0, y1, x0, x1


def _in_turn(meetings: Sequence[Meeting], place: Shape) -> list[Meeting]:
    """The faces in an order in which blocking sends and receives meet (see ``exchange.py``)."""

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
    if task.ahead != 0 and step == 0:
        post(task)
    elif task.calls >= 2 and task.ahead == 0:
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
    if task.ahead != 0 and step + 1 < task.steps:
        post(task)


class FaceTask(Faces):
    """Exchanges a whole face of the process for all its blocks."""

    def step(self, step: int) -> None:
        """Exchange the faces."""
        exchange(self, step, (self.begin + step) % 2, 0, self.groups)


class BlockTask(Faces):
    """A block: its boundary and its stencil."""

    def __init__(
        self,
        domain: Domain,
        groups: Sequence[range],
        box: Box,
        meetings: Sequence[Meeting],
        place: Shape,
        config: tpod.Config,
    ) -> None:
        super().__init__(domain, groups, box, meetings, place, config)
        self.fields = tuple(field.reshape(-1) for field in domain.fields)
        tables = [domain.tables(box, group) for group in groups]
        self.geometry = [geometry for geometry, _, _ in tables]
        self.walls = tables[0][1]
        self.lost = [lost for _, _, lost in tables]
        self.kernels_s = np.zeros(3)
        """Seconds of the kernels; wall and CPU seconds of the steps that were sampled."""


class InnerTask(BlockTask):
    """A block without messages."""

    def step(self, step: int) -> None:
        """Advance each group of variables."""
        for group in range(self.groups):
            advance(self, step, (self.begin + step) % 2, group)


class OuterTask(BlockTask):
    """A block with messages of its own."""

    def step(self, step: int) -> None:
        """Exchange and advance each group of variables in turn, or exchange all at once."""
        field = (self.begin + step) % 2
        if self.ahead != 0:
            exchange(self, step, field, 0, self.groups)
        for group in range(self.groups):
            if self.ahead == 0:
                exchange(self, step, field, group, group + 1)
            advance(self, step, field, group)


def advance(task: BlockTask, step: int, field: int, group: int) -> None:
    """The boundary's account and the stencil of a group of variables."""
    sampled = step % SAMPLE == 0
    cpu = task.ctx.cpu_seconds() if sampled else 0.0
    begin = task.ctx.seconds()
    old, new = task.fields[field], task.fields[1 - field]
    stencil.outflow(old, task.geometry[group], task.walls, task.lost[group])
    stencil.sweep(old, new, task.geometry[group])
    spent = task.ctx.seconds() - begin
    task.kernels_s[0] += spent
    if sampled:
        task.kernels_s[1] += spent
        task.kernels_s[2] += task.ctx.cpu_seconds() - cpu


class Decomposed:
    """The solver of one process; :meth:`solve` may be called again after the domain is reset."""

    def __init__(self, comm: Any, options: Options, layout: Layout) -> None:
        self._comm, self._layout = comm, layout
        self._config, self._groups = options.tpod, options.groups
        self.domain = Domain(layout.size, *layout.block(comm.rank), options.variables)
        x, y, z = self.domain.cells
        self._blocks = tpod.over_decompose((x, y, z), options.tpod.edge)
        self._place = coordinates(comm.rank, layout.processes)
        self._remote = [(f.axis, f.side, f.process) for f in layout.faces(comm.rank, 0)]
        self._inner = [self._block(number) for number in range(self._blocks.count)]
        self._faces = self._face_tasks() if self._config.messages == "face" else []

    def solve(self, steps: int) -> Timed:
        """Time the steps on this process, after a barrier."""
        config = self._config
        runtime = tpod.Tpod(self._comm, config)
        for task in (*self._inner, *self._faces):
            task.begin, task.steps = self.domain.current, steps
            runtime.spawn(task)
        faces = [(axis, side) for axis, side, _ in self._remote]
        order = tpod.ordered(self._blocks, faces, config.order, config.seed)
        count = len(self._inner)
        runtime.run(steps, [*range(count, count + len(self._faces)), *order])
        runtime.finalize()
        self.domain.current = (self.domain.current + steps) % 2
        kernels_s = np.array([task.kernels_s for task in self._inner])
        _, sampled, cpu = kernels_s.sum(axis=0).tolist()
        meters = [meter_of(times, sampled, cpu) for times in runtime.times]
        seconds = kernels_s[:, 0].tolist()
        return Timed(runtime.exec_time, meters, seconds, runtime.messages, runtime.bytes)

    def _block(self, number: int) -> BlockTask:
        blocks, domain = self._blocks, self.domain
        bounds = blocks.bounds(number)
        box = box_within([(low + DEPTH, high + DEPTH) for low, high in bounds])
        meetings = [
            (axis, side, (process, blocks.across(number, axis, side)))
            for axis, side, process in self._remote
            if self._config.messages == "block" and blocks.beside(number, axis, side) is None
        ]
        kind = OuterTask if meetings else InnerTask
        task = kind(domain, self._groups, box, meetings, self._place, self._config)
        task.after = blocks.neighbours(number)
        return task

    def _face_tasks(self) -> list[FaceTask]:
        """A task for each face of the process that another one is behind."""
        found: list[FaceTask] = []
        count = len(self._inner)
        for axis, side, process in self._remote:
            there = [(f.axis, f.side) for f in self._layout.faces(process, 0)]
            partner = process, count + there.index((axis, 1 - side))
            task = FaceTask(
                *(self.domain, self._groups, self.domain.whole),
                *([(axis, side, partner)], self._place, self._config),
            )
            for number, block in enumerate(self._inner):
                if self._blocks.beside(number, axis, side) is None:
                    block.same.append(count + len(found))
                    task.after.append(number)
            found.append(task)
        return found
