"""Barriers, local broadcast and collectives over all ranks, as methods of a rank's context.

The data pass through process-wide buffers in the order of processes and local ids; the rank map
puts them into the order of global ranks.

In an operation the ranks of a process meet; the last one to arrive acts for the process, with one
non-blocking MPI operation that is polled like any message. No worker blocks, and other ranks
continue.
"""

from __future__ import annotations

import types
from collections.abc import Generator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.runtimes.mate.errors import MateError
from runner.runtimes.mate.messages import MessageLayer, Messages
from runner.runtimes.mate.scheduler_interface import SchedulingCore
from runner.runtimes.mate.task import Request, Task

Array = NDArray[Any]

_LOCAL_OPS: dict[str, Any] = {
    "sum": np.add,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


class Collectives(Messages):
    """The collective operations; every rank must call the same operations in the same order."""

    def __init__(self, task: Task, layer: MessageLayer, calls: CollectiveCalls) -> None:
        super().__init__(task, layer)
        self._calls = calls

    async def local_barrier(self) -> None:
        """Wait until all ranks of this process have arrived."""
        call, last = self._calls.join(self._task, LOCAL, "local_barrier", None)
        if last:
            self._calls.close(call)
        else:
            await until_complete(call)

    async def local_bcast(self, value: Any = None, root: int = 0) -> Any:
        """The object that local rank ``root`` passed: the object itself, not a copy."""
        self._check_root(root, len(self._scheduler.tasks), "local rank")
        call, last = self._calls.join(self._task, LOCAL, f"local_bcast({root})", value)
        if last:
            self._calls.close(call)
        else:
            await until_complete(call)
        return call.operands[root]

    async def barrier(self) -> None:
        """Wait until all ranks of the job have arrived."""
        call, last = self._calls.join(self._task, GLOBAL, "barrier", None)
        await self._act(call, last, "Ibarrier", None, None)

    async def bcast(self, array: Array, root: int = 0) -> None:
        """Copy ``array`` of rank ``root`` into that of all ranks (equal sizes)."""
        process, local = self._locate(root)
        call, last = self._arrive(f"bcast({root})", _flat(array, "array"))
        # A separate buffer: the sender may change its array while slower ranks still copy.
        giver = local if process == self._transport.process else 0
        buffer = call.operands[giver].copy() if last else None
        await self._act(call, last, "Ibcast", buffer, buffer, process)
        if self._task.rank != root:
            _flat(array, "array")[...] = call.result

    async def reduce(
        self, send: Array, recv: Array | None = None, op: Any = "sum", root: int = 0
    ) -> None:
        """Reduce all ranks' ``send`` elementwise by ``op`` into ``recv`` of rank ``root``."""
        process, local = self._locate(root)
        if self._task.rank == root and recv is None:
            raise MateError(
                f"reduce: rank {root} is the root and needs an array to receive into",
                code="mate.collective",
            )
        operands = (_flat(send, "send"), None if recv is None else _flat(recv, "recv"))
        call, last = self._arrive(f"reduce({root})", operands)
        result = self._combine([g[0] for g in call.operands], op) if last else None
        is_root = last and process == self._transport.process
        target = call.operands[local][1] if is_root else None
        await self._act(call, last, "Ireduce", result, target, self._mpi_op(op), process)

    async def allreduce(self, send: Array, recv: Array, op: Any = "sum") -> None:
        """Reduce every ``send`` elementwise by ``op`` into every ``recv`` (may be ``send``)."""
        mine = _flat(recv, "recv")
        call, last = self._arrive("allreduce", _flat(send, "send"))
        result = self._combine(call.operands, op) if last else None
        target = None if result is None else np.empty_like(result)
        await self._act(call, last, "Iallreduce", result, target, self._mpi_op(op))
        mine[...] = call.result

    async def gather(self, send: Array, recv: Array | None = None, root: int = 0) -> None:
        """Gather each ``send`` (n elements) into ``root``'s ``recv`` (size * n, by global rank)."""
        process, _ = self._locate(root)
        if self._task.rank == root and recv is None:
            raise MateError(
                f"gather: rank {root} is the root and needs an array to receive into",
                code="mate.collective",
            )
        mine = _flat(send, "send")
        call, last = self._arrive(f"gather({root})", mine)
        is_root = process == self._transport.process
        source = np.concatenate(call.operands) if last else None
        target = [np.empty(mine.size * self._ranks.size, mine.dtype), self._counts(mine.size)]
        await self._act(call, last, "Igatherv", source, target if is_root else None, process)
        if self._task.rank == root and recv is not None:
            _flat(recv, "recv").reshape(self._ranks.size, -1)[self._ranks.order] = (
                call.result.reshape(self._ranks.size, -1)
            )

    async def scatter(self, send: Array | None, recv: Array, root: int = 0) -> None:
        """Copy part ``r`` of ``root``'s ``send`` into global rank ``r``'s ``recv`` (n elements)."""
        process, local = self._locate(root)
        mine = _flat(recv, "recv")
        if self._task.rank == root and send is None:
            raise MateError(
                f"scatter: rank {root} is the root and needs an array to send",
                code="mate.collective",
            )
        operand = None if send is None else _flat(send, "send")
        call, last = self._arrive(f"scatter({root})", operand)
        source = None
        if last and process == self._transport.process:
            whole = call.operands[local].reshape(self._ranks.size, -1)[self._ranks.order]
            source = [whole.reshape(-1), self._counts(mine.size)]
        target = np.empty(mine.size * len(call.operands), mine.dtype)
        await self._act(call, last, "Iscatterv", source, target, process)
        mine[...] = call.result.reshape(len(call.operands), -1)[self._task.local]

    async def allgather(self, send: Array, recv: Array) -> None:
        """Gather every ``send`` (n elements) into every ``recv`` (size * n, by global rank)."""
        await self.allgatherv(send, recv, [send.size] * self._ranks.size)

    async def allgatherv(self, send: Array, recv: Array, counts: Sequence[int]) -> None:
        """Gather all ranks' ``send`` into every ``recv``: ``counts[r]`` elements of rank ``r``."""
        mine = _flat(send, "send")
        if len(counts) != self._ranks.size or counts[self._task.rank] != mine.size:
            raise MateError(
                f"allgatherv: rank {self._task.rank} sends {mine.size} elements, but counts is "
                f"{list(counts)}: expected one number for each of {self._ranks.size} ranks",
                code="mate.collective",
            )
        call, last = self._arrive("allgatherv", mine)
        per_process = [sum(counts[r] for r in ranks) for ranks in self._ranks.ranks]
        source = np.concatenate(call.operands) if last else None
        target = [np.empty(sum(counts), mine.dtype), per_process]
        await self._act(call, last, "Iallgatherv", source, target)
        into, begin = _flat(recv, "recv"), np.concatenate(([0], np.cumsum(counts)))
        place = 0
        for rank in self._ranks.order:
            count = counts[rank]
            into[begin[rank] : begin[rank] + count] = call.result[place : place + count]
            place += count

    def _arrive(self, kind: str, operand: Any) -> tuple[CollectiveCall, bool]:
        return self._calls.join(self._task, GLOBAL, kind, operand)

    async def _act(
        self, call: CollectiveCall, last: bool, name: str, source: Any, target: Any, *args: Any
    ) -> None:
        """The last rank performs the process's part; the others wait for it."""
        if not last:
            await until_complete(call)
            return
        request = Request(self._task, None, None, None, None)
        self._task.message_count += 1
        self._transport.collective(request, name, source, target, *args)
        await self.wait(request)
        self._calls.close(call, target[0] if isinstance(target, list) else target)

    @property
    def _ranks(self) -> Any:
        return self._layer.ranks

    def _counts(self, each: int) -> list[int]:
        """The elements of each process if every rank has ``each``."""
        return [each * len(ranks) for ranks in self._ranks.ranks]

    def _locate(self, root: int) -> tuple[int, int]:
        self._check_root(root, self._ranks.size, "rank")
        process, local = self._ranks.locations[root]
        return process, local

    def _check_root(self, root: int, count: int, what: str) -> None:
        if not 0 <= root < count:
            raise MateError(
                f"root {root}: this {what} does not exist; expected 0 to {count - 1}",
                code="mate.collective",
            )

    def _combine(self, arrays: list[Array], op: Any) -> Array:
        """``op`` over the local ranks in the order of their ids: equal runs give equal bits."""
        result = arrays[0].copy()
        for array in arrays[1:]:
            if isinstance(op, str):
                self._local_op(op)(result, array, out=result)
            else:
                op.Reduce_local(array, result)
        return result

    def _local_op(self, op: str) -> Any:
        if op not in _LOCAL_OPS:
            raise MateError(
                f"op {op!r}: expected one of {', '.join(_LOCAL_OPS)}, or an MPI.Op",
                code="mate.collective",
            )
        return _LOCAL_OPS[op]

    def _mpi_op(self, op: Any) -> Any:
        if isinstance(op, str):
            self._local_op(op)
            return self._transport.operation(op)
        if not op.Is_commutative():
            raise MateError(
                "a reduction needs a commutative operation: local ranks come first",
                code="mate.collective",
            )
        return op


def _flat(array: Array, what: str) -> Array:
    """A contiguous array as one dimension, without a copy."""
    if not isinstance(array, np.ndarray) or not array.flags.c_contiguous:
        raise MateError(
            f"{what}: a collective needs a contiguous numpy array", code="mate.collective"
        )
    return array.reshape(-1)


LOCAL, GLOBAL = 0, 1


class CollectiveCall:
    """One collective operation of the ranks of a process."""

    def __init__(self, kind: str, count: int) -> None:
        self.kind = kind
        self.operands: list[Any] = [None] * count
        """The data that each local rank passed."""
        self.arrivals: list[Task] = []
        self.over = False
        self.result: Any = None

    def describe(self) -> str:
        ranks = ", ".join(map(str, sorted(t.rank for t in self.arrivals)[:8]))
        more = ", ..." if len(self.arrivals) > 8 else ""
        counts = f"{len(self.arrivals)} of {len(self.operands)}"
        return f"{self.kind}: {counts} local ranks came ({ranks}{more})"


class CollectiveCalls:
    """All unfinished operations of a process."""

    def __init__(self, scheduler: SchedulingCore) -> None:
        self._scheduler = scheduler
        self._open: dict[tuple[int, int], CollectiveCall] = {}

    def join(self, task: Task, scope: int, kind: str, operand: Any) -> tuple[CollectiveCall, bool]:
        """Join the rank's next operation; True for the last rank, which must :meth:`close` it.

        Raises :class:`MateError` if another rank is in another operation.
        """
        scheduler = self._scheduler
        with scheduler.lock:
            number = task.sequence[scope]
            task.sequence[scope] += 1
            call = self._open.get((scope, number))
            if call is None:
                call = self._open[scope, number] = CollectiveCall(kind, len(scheduler.tasks))
            elif call.kind != kind:
                raise MateError(
                    f"rank {task.rank} is in {kind}, but rank {call.arrivals[0].rank} in "
                    f"{call.kind}: all ranks must call the same operations in the same order",
                    code="mate.collective",
                )
            call.operands[task.local] = operand
            call.arrivals.append(task)
            last = len(call.arrivals) == len(call.operands)
            if last:
                del self._open[scope, number]
            else:
                task.blocker = call
            return call, last

    def close(self, call: CollectiveCall, result: Any = None) -> None:
        """Let all ranks of the operation continue."""
        scheduler = self._scheduler
        with scheduler.lock:
            call.result = result
            call.over = True
            for task in call.arrivals[:-1]:
                task.blocker = None
                scheduler.wake(task)
            scheduler.call_workers()


@types.coroutine
def until_complete(call: CollectiveCall) -> Generator[None, None, None]:
    """Wait until a rank closes the operation."""
    while not call.over:
        yield
