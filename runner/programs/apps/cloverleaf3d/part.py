"""One rank on MATE: its block, what is behind its faces, its buffers and messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runner.programs.apps.cloverleaf3d.block import Block, Call, Fields
from runner.programs.apps.cloverleaf3d.halo import FACES, PROCESS, RANK, WALL
from runner.programs.apps.cloverleaf3d.problem import PHASES
from runner.programs.apps.common.layout import Face, Layout
from runner.programs.apps.common.meter import SAMPLE
from runner.runtimes import mate


class Part:
    """The public attributes are what compiled regions use (:mod:`.regions`).

    The methods do the same work in Python. An exchange has one stage for each axis divided anywhere
    in the grid: stage ``s`` handles the axes ``first_axis[s] .. first_axis[s + 1] - 1``, and only
    the last of them has neighbours. The axes after the last stage are handled before the next
    kernel.
    """

    ctx: mate.Context

    def __init__(self, layout: Layout, process: int, local: int, split: int) -> None:
        self.block = block = Block(layout.size, *layout.part(process, local))
        self._layout, self._split = layout, split
        self._faces = {2 * f.axis + f.side: f for f in layout.faces(process, local)}
        self.behind = [
            WALL if face is None else RANK if face.process == process else PROCESS
            for face in map(self._faces.get, range(FACES))
        ]
        self.local = [self._faces[n].local for n in range(FACES) if self.behind[n] == RANK]
        """Local ranks behind the faces."""
        self.fields, self.geometry, self.factors = block.fields, block.geometry, block.factors
        self.lines = block.fields.reshape(len(block.fields), -1)
        self.field_table, self.signs = block.field_table, block.signs
        self.own, self.ghosts = block.own, block.ghosts
        cut = [a for a in range(3) if layout.processes[a] * layout.local[a] > 1] or [2]
        self.stages = len(cut)
        self.first_axis = [0, *(axis + 1 for axis in cut), 3]
        self.last = 0
        """The iteration after the last exchange; set before the graph is entered."""
        self.kernels_s = np.zeros(3)
        """Seconds of the rank's kernels; wall and CPU seconds of the sampled ones."""
        self._make_messages(cut)

    def _make_messages(self, cut: Sequence[int]) -> None:
        remote = [face for face in range(FACES) if self.behind[face] == PROCESS]
        self.place = [remote.index(face) if face in remote else 0 for face in range(FACES)]
        """Where the buffers of a face start, in groups of one for each phase."""
        self.send_buffers, self.receive_buffers = (
            [self.block.buffer(phase, face) for face in remote for phase in range(PHASES)]
            for _ in range(2)
        )
        self.remote = [sum(face // 2 == axis for face in remote) for axis in cut]
        """Messages of each stage."""
        self.pieces = [0]
        """Where the pieces of stage s and phase p start: ``pieces[s * PHASES + p]``."""
        self.outgoing: list[Fields] = []
        self.incoming: list[Fields] = []
        self.peers: list[int] = []
        self.outgoing_tags: list[int] = []
        self.incoming_tags: list[int] = []
        for axis in cut:
            for phase in range(PHASES):
                for face in (f for f in remote if f // 2 == axis):
                    self._add_message(phase, face)
                self.pieces.append(len(self.outgoing))

    def _add_message(self, phase: int, face: int) -> None:
        at = self.place[face] * PHASES + phase
        outgoing = mate.pieces(self.send_buffers[at], self._split)
        incoming = mate.pieces(self.receive_buffers[at], self._split)
        self.outgoing += outgoing
        self.incoming += incoming
        self.peers += [self._rank(self._faces[face])] * len(outgoing)
        # A message is identified by the face through which it left its sender.
        self.outgoing_tags += [face] * len(outgoing)
        self.incoming_tags += [face ^ 1] * len(outgoing)

    def _rank(self, face: Face) -> int:
        return face.process * self._layout.local_count + face.local

    def connect(self, parts: Sequence[Part]) -> None:
        """Find the neighbours in this process; ``parts`` are its ranks."""
        near = [
            parts[self._faces[face].local].block if self.behind[face] == RANK else self.block
            for face in range(FACES)
        ]
        self.fields_behind = [block.fields for block in near]
        self.ghosts_behind = np.array([near[face].ghosts[face ^ 1] for face in range(FACES)])
        self._copies = [
            [self._copy(phase, face, near[face]) for phase in range(PHASES)]
            for face in range(FACES)
        ]
        self._unpacks: dict[tuple[int, int], Call] = {}
        for face in range(FACES):
            if self.behind[face] == PROCESS:
                for phase in range(PHASES):
                    buffer = self.receive_buffers[self.place[face] * PHASES + phase]
                    self._unpacks[face, phase] = self.block.unpacker(phase, face, buffer)

    def _copy(self, phase: int, face: int, other: Block) -> Call:
        if self.behind[face] == WALL:
            return self.block.reflector(phase, face)
        if self.behind[face] == RANK:
            return self.block.copier(phase, face, other)
        return self.block.packer(phase, face, self.send_buffers[self.place[face] * PHASES + phase])

    def compute(self, i: int) -> None:
        """Run the kernels before stage ``i``, then send the layers on their way."""
        stage, phase = i % self.stages, i // self.stages % PHASES
        if stage == 0:
            if i > 0:
                self._pass_on(self.stages, (phase + PHASES - 1) % PHASES)
            self._time_kernels(i, lambda: self._kernels(i, phase))
        if i < self.last:
            self._pass_on(stage, phase)

    def _kernels(self, i: int, phase: int) -> None:
        if phase == 0 and i > 0:
            self.block.run(PHASES)
        if i < self.last:
            self.block.run(phase)

    def _time_kernels(self, i: int, kernels: Callable[[], None]) -> None:
        is_sample = i // self.stages % SAMPLE == 0
        cpu = self.ctx.cpu_seconds() if is_sample else 0.0
        begin = self.ctx.seconds()
        kernels()
        seconds = self.ctx.seconds() - begin
        self.kernels_s[0] += seconds
        if is_sample:
            self.kernels_s[1:] += seconds, self.ctx.cpu_seconds() - cpu

    def _pass_on(self, stage: int, phase: int) -> None:
        with self.ctx.buffering():
            for face in range(2 * self.first_axis[stage], 2 * self.first_axis[stage + 1]):
                self._copies[face][phase]()

    def _messages(self, i: int) -> range:
        if i >= self.last:
            return range(0)
        group = i % self.stages * PHASES + i // self.stages % PHASES
        return range(self.pieces[group], self.pieces[group + 1])

    def receive(self, i: int) -> None:
        """Start to receive the neighbours' layers."""
        for n in self._messages(i):
            self.ctx.irecv(self.incoming[n], self.peers[n], self.incoming_tags[n])

    def send(self, i: int) -> None:
        """Start to send the buffers."""
        for n in self._messages(i):
            self.ctx.isend(self.outgoing[n], self.peers[n], self.outgoing_tags[n])

    def unpack(self, i: int) -> None:
        """Copy received data into the ghosts."""
        if i < self.last and self.remote[i % self.stages]:
            axis = self.first_axis[i % self.stages + 1] - 1
            phase = i // self.stages % PHASES
            with self.ctx.buffering():
                for face in (2 * axis, 2 * axis + 1):
                    if self.behind[face] == PROCESS:
                        self._unpacks[face, phase]()


BODIES: dict[str, Callable[[Part, int], Any]] = {
    "compute": Part.compute,
    "receive": Part.receive,
    "send": Part.send,
    "unpack": Part.unpack,
}
"""The regions for Python: by the kernels, because a stencil in plain Python takes hours."""
