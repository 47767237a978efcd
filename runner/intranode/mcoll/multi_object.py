"""What a program calls: collectives, at once or prepared."""

from __future__ import annotations

import platform
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.intranode.errors import ConfigError, IntranodeError, RankLost
from runner.intranode.mcoll import allgather, allreduce, in_node, scatter
from runner.intranode.mcoll.config import MCOLL, Config
from runner.intranode.mcoll.kinds import code_of, operation_of
from runner.intranode.mcoll.plan import Plan
from runner.intranode.mcoll.program import Counts, Program
from runner.intranode.mcoll.team import Team, topology_of
from runner.intranode.mcoll.words import ME
from runner.native.kernels import load
from runner.native.machine_code import address_of
from runner.native.memory import Memory
from runner.native.mpi_table import function_address

Array = NDArray[Any]
Write = Callable[[Plan], None]
_LOOKS = 2000
"""Turns given away before Python code sees whether all ranks are alive."""
_SLEEP_NS = 2_000_000
_FUTEX = {"x86_64": 202, "AMD64": 202}
"""The number of the system call; 98 on all newer processors."""
_GROWTH = 1 << 16
"""Least bytes of the node's memory for a buffer."""


class _Buffers:
    """The two buffers of all plans; they grow."""

    def __init__(self, team: Team) -> None:
        self._team = team
        self._sizes, self._places = [0, 0], [0, 0]

    def place(self, turn: int, size: int) -> int:
        """The address of a buffer of this many bytes or more; collective in the node."""
        if size > self._sizes[turn]:
            self._sizes[turn] = max(size, 2 * self._sizes[turn], _GROWTH)
            self._places[turn] = self._team.memory(self._sizes[turn])
        return self._places[turn]


class Collective:
    """A prepared collective; :meth:`run` does it once.  It keeps its arrays alive.

    ``form``: its algorithm.  ``library``: what is called instead where that is the library's own.
    """

    def __init__(
        self,
        owner: MultiObject,
        form: str,
        addresses: tuple[int, int],
        programs: list[Program] | None,
        library: Callable[[], Any] | None,
        arrays: tuple[Any, ...],
    ) -> None:
        self.form = form
        self._owner, self._addresses, self._programs = owner, addresses, programs
        self._library, self._arrays = library, arrays

    def run(self) -> None:
        """Do it; all ranks do the same in the same order.

        Raises :class:`RankLost` if a rank of the node has died.
        """
        if self._programs is None:
            assert self._library is not None
            self._library()
        else:
            self._owner._run(self._programs, self._addresses)


