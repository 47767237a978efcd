"""The rule of graphs in compiled code: which region may run (Martin 2018, chapter 4).

Region R may run when ``done(X) >= done(R) + lead`` for each region X that it depends on, with
``lead`` 1 or 0 (the previous iteration). Each such edge holds ``done(X) - done(R) - lead``. X adds
1 when it finishes; if the value was -1, the edge is now met and R has one unmet dependency less.
When R finishes, it marks all dependencies as unmet, subtracts 1 from each edge, and removes the
dependencies already met. Whoever removes the last one makes R ready. So every step is one atomic
operation on one word.

A region holds one more dependency on itself while it runs, and while its rank is not in the graph
(the gate).
"""

from __future__ import annotations

from runner.runtimes.core.atomic import (
    add,
    exchange,
    inner,
    keep_bits,
    load,
    load_real,
    lowest,
    peek,
    put,
    set_bits,
    store,
    store_real,
    swap_if,
)
from runner.runtimes.core.clock import now
from runner.runtimes.core.dice import draw
from runner.runtimes.core.queue import lock, unlock, wake
from runner.runtimes.core.words import (
    BITS,
    CLOSED,
    CLOSING,
    CORE,
    EDGE,
    EVENT,
    FINISH,
    LINE,
    LOG_FULL,
    NODE,
    OPEN,
    PART,
    RANK,
    REQUEST,
    START,
    WAITS,
    WORKER,
)


@inner
def fail(core: int, code: int, rank: int, a: int, b: int, c: int) -> None:
    """Keep the first error and stop; a worker reports it to Python."""
    if swap_if(core + CORE.failed, 0, -1) != 0:
        store(core + CORE.failed_rank, rank)
        store(core + CORE.failed_a, a)
        store(core + CORE.failed_b, b)
        store(core + CORE.failed_c, c)
        put(core + CORE.failed, code)
        add(core + CORE.stop, 1)


@inner
def note(core: int, worker: int, kind: int, node: int, posted: int) -> None:
    """Record an event; records are in the order in which they took effect.

    A finish is recorded before others can see it, a start after its dependencies were seen. A log
    that may end early is for time lines, which need neither finishes nor requests.
    """
    if load(core + CORE.log) == 0:
        return
    if REQUEST <= kind <= FINISH and load(core + CORE.log_ends) != 0:
        return
    number = add(core + CORE.log_count, 1)
    if number >= load(core + CORE.log_space):
        if load(core + CORE.log_ends) == 0:
            fail(core, LOG_FULL, 0, load(core + CORE.log_space), 0, 0)
        return
    event = load(core + CORE.log) + number * EVENT.size
    store_real(event + EVENT.time, now(core, worker))
    store(event + EVENT.rank, load(load(node + NODE.rank) + RANK.local))
    store(event + EVENT.node, load(node + NODE.number))
    store(event + EVENT.execution, load(node + NODE.done))
    store(event + EVENT.worker, load(worker + WORKER.number))
    store(event + EVENT.posted, posted)
    put(event + EVENT.kind, kind)


@inner
def make_ready(core: int, worker: int, node: int) -> None:
    """The last dependency of a region is met."""
    set_bits(load(node + NODE.word), load(node + NODE.bit))
    rank = load(node + NODE.rank)
    if rank != load(worker + WORKER.rank):
        wake(core, rank, load(node + NODE.urgent))


@inner
def choose(core: int, worker: int, part: int) -> int:
    """The ready region to run now, the first by priority; 0 if there is none."""
    place = part + PART.size
    end = place + LINE * load(part + PART.words)
    number = 0
    while place < end:
        bits = peek(place)
        while bits != 0:
            at = lowest(bits)
            if load(core + CORE.random) != 0:
                at = _any_bit(worker, bits)
            keep_bits(place, ~(1 << at))
            node = load(part + PART.nodes) + (number + at) * NODE.size
            # A neighbour registered meanwhile may have added a dependency.
            if peek(node + NODE.unmet) == 0:
                put(node + NODE.unmet, 1)
                note(core, worker, START, node, 0)
                return node
            bits = peek(place)
        number += BITS
        place += LINE
    return 0


@inner
def _any_bit(worker: int, bits: int) -> int:
    count, rest = 0, bits
    while rest != 0:
        rest &= rest - 1
        count += 1
    skip = draw(worker + WORKER.dice, count)
    while skip > 0:
        bits &= bits - 1
        skip -= 1
    return lowest(bits)


@inner
def end_body(core: int, worker: int, part: int, node: int) -> None:
    """The region's function has returned; it finishes once its messages are complete."""
    left = load(node + NODE.remaining) - 1
    store(node + NODE.remaining, left)
    store(node + NODE.iteration, load(node + NODE.iteration) + load(node + NODE.step))
    store(part + PART.bodies_left, load(part + PART.bodies_left) - 1)
    if left == 0:
        put(node + NODE.gate, CLOSING)
    posted = load(node + NODE.posted)
    if posted != 0 and add(node + NODE.pending, posted) + posted != 0:
        return
    finish(core, worker, node)


