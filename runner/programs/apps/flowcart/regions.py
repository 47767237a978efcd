"""The regions of a rank in one stage: functions in the dialect of compiled regions.

``part`` is a :class:`runner.programs.apps.flowcart.part.Part`. The iteration ``i`` counts the
stages of all cycles. The methods of the part do the same for Python, by the kernels.
"""

from __future__ import annotations

from runner.programs.apps.common.meter import SAMPLE
from runner.programs.apps.flowcart import cycle, multigrid
from runner.programs.apps.flowcart.part import Part
from runner.runtimes import mate

GRAPH = mate.Graph("flowcart")
"""A rank waits for its neighbours in the process and for the messages of other processes."""
LOCAL_GRAPH = mate.Graph("flowcart-alone")
"""The graph of a job of one process, which has no messages."""


def step(part: Part, i: int) -> None:
    """Compute a stage."""
    stage = i % cycle.COUNT
    is_sample = i % SAMPLE == 0
    cpu = part.ctx.cpu_seconds() if is_sample else 0.0
    begin = part.ctx.seconds()
    level, source = cycle.LEVEL[stage], cycle.SOURCE[stage]
    old = part.values[2 * level + source]
    if cycle.SMOOTHS[stage] != 0:
        new = part.values[2 * level + 1 - source]
        multigrid.smooth(
            old,
            new,
            part.right[level],
            part.table[level],
            part.work[level],
            part.bounds[4 * level],
            part.bounds[4 * level + 1],
        )
        if cycle.PROLONGS[stage] != 0:
            multigrid.prolong(
                new,
                part.values[2 * level - 2],
                part.parents[level - 1],
                part.bounds[4 * level - 4],
                part.bounds[4 * level - 3],
            )
    else:
        multigrid.restrict(
            old,
            part.right[level],
            part.table[level],
            part.parents[level],
            part.values[2 * level + 2],
            part.right[level + 1],
            part.bounds[4 * level],
            part.bounds[4 * level + 1],
            part.bounds[4 * level + 4 : 4 * level + 8],
        )
    seconds = part.ctx.seconds() - begin
    part.kernels_s[0] += seconds
    if is_sample:
        part.kernels_s[1] += seconds
        part.kernels_s[2] += part.ctx.cpu_seconds() - cpu


@GRAPH.region(depends=["compute*"], compiled=True)
def receive(part: Part, i: int) -> None:
    """Start to receive the ghosts of the next stage, which no stage reads any more."""
    which = cycle.EXCHANGE_ARRAYS[i % cycle.COUNT]
    if which >= 0:
        for n in range(part.receive_starts[which], part.receive_starts[which + 1]):
            part.ctx.irecv(part.ghosts[n], part.sources[n], which // 2)


@GRAPH.region(depends=["compute", "send*"], compiled=True)
def pack(part: Part, i: int) -> None:
    """Copy the new values that others need into the buffers."""
    which = cycle.EXCHANGE_ARRAYS[i % cycle.COUNT]
    if which >= 0 and len(part.send_buffers) > 0:
        with part.ctx.buffering():
            for n in range(part.send_starts[which // 2], part.send_starts[which // 2 + 1]):
                multigrid.gather(part.values[which], part.places[n], part.send_buffers[n])


@GRAPH.region(depends=["pack"], compiled=True)
def send(part: Part, i: int) -> None:
    """Start to send the buffers."""
    which = cycle.EXCHANGE_ARRAYS[i % cycle.COUNT]
    if which >= 0:
        for n in range(part.send_starts[which // 2], part.send_starts[which // 2 + 1]):
            part.ctx.isend(part.send_buffers[n], part.targets[n], which // 2)


@GRAPH.region(depends=["receive*", "pack*", "compute*@"], compiled=True)
def compute(part: Part, i: int) -> None:
    """Compute a stage once the neighbours have finished the previous stage."""
    step(part, i)


@LOCAL_GRAPH.region("compute", depends=["compute*@"], compiled=True)
def compute_locally(part: Part, i: int) -> None:
    """Like :func:`compute`, without messages."""
    step(part, i)
