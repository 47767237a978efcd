"""The interface for programs: collectives, immediate or prepared."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.runtimes.core.kernels import load
from runner.runtimes.core.machine_code import address_of
from runner.runtimes.core.memory import Memory
from runner.runtimes.core.mpi_table import function_address
from runner.runtimes.intranode.errors import ConfigError, IntranodeError
from runner.runtimes.intranode.mcoll import allgather, allreduce, in_node, scatter
from runner.runtimes.intranode.mcoll.config import MCOLL, Config
from runner.runtimes.intranode.mcoll.kinds import code_of, mpi_operation, operation_of
from runner.runtimes.intranode.mcoll.plan import Plan
from runner.runtimes.intranode.mcoll.program import Counts, Program
from runner.runtimes.intranode.mcoll.program_records import ME
from runner.runtimes.intranode.mcoll.team import Team, topology_of
from runner.runtimes.intranode.processes import lost_rank_error

Array = NDArray[Any]
Write = Callable[[Plan], None]
_LOOKS = {True: 20, False: 2000}
"""Turns given away, by whether a rank then sleeps, before Python code drives MPI's progress and
checks if all ranks are alive."""
_SLEEP_NS = 2_000_000
_FUTEX = 202 if platform.machine() in ("x86_64", "AMD64") else 98
"""The number of the system call."""


@dataclass(frozen=True)
class Collective:
    """A prepared collective: ``run()`` executes it once; all ranks call the same ones in the same
    order.

    ``form``: its algorithm.  ``run`` keeps the arrays alive, and raises
    :class:`runner.runtimes.intranode.RankLost` if a rank of the node has died.
    """

    form: str
    run: Callable[[], Any]


class MultiObject:
    """The collectives of ``comm``; created by all its ranks with the same arguments.

    ``config``: by default the one published for the machine (:data:`.MCOLL`), or the built-in one.
    ``nodes``: a single machine is split into this number of nodes of neighbouring ranks; 0: it is
    one. It is ignored on several machines. Nodes must have equally many ranks. Arrays are numpy's,
    without gaps. Raises :class:`IntranodeError` on all ranks, and
    :class:`runner.errors.RunnerError` without both stored code and a compiler.
    """

    def __init__(self, comm: Any, config: Config | None = None, nodes: int = 0) -> None:
        config = config or MCOLL.machine_config()[0]
        self._execute = load("runner.runtimes.intranode.mcoll.execute").function("run")
        self.topology, self.assumed = topology_of(comm, nodes)
        config.radix_of(self.topology.locals)
        self.comm = comm.Dup()
        self.rank: int = self.comm.rank
        self.size: int = self.comm.size
        self._team = Team(self.comm, self.topology)
        self.node, self.local = self._team.node, self._team.local
        self._programs: dict[tuple[Any, ...], list[Program]] = {}
        self._turn = 0
        self._memory = Memory(ME.size)
        self._me = self._memory.address
        self._statuses: Array = np.zeros(0, np.uint8)
        fields = {ME.ranks: self.topology.locals, ME.futex: _FUTEX, ME.nanoseconds: _SLEEP_NS}
        fields |= {ME.yield_: address_of("sched_yield"), ME.syscall: address_of("syscall")}
        for field, name in ((ME.startall, "Start"), (ME.waitall, "Wait"), (ME.testall, "Test")):
            fields[field] = function_address(f"MPI_{name}all")
        for field, value in fields.items():
            self._put(field, value)
        self.configure(config)

    def _put(self, field: int, value: int) -> None:
        self._memory.put(self._me + field, int(value))

    def configure(self, config: Config) -> None:
        """Use another configuration from the next call or preparation on; the same on all ranks.

        Raises :class:`ConfigError` for more objects than a node has ranks.
        """
        locals_ = self.topology.locals
        objects, radix = config.objects_of(locals_), config.radix_of(locals_)
        self.config, self._seat = config, self.topology.seat(self.rank, objects, radix)
        automatic = "sleep" if self._team.is_crowded else "spin"
        wait = automatic if config.waiting == "auto" else config.waiting
        self._put(ME.spins, -1 if wait == "spin" else config.spins)
        self._put(ME.sleeps, wait == "sleep")
        self._looks = _LOOKS[wait == "sleep"]

    # Collectives of all ranks.

    def allgather(self, send: Array, recv: Array) -> None:
        """``recv`` receives the data of all ranks, in the order of ranks; any dtype."""
        self.allgather_init(send, recv).run()

    def allgather_init(self, send: Array, recv: Array) -> Collective:
        """Prepare :meth:`allgather`; raises :class:`IntranodeError` for arrays that do not fit."""
        size = _bytes(send, "send")
        _fits(recv, "recv", size * self.size)
        overlap = self.config.overlap
        write: dict[str, Write] = {
            "bruck": lambda plan: allgather.bruck(plan, size),
            "rd": lambda plan: allgather.recursive_doubling(plan, size),
            "ring": lambda plan: allgather.ring(plan, size, overlap),
        }
        own = partial(self.comm.Allgather, _raw(send), _raw(recv))
        return self._prepare("allgather", size, (), write, send, recv, own)

    def allreduce(self, send: Array, recv: Array, op: Any = "sum") -> None:
        """``recv`` receives the sum, minimum or maximum of the data of all ranks.

        ``op``: ``"sum"``, ``"min"``, ``"max"`` or MPI's.  Whole numbers of 1 to 8 bytes wrap
        around; floats of 4 or 8 bytes have the same bits on all ranks, unless ``same_bits`` is off.
        """
        self.allreduce_init(send, recv, op).run()

    def allreduce_init(self, send: Array, recv: Array, op: Any = "sum") -> Collective:
        """Prepare :meth:`allreduce`; raises :class:`IntranodeError` for unsupported data."""
        size = _bytes(send, "send")
        _fits(recv, "recv", size, send.dtype)
        name, count, config = operation_of(op), send.size, self.config
        code = code_of(send.dtype, name)
        exact = send.dtype.kind != "f" or not config.same_bits
        small = allreduce.bruck if exact else allreduce.bruck_in_order
        write: dict[str, Write] = {
            "bruck": lambda plan: small(plan, count, config.chunks),
            "rd": lambda plan: allreduce.recursive_doubling(plan, count, config.chunks),
            "ring": lambda plan: allreduce.ring(plan, count, config.chunks, config.overlap),
            "scatter-bruck": lambda plan: allreduce.scatter_bruck(plan, count, config.chunks),
        }
        own = partial(mpi_operation, self.comm, send, recv, name)
        item = send.dtype.itemsize
        return self._prepare("allreduce", size, (exact,), write, send, recv, own, code, item)

    def scatter(self, send: Array | None, recv: Array, root: int = 0) -> None:
        """``recv`` receives this rank's part of the data of ``root``; only ``root`` passes
        ``send``."""
        self.scatter_init(send, recv, root).run()

    def scatter_init(self, send: Array | None, recv: Array, root: int = 0) -> Collective:
        """Prepare :meth:`scatter`; raises :class:`IntranodeError` for arrays that do not fit."""
        size = _bytes(recv, "recv")
        _is_rank(root, self.size, "rank")
        if self.rank == root:
            _fits(send, "send", size * self.size)
        source = _raw(send) if self.rank == root and send is not None else None
        write: dict[str, Write] = {"tree": lambda plan: scatter.tree(plan, size, root)}
        own = partial(self.comm.Scatter, source, _raw(recv), root)
        return self._prepare("scatter", size, (root,), write, send, recv, own)

    # Collectives of the ranks of a node; ``root`` is a local rank.

    def node_bcast(self, array: Array, root: int = 0) -> None:
        """All ranks of the node get the array of local rank ``root``."""
        self._in_node(in_node.bcast, array, array, root, _bytes(array, "array"))

    def node_gather(self, send: Array, recv: Array | None, root: int = 0) -> None:
        """Local rank ``root`` gets the data of the node's ranks, in their order."""
        size = _bytes(send, "send")
        if self.local == root:
            _fits(recv, "recv", size * self.topology.locals)
        self._in_node(in_node.gather, send, recv, root, size)

    def node_reduce(self, send: Array, recv: Array | None, op: Any = "sum", root: int = 0) -> None:
        """Local rank ``root`` gets the reduction of the data of the node's ranks."""
        size = _bytes(send, "send")
        if self.local == root:
            _fits(recv, "recv", size, send.dtype)
        write = in_node.reduce_binomial if self.config.chunks == "binomial" else in_node.reduce
        code, item = code_of(send.dtype, operation_of(op)), send.dtype.itemsize
        self._in_node(write, send, recv, root, send.size, code, item)

    def _in_node(
        self,
        write: Callable[[Plan, int, int], None],
        send: Array | None,
        recv: Array | None,
        root: int,
        count: int,
        code: int = 0,
        item: int = 1,
    ) -> None:
        _is_rank(root, self.topology.locals, "local rank")
        key = write.__name__, count, root
        programs = self._programs_of(key, lambda plan: write(plan, count, root), code, item)
        self._run(programs, _address(send), _address(recv))

    def barrier(self) -> None:
        """Wait for all ranks of the node."""
        self._run(self._programs_of(("barrier",), lambda plan: plan.barrier()), 0, 0)

    # The rest.

    @property
    def counts(self) -> Counts:
        """Messages and bytes that this rank has sent to other nodes, without the library's own."""
        get = self._memory.get
        return Counts(get(self._me + ME.messages), get(self._me + ME.bytes))

    def close(self) -> None:
        """Free MPI's resources; collective. The object cannot be used afterwards."""
        for programs in self._programs.values():
            for program in programs:
                program.free()
        self._programs.clear()
        self._team.close()
        self.comm.Free()

    def _prepare(
        self,
        name: str,
        size: int,
        key: tuple[Any, ...],
        write: dict[str, Write],
        send: Any,
        recv: Array,
        own: Callable[[], Any],
        code: int = 0,
        item: int = 1,
    ) -> Collective:
        """Raises :class:`ConfigError` for an algorithm that needs another number of nodes."""
        form, nodes = self.config.form(name, size), self.topology.nodes
        if form == "rd" and nodes & (nodes - 1):
            raise ConfigError(
                f"--{name} rd: {nodes} nodes; recursive doubling needs a power of two; take "
                "bruck or ring",
                code="intranode.option",
            )
        run = own
        if form != "library":
            programs = self._programs_of((name, form, size, *key), write[form], code, item)
            run = partial(self._run, programs, _address(send), _address(recv), (send, recv))
        return Collective(form, run)

    def _programs_of(
        self, key: tuple[Any, ...], write: Write, code: int = 0, item: int = 1
    ) -> list[Program]:
        """The programs of a plan for both buffers; the same key on all ranks."""
        from mpi4py import MPI

        seat, config, team = self._seat, self.config, self._team
        key += (code, seat.objects, seat.radix)
        key += (config.overlap, config.chunks, config.copy, config.piece)
        if key not in self._programs:
            plan = Plan(seat, item)
            write(plan)
            turns: tuple[int, ...] = (0, 1)
            if config.copy == "publish":
                # The buffer, private to this call, is free again when all ranks have left it.
                turns = (2,)
                plan.barrier()
            places = [team.buffer(turn, plan.size) for turn in turns]
            self._programs[key] = programs = [
                Program(plan, place, team.barrier, code, team.view, self.comm, config.piece)
                for place in places
            ]
            size = programs[0].most * MPI._sizeof(MPI.Status)
            if size > self._statuses.size:
                self._statuses = np.zeros(size, np.uint8)
                self._put(ME.statuses, self._statuses.ctypes.data)
        return self._programs[key]

    def _run(self, programs: list[Program], send: int, recv: int, arrays: Any = ()) -> None:
        """Run the program of the buffer whose turn it is; ``arrays`` are those at the addresses."""
        turn = self._turn = (self._turn + 1) % 2
        put, me = self._memory.put, self._me
        put(me + ME.send, send)
        put(me + ME.recv, recv)
        step = programs[turn % len(programs)].address
        while step := self._execute(me, step, self._looks):
            if dead := self._team.deaths():
                raise lost_rank_error(f"rank {self.rank}", dead)
            self.comm.Iprobe()


def _bytes(array: Any, name: str) -> int:
    if not isinstance(array, np.ndarray) or not array.flags.c_contiguous:
        raise IntranodeError(
            f"{name}: expected an array of numpy without gaps", code="intranode.array"
        )
    return array.nbytes


def _fits(array: Any, name: str, size: int, dtype: Any = None) -> None:
    if (count := _bytes(array, name)) != size:
        raise IntranodeError(f"{name} has {count} bytes: expected {size}", code="intranode.array")
    if dtype is not None and dtype != array.dtype:
        raise IntranodeError(
            f"elements of {dtype} are reduced to {array.dtype}", code="intranode.array"
        )


def _is_rank(root: int, count: int, what: str) -> None:
    if not 0 <= root < count:
        raise IntranodeError(
            f"root {root}: expected a {what} from 0 to {count - 1}", code="intranode.call"
        )


def _address(array: Array | None) -> int:
    return 0 if array is None else int(array.ctypes.data)


def _raw(array: Array) -> Array:
    """The bytes of an array, for MPI, which does not know all of numpy's types."""
    return array.reshape(-1).view(np.uint8)