@inner
def requests_done(core: int, worker: int, node: int, count: int) -> None:
    """Some of the region's messages are complete."""
    before = add(node + NODE.pending, -count)
    if before == count:
        finish(core, worker, node)
    elif before == WAITS + count:
        wake(core, load(node + NODE.rank), 0)


@inner
def finish(core: int, worker: int, node: int) -> None:
    """Count the execution and notify every region that waited for exactly this one."""
    lock(core, node + NODE.lock)
    note(core, worker, FINISH, node, 0)
    store(node + NODE.done, load(node + NODE.done) + 1)
    _await_next(core, worker, node)
    edge = load(node + NODE.outputs)
    while edge != 0:
        if add(edge + EDGE.value, 1) == -1:
            target = load(edge + EDGE.target)
            if add(target + NODE.unmet, -1) == 1:
                make_ready(core, worker, target)
        edge = load(edge + EDGE.next_output)
    unlock(node + NODE.lock)
    part, rank = load(node + NODE.part), load(node + NODE.rank)
    if rank == load(worker + WORKER.rank):
        store(part + PART.here, load(part + PART.here) + 1)
    else:
        add(part + PART.away, 1)
        # The rank may have nothing left to do except leave the graph.
        wake(core, rank, 0)


@inner
def _await_next(core: int, worker: int, node: int) -> None:
    """Set the dependencies of the region's next execution.

    All edges first count as unmet, so that the region cannot start between two steps.
    """
    fan_in = load(node + NODE.fan_in)
    if peek(node + NODE.unmet) == 1:
        put(node + NODE.unmet, fan_in + 1)
    else:
        # Neighbours registered while it ran have dependencies that already count.
        add(node + NODE.unmet, fan_in)
    settled = 1
    edge = load(node + NODE.inputs)
    while edge != 0:
        if add(edge + EDGE.value, -1) != 0:
            settled += 1
        edge = load(edge + EDGE.next_input)
    if peek(node + NODE.gate) != OPEN and swap_if(node + NODE.gate, CLOSING, CLOSED) != 0:
        settled -= 1
    if settled != 0 and add(node + NODE.unmet, -settled) == settled:
        make_ready(core, worker, node)


@inner
def enter_part(
    core: int, worker: int, part: int, count: int, first: int, step: int, lazy: int
) -> None:
    """The rank enters the graph: each region will run ``count`` times."""
    nodes = load(part + PART.count)
    put(part + PART.lazy, lazy)
    store(part + PART.bodies_left, nodes * count)
    store(part + PART.total, load(part + PART.total) + nodes * count)
    if count == 0:
        return
    number = 0
    while number < nodes:
        node = load(part + PART.nodes) + number * NODE.size
        store(node + NODE.iteration, first)
        store(node + NODE.step, step)
        store(node + NODE.remaining, count)
        if exchange(node + NODE.gate, OPEN) == CLOSED and add(node + NODE.unmet, -1) == 1:
            make_ready(core, worker, node)
        number += 1


@inner
def part_over(part: int) -> bool:
    """True if the rank may leave the graph."""
    if load(part + PART.bodies_left) != 0:
        return False
    if load(part + PART.lazy) != 0:
        return True
    return load(part + PART.here) + peek(part + PART.away) == load(part + PART.total)


@inner
def link_nodes(core: int, edge: int, target: int, source: int, lead: int) -> None:
    """Make a region depend on another one; the edge's record is new."""
    first, second = min(target, source), max(target, source)
    lock(core, first + NODE.lock)
    if second != first:
        lock(core, second + NODE.lock)
    value = load(source + NODE.done) - load(target + NODE.done) - lead
    store(edge + EDGE.value, value)
    store(edge + EDGE.source, source)
    store(edge + EDGE.target, target)
    store(edge + EDGE.next_output, load(source + NODE.outputs))
    store(source + NODE.outputs, edge)
    store(edge + EDGE.next_input, load(target + NODE.inputs))
    store(target + NODE.inputs, edge)
    store(target + NODE.fan_in, load(target + NODE.fan_in) + 1)
    if value < 0:
        add(target + NODE.unmet, 1)
        keep_bits(load(target + NODE.word), ~load(target + NODE.bit))
    if second != first:
        unlock(second + NODE.lock)
    unlock(first + NODE.lock)


@inner
def begin_turn(rank: int, worker: int) -> None:
    """From now on, the worker's compute time belongs to the rank."""
    spent = load_real(worker + WORKER.compute)
    store_real(worker + WORKER.turn, load_real(rank + RANK.compute) - spent)


@inner
def count_turn(rank: int, worker: int) -> None:
    """Count the compute time of the worker's turn for the rank."""
    spent = load_real(worker + WORKER.compute)
    store_real(rank + RANK.compute, load_real(worker + WORKER.turn) + spent)
