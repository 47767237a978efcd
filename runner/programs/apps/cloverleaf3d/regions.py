"""The regions of a rank: functions in the dialect of compiled regions.

``part`` is a :class:`runner.programs.apps.cloverleaf3d.part.Part`. An iteration ``i`` is one stage
of the exchange after one kernel: with S stages (one for each divided axis), ``i // S`` counts
kernels and ``i % S`` stages. The methods of the part do the same for Python, by the kernels.
"""

from __future__ import annotations

from runner.programs.apps.cloverleaf3d import halo, hydro
from runner.programs.apps.cloverleaf3d.halo import PROCESS, RANK, WALL
from runner.programs.apps.cloverleaf3d.part import Part
from runner.programs.apps.cloverleaf3d.problem import PHASES
from runner.programs.apps.common.meter import SAMPLE


def compute(part: Part, i: int) -> None:
    """Run the kernels before stage ``i``, then copy this rank's layers into the ghosts of ranks of
    this process, and into the buffers of messages.
    """
    stage, phase = i % part.stages, i // part.stages % PHASES
    if stage == 0:
        if i > 0:
            _pass_on(part, part.stages, (phase + PHASES - 1) % PHASES)
        _kernels(part, i, phase)
    if i < part.last:
        _pass_on(part, stage, phase)


def _kernels(part: Part, i: int, phase: int) -> None:
    is_sample = i // part.stages % SAMPLE == 0
    cpu = part.ctx.cpu_seconds() if is_sample else 0.0
    begin = part.ctx.seconds()
    if phase == 0 and i > 0:
        hydro.run(part.lines, PHASES, part.geometry, part.factors)
    if i < part.last:
        hydro.run(part.lines, phase, part.geometry, part.factors)
    seconds = part.ctx.seconds() - begin
    part.kernels_s[0] += seconds
    if is_sample:
        part.kernels_s[1] += seconds
        part.kernels_s[2] += part.ctx.cpu_seconds() - cpu


def _pass_on(part: Part, stage: int, phase: int) -> None:
    """Copy the layers at the faces of the axes of a stage."""
    with part.ctx.buffering():
        for axis in range(part.first_axis[stage], part.first_axis[stage + 1]):
            for side in range(2):
                face = 2 * axis + side
                own = part.own[face]
                if part.behind[face] == WALL:
                    halo.reflect_face(
                        part.fields,
                        part.field_table,
                        phase,
                        own,
                        part.ghosts[face],
                        part.signs,
                        axis,
                    )
                elif part.behind[face] == RANK:
                    ghosts = part.ghosts_behind[face]
                    others = part.fields_behind[face]
                    halo.copy_face(part.fields, others, part.field_table, phase, own, ghosts)
                else:
                    buffer = part.send_buffers[part.place[face] * PHASES + phase]
                    halo.pack_face(part.fields, part.field_table, phase, own, buffer)


def receive(part: Part, i: int) -> None:
    """Start to receive the neighbours' layers."""
    if i < part.last:
        group = i % part.stages * PHASES + i // part.stages % PHASES
        for n in range(part.pieces[group], part.pieces[group + 1]):
            part.ctx.irecv(part.incoming[n], part.peers[n], part.incoming_tags[n])


def send(part: Part, i: int) -> None:
    """Start to send the buffers."""
    if i < part.last:
        group = i % part.stages * PHASES + i // part.stages % PHASES
        for n in range(part.pieces[group], part.pieces[group + 1]):
            part.ctx.isend(part.outgoing[n], part.peers[n], part.outgoing_tags[n])


def unpack(part: Part, i: int) -> None:
    """Copy received data into the ghosts."""
    if i < part.last and part.remote[i % part.stages] > 0:
        phase = i // part.stages % PHASES
        axis = part.first_axis[i % part.stages + 1] - 1
        with part.ctx.buffering():
            for face in range(2 * axis, 2 * axis + 2):
                if part.behind[face] == PROCESS:
                    buffer = part.receive_buffers[part.place[face] * PHASES + phase]
                    halo.unpack_face(
                        part.fields, part.field_table, phase, part.ghosts[face], buffer
                    )
