"""The regions of a rank: functions in the dialect of compiled regions.

``part`` is a :class:`runner.programs.apps.cannon.part.Part`. Iteration ``i`` has ``part.group``
steps of the algorithm. Blocks of A and B are numbered along their line: a rank at place ``p``
multiplies block ``p + s`` in step ``s``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runner.programs.apps.common.meter import SAMPLE
from runner.runtimes.core import library

if TYPE_CHECKING:
    from runner.programs.apps.cannon.part import Part


def send(part: Part, i: int) -> None:
    """Send the rank's blocks of this iteration to the process before this one."""
    if part.target_a >= 0:
        block = part.first_a + (i * part.group + part.place_a) % part.ring_a
        _send(part, part.flat_a[block], part.target_a, 0)
    if part.target_b >= 0:
        block = part.first_b + (i * part.group + part.place_b) % part.ring_b
        _send(part, part.flat_b[block], part.target_b, 1)


def _send(part: Part, block: Any, target: int, tag: int) -> None:
    for n in range(len(part.cuts) - 1):
        part.ctx.isend(block[part.cuts[n] : part.cuts[n + 1]], target, tag)


def receive(part: Part, i: int) -> None:
    """Receive the rank's blocks that the process after this one sends in this iteration."""
    if part.target_a >= 0:
        number = part.length_a + i * part.group + part.place_a
        block = part.first_a + number % part.ring_a
        _receive(part, part.flat_a[block], part.source_a, 0)
    if part.target_b >= 0:
        number = part.length_b + i * part.group + part.place_b
        block = part.first_b + number % part.ring_b
        _receive(part, part.flat_b[block], part.source_b, 1)


def _receive(part: Part, block: Any, source: int, tag: int) -> None:
    for n in range(len(part.cuts) - 1):
        part.ctx.irecv(block[part.cuts[n] : part.cuts[n + 1]], source, tag)


def multiply(part: Part, i: int, first: int, last: int) -> None:
    """Add the products of the steps ``first`` to ``last - 1`` of this iteration to C."""
    if first < last:
        is_sample = i % SAMPLE == 0
        cpu = part.ctx.cpu_seconds() if is_sample else 0.0
        begin = part.ctx.seconds()
        for step in range(i * part.group + first, i * part.group + last):
            a = part.a[part.first_a + (part.place_a + step) % part.ring_a]
            b = part.b[part.first_b + (part.place_b + step) % part.ring_b]
            library.add_product(part.dgemm, a, b, part.c)
        duration_s = part.ctx.seconds() - begin
        part.kernels_s[0] += duration_s
        if is_sample:
            part.kernels_s[1] += duration_s
            part.kernels_s[2] += part.ctx.cpu_seconds() - cpu