class MultiObject:
    """The collectives of ``comm``; made by all its ranks with the same arguments.

    ``config``: without it what was published for the machine (:data:`.MCOLL`), or the default.
    ``nodes``: a single machine is split into so many nodes of neighbouring ranks; 0: it is one.
    Several machines stay what they are, whatever ``nodes`` says.  Nodes must have equally many
    ranks.  Arrays are numpy's, without gaps.  Raises :class:`IntranodeError` on all ranks alike,
    and :class:`runner.errors.RunnerError` if there is neither stored code nor a compiler.
    """

    def __init__(self, comm: Any, config: Config | None = None, nodes: int = 0) -> None:
        self.config = config or MCOLL.published()[0]
        self._execute = load("runner.intranode.mcoll.execute").function("run")
        self.topology, self.assumed = topology_of(comm, nodes)
        self.config.radix_of(self.topology.locals)
        self.comm = comm.Dup()
        self.rank: int = self.comm.rank
        self.size: int = self.comm.size
        self._team = Team(self.comm, self.topology)
        self.node, self.local = self._team.node, self._team.local
        self._buffers = _Buffers(self._team)
        self._programs: dict[tuple[Any, ...], list[Program]] = {}
        self._turn = 0
        self._memory = Memory(ME.size)
        self._me = self._memory.address
        self._statuses: Array = np.zeros(1, np.uint8)
        for field, value in (
            (ME.ranks, self.topology.locals),
            (ME.yield_, address_of("sched_yield")),
            (ME.syscall, address_of("syscall")),
            (ME.futex, _FUTEX.get(platform.machine(), 98)),
            (ME.nanoseconds, _SLEEP_NS),
            (ME.startall, function_address("MPI_Startall")),
            (ME.waitall, function_address("MPI_Waitall")),
            (ME.testall, function_address("MPI_Testall")),
        ):
            self._put(field, value)
        self.configure(self.config)

    def _put(self, field: int, value: int) -> None:
        self._memory.put(self._me + field, int(value))

    def configure(self, config: Config) -> None:
        """Follow another configuration from the next call or preparation on; all ranks the same.

        Raises :class:`ConfigError` for more objects than a node has ranks.
        """
        radix = config.radix_of(self.topology.locals)
        self.config = config
        self._seat = self.topology.seat(self.rank, config.objects_of(self.topology.locals), radix)
        wait = config.waiting
        if wait == "auto":
            wait = "sleep" if self._team.crowded else "spin"
        self._put(ME.spins, -1 if wait == "spin" else config.spins)
        self._put(ME.sleeps, wait == "sleep")

    # Collectives of all ranks.

    def allgather(self, send: Array, recv: Array) -> None:
        """``recv`` becomes what all ranks send, in the order of ranks; any dtype."""
        self.allgather_init(send, recv).run()

    def allgather_init(self, send: Array, recv: Array) -> Collective:
        """Prepare :meth:`allgather`; raises :class:`IntranodeError` for arrays that do not fit."""
        size = self._bytes(send, "send")
        self._fits(recv, "recv", size * self.size)
        config = self.config
        form = self._form("allgather", size)
        write: dict[str, Write] = {
            "bruck": lambda plan: allgather.bruck(plan, size),
            "rd": lambda plan: allgather.recursive_doubling(plan, size),
            "ring": lambda plan: allgather.ring(plan, size, config.overlap),
        }
        own = partial(self.comm.Allgather, _raw(send), _raw(recv))
        return self._prepared("allgather", form, write, (size,), send, recv, own)

    def allreduce(self, send: Array, recv: Array, op: Any = "sum") -> None:
        """``recv`` becomes the sum, minimum or maximum of what all ranks send.

        ``op``: ``"sum"``, ``"min"``, ``"max"`` or MPI's.  Whole numbers of 1 to 8 bytes wrap
        around; floats of 4 or 8 bytes have the same bits on all ranks, unless ``same_bits`` is off.
        """
        self.allreduce_init(send, recv, op).run()

    def allreduce_init(self, send: Array, recv: Array, op: Any = "sum") -> Collective:
        """Prepare :meth:`allreduce`; raises :class:`IntranodeError` for what it does not take."""
        size = self._bytes(send, "send")
        self._fits(recv, "recv", size)
        operation = operation_of(op)
        code, count, config = self._code(send, recv, operation), send.size, self.config
        form = self._form("allreduce", size)
        exact = send.dtype.kind != "f" or not config.same_bits
        small = allreduce.bruck if exact else allreduce.collected
        write: dict[str, Write] = {
            "bruck": lambda plan: small(plan, count, config.chunks),
            "rd": lambda plan: allreduce.recursive_doubling(plan, count, config.chunks),
            "ring": lambda plan: allreduce.ring(plan, count, config.chunks, config.overlap),
        }
        own = partial(self.comm.Allreduce, _no_copy(send, recv), recv, _mpi_operation(operation))
        key = (size, code, exact)
        return self._prepared(
            "allreduce", form, write, key, send, recv, own, code, send.dtype.itemsize
        )

    def scatter(self, send: Array | None, recv: Array, root: int = 0) -> None:
        """``recv`` becomes this rank's part of what ``root`` sends; ``send`` is its alone."""
        self.scatter_init(send, recv, root).run()

    def scatter_init(self, send: Array | None, recv: Array, root: int = 0) -> Collective:
        """Prepare :meth:`scatter`; raises :class:`IntranodeError` for arrays that do not fit."""
        size = self._bytes(recv, "recv")
        if not 0 <= root < self.size:
            raise IntranodeError(f"root {root}: expected a rank from 0 to {self.size - 1}")
        if self.rank == root:
            if send is None:
                raise IntranodeError(f"rank {root} is the root, and has nothing to send")
            self._fits(send, "send", size * self.size)
        form = self._form("scatter", size)
        write: dict[str, Write] = {"tree": lambda plan: scatter.tree(plan, size, root)}
        sent = _raw(send) if self.rank == root and send is not None else None
        own = partial(self.comm.Scatter, sent, _raw(recv), root)
        return self._prepared("scatter", form, write, (size, root), send, recv, own)

    # Collectives of the ranks of a node; ``root`` is a local rank.

    def node_bcast(self, array: Array, root: int = 0) -> None:
        """All ranks of the node get the array of local rank ``root``."""
        size = self._bytes(array, "array")
        self._in_node("node_bcast", (size, root), in_node.bcast, array, array, root, size)

    def node_gather(self, send: Array, recv: Array | None, root: int = 0) -> None:
        """Local rank ``root`` gets what the ranks of the node send, in their order."""
        size = self._bytes(send, "send")
        if self.local == root:
            self._fits(recv, "recv", size * self.topology.locals)
        self._in_node("node_gather", (size, root), in_node.gather, send, recv, root, size)

    def node_reduce(self, send: Array, recv: Array | None, op: Any = "sum", root: int = 0) -> None:
        """Local rank ``root`` gets the reduction of what the ranks of the node send."""
        size = self._bytes(send, "send")
        if self.local == root:
            self._fits(recv, "recv", size)
        code = self._code(send, recv if self.local == root else None, operation_of(op))
        write = partial(in_node.reduce, chunks=self.config.chunks)
        key = (size, root, code)
        self._in_node("node_reduce", key, write, send, recv, root, send.size, code,
                      send.dtype.itemsize)  # fmt: skip

    def _in_node(
        self,
        name: str,
        key: tuple[Any, ...],
        write: Callable[..., None],
        send: Array | None,
        recv: Array | None,
        root: int,
        count: int,
        code: int = 0,
        item: int = 1,
    ) -> None:
        if not 0 <= root < self.topology.locals:
            raise IntranodeError(
                f"root {root}: expected a local rank from 0 to {self.topology.locals - 1}"
            )
        made = self._made((name, *key), lambda plan: write(plan, count, root=root), code, item)
        self._run(made, (_address(send), _address(recv)))

    def barrier(self) -> None:
        """Wait for all ranks of the node."""
        made = self._made(("barrier",), lambda plan: plan.barrier(), 0, 1)
        self._run(made, (0, 0))

    # The rest.

    @property
    def counts(self) -> Counts:
        """What this rank has sent to other nodes so far; not what the library's own sends."""
        get = self._memory.get
        return Counts(get(self._me + ME.messages), get(self._me + ME.bytes))

    def close(self) -> None:
        """Give back what MPI has; collective.  Nothing can be called afterwards."""
        for programs in self._programs.values():
            for program in programs:
                program.free()
        self._programs.clear()
        self._team.close()
        self.comm.Free()

    def _form(self, operation: str, size: int) -> str:
        """The algorithm; raises :class:`ConfigError` for one that needs another node count."""
        form = self.config.form(operation, size)
        nodes = self.topology.nodes
        if form == "rd" and nodes & (nodes - 1):
            raise ConfigError(
                f"--{operation} rd: {nodes} nodes; recursive doubling needs a power of two; take "
                "bruck or ring"
            )
        return form

    def _prepared(
        self,
        name: str,
        form: str,
        write: dict[str, Write],
        key: tuple[Any, ...],
        send: Any,
        recv: Array,
        own: Callable[[], Any],
        code: int = 0,
        item: int = 1,
    ) -> Collective:
        addresses = _address(send), _address(recv)
        if form == "library":
            return Collective(self, form, addresses, None, own, (send, recv))
        made = self._made((name, form, *key), write[form], code, item)
        return Collective(self, form, addresses, made, None, (send, recv))

    def _made(self, key: tuple[Any, ...], write: Write, code: int, item: int) -> list[Program]:
        """The programs of a plan for both buffers; the same key on all ranks."""
        seat, config = self._seat, self.config
        key = (*key, seat.objects, seat.radix, config.overlap, config.chunks, config.copy)
        if key not in self._programs:
            plan = Plan(seat, item)
            write(plan)
            turns = 2 if config.copy == "temporary" else 1
            if turns == 1:
                # The buffer is free again when all have left it.
                plan.barrier()
            team = self._team
            made = [
                Program(plan, self._buffers.place(turn, plan.size), team.barrier, code, team.view,
                        self.comm)
                for turn in range(turns)
            ]  # fmt: skip
            self._programs[key] = made
            self._room_for(max(program.most for program in made))
        return self._programs[key]

    def _room_for(self, requests: int) -> None:
        """Let the statuses of so many requests have room."""
        from mpi4py import MPI

        size = requests * MPI._sizeof(MPI.Status)
        if size > self._statuses.size:
            self._statuses = np.zeros(size, np.uint8)
            self._put(ME.statuses, self._statuses.ctypes.data)

    def _run(self, programs: list[Program], addresses: tuple[int, int]) -> None:
        """Run the program of the buffer whose turn it is."""
        turn = self._turn = (self._turn + 1) % 2
        put, me = self._memory.put, self._me
        put(me + ME.send, addresses[0])
        put(me + ME.recv, addresses[1])
        step = programs[turn % len(programs)].address
        while step := self._execute(me, step, _LOOKS):
            if lost := self._team.lost():
                raise RankLost(
                    f"rank {self.rank} waits, but these of its node have died: {lost}; look at "
                    "their own messages, and start the program again"
                )
            self.comm.Iprobe()

    # Checks.

    def _bytes(self, array: Any, name: str) -> int:
        if not isinstance(array, np.ndarray) or not array.flags.c_contiguous:
            raise IntranodeError(f"{name}: expected an array of numpy without gaps")
        return array.nbytes

    def _fits(self, array: Any, name: str, size: int) -> None:
        found = self._bytes(array, name)
        if found != size:
            raise IntranodeError(f"{name} has {found} bytes: expected {size}")

    def _code(self, send: Array, recv: Array | None, operation: str) -> int:
        if recv is not None and recv.dtype != send.dtype:
            raise IntranodeError(f"elements of {send.dtype} are reduced to {recv.dtype}")
        return code_of(send.dtype, operation)


def _address(array: Array | None) -> int:
    return 0 if array is None else int(array.ctypes.data)


def _raw(array: Array) -> Array:
    """The bytes of an array, for MPI, which does not know all of numpy's types."""
    return array.reshape(-1).view(np.uint8)


def _no_copy(send: Array, recv: Array) -> Any:
    """MPI's sign for a send buffer that is the receive buffer."""
    from mpi4py import MPI

    return MPI.IN_PLACE if send is recv else send


def _mpi_operation(name: str) -> Any:
    from mpi4py import MPI

    return {"sum": MPI.SUM, "min": MPI.MIN, "max": MPI.MAX}[name]
