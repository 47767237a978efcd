"""Collectives of the ranks of one node (Ouyang 4.6); roots are local ranks."""

from __future__ import annotations

from runner.runtimes.intranode.mcoll import allreduce
from runner.runtimes.intranode.mcoll.plan import RECV, SEND, Plan


def bcast(plan: Plan, size: int, root: int) -> None:
    """The root copies to the node's memory, and the others from there."""
    buffer = plan.room(size)
    if plan.seat.local == root:
        plan.copy(buffer, SEND, size)
    plan.barrier()
    if plan.seat.local != root:
        plan.copy(RECV, buffer, size)


def gather(plan: Plan, size: int, root: int) -> None:
    """All write their slots, and the root copies them."""
    buffer = plan.room(size * plan.seat.locals)
    plan.copy(buffer.at(plan.seat.local * size), SEND, size)
    plan.barrier()
    if plan.seat.local == root:
        plan.copy(RECV, buffer, size * plan.seat.locals)


def reduce_binomial(plan: Plan, count: int, root: int) -> None:
    """:func:`reduce` by a tree of ranks."""
    reduce(plan, count, root, "binomial")


def reduce(plan: Plan, count: int, root: int, chunks: str = "p-way") -> None:
    """All ranks reduce, and the root copies the result."""
    result = plan.room(count * plan.item)
    allreduce.in_node(plan, result, count, chunks)
    if plan.seat.local == root:
        plan.copy(RECV, result, count * plan.item)
