"""The functions for translated programs: mpi4py's names, for ranks that are coroutines.

The names are those of :mod:`runner.runtimes.mate.ordinary`. Functions that may have to wait are
awaited.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn, TextIO

import numpy as np

from runner.runtimes.mate.config import Config, add_arguments, from_arguments
from runner.runtimes.mate.context import Context, context
from runner.runtimes.mate.errors import ConfigError, MateError
from runner.runtimes.mate.graph import IF_POSSIBLE, Graph
from runner.runtimes.mate.launch import run, world
from runner.runtimes.mate.task import Request as _Request
from runner.runtimes.mate.usage import end_with

Bodies = Sequence[Callable[[int], Any]]


def local_rank() -> int:
    """The rank's number in its process."""
    return context().local_rank


def local_count() -> int:
    """Number of ranks of the process."""
    return context().local_count


def process() -> int:
    """The process's number."""
    return context().process


def process_count() -> int:
    """Number of processes."""
    return context().process_count


def add_local_neighbor(local: int) -> None:
    """Make this rank's ``@`` dependencies wait for that local rank too."""
    context().add_local_neighbor(local)


async def local_bcast(value: Any = None, root: int = 0) -> Any:
    """The object that local rank ``root`` passed: the object itself, not a copy."""
    return await context().local_bcast(value, root)


async def local_barrier() -> None:
    """Wait until all ranks of the process have arrived."""
    await context().local_barrier()


class Request:
    """A started message."""

    __slots__ = ("_request",)

    def __init__(self, request: _Request) -> None:
        self._request = request

    async def Wait(self, status: Any = None) -> None:
        """Wait until the message is complete."""
        await context().wait(self._request)


async def waitall(requests: Iterable[Request], statuses: Any = None) -> None:
    """Wait until all of them are complete."""
    await context().waitall([request._request for request in requests])


class World:
    """All ranks of the job; the calling rank is the one that the thread is running."""

    @property
    def rank(self) -> int:
        return context().rank

    @property
    def size(self) -> int:
        return context().size

    def Get_rank(self) -> int:
        return context().rank

    def Get_size(self) -> int:
        return context().size

    def Isend(self, buf: Any, dest: int, tag: int = 0) -> Request:
        return Request(context().isend(_buffer(buf), dest, tag))

    def Irecv(self, buf: Any, source: int, tag: int = 0) -> Request:
        return Request(context().irecv(_buffer(buf), source, tag))

    async def Send(self, buf: Any, dest: int, tag: int = 0) -> None:
        await context().send(_buffer(buf), dest, tag)

    async def Recv(self, buf: Any, source: int, tag: int = 0, status: Any = None) -> None:
        await context().recv(_buffer(buf), source, tag, status)

    async def Barrier(self) -> None:
        await context().barrier()

    async def Bcast(self, buf: Any, root: int = 0) -> None:
        await context().bcast(_array(buf), root)

    async def Reduce(self, sendbuf: Any, recvbuf: Any, op: Any = "sum", root: int = 0) -> None:
        await context().reduce(_array(sendbuf), _array(recvbuf), op, root)

    async def Allreduce(self, sendbuf: Any, recvbuf: Any, op: Any = "sum") -> None:
        await context().allreduce(_array(sendbuf), _array(recvbuf), op)

    async def Gather(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        await context().gather(_array(sendbuf), _array(recvbuf), root)

    async def Scatter(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        await context().scatter(_array(sendbuf), _array(recvbuf), root)

    async def Allgather(self, sendbuf: Any, recvbuf: Any) -> None:
        await context().allgather(_array(sendbuf), _array(recvbuf))

    async def Allgatherv(self, sendbuf: Any, recvbuf: Any) -> None:
        """Gather into ``recvbuf``, whose parts are consecutive.

        ``recvbuf`` is ``[array, counts]``, ``[array, (counts, displacements)]`` or ``[array,
        counts, displacements, type]``.
        """
        array, counts = recvbuf[0], recvbuf[1]
        places = recvbuf[2] if len(recvbuf) > 3 else None
        if isinstance(counts, tuple) and len(counts) == 2 and np.ndim(counts[0]):
            counts, places = counts
        counts = [int(n) for n in counts]
        if places is not None and list(places) != [sum(counts[:n]) for n in range(len(counts))]:
            raise MateError(
                "Allgatherv puts the parts one after another: no other displacements",
                code="mate.message",
            )
        await context().allgatherv(_array(sendbuf), array, counts)

    def Abort(self, errorcode: int = 1) -> None:
        raise _exit_error(f"rank {context().rank} called Abort({errorcode})", errorcode)


COMM_WORLD = World()


def _buffer(buf: Any) -> Any:
    """mpi4py's ``[array, type]`` and ``[array, count, type]`` in the form of the runtime."""
    if isinstance(buf, list | tuple):
        return buf[0] if len(buf) < 3 else (buf[0], buf[1], buf[-1])
    return buf


def _array(buf: Any) -> Any:
    """The array of ``[array, type]``."""
    if isinstance(buf, list | tuple):
        if len(buf) > 2:
            raise MateError(
                "collectives take whole arrays: [array, type], not a count", code="mate.message"
            )
        return buf[0]
    return buf


class Names:
    """The state of a graph: the variables of the function that runs it, for compiled regions."""

    def __init__(self, names: dict[str, Any], bodies: Bodies, ctx: Context) -> None:
        vars(self).update(names)
        self._mate_bodies = bodies
        self._mate = _Context(ctx)


class _Context(Context):
    """The rank for regions that can be compiled: it accepts buffers like mpi4py."""

    def __init__(self, ctx: Context) -> None:
        vars(self).update(vars(ctx))

    def isend(self, buffer: Any, dest: int, tag: int = 0) -> _Request:
        return super().isend(_buffer(buffer), dest, tag)

    def irecv(self, buffer: Any, source: int, tag: int = 0, status: Any = None) -> _Request:
        return super().irecv(_buffer(buffer), source, tag, status)


_graphs: list[Graph] = []
"""The graphs of the program."""


def graph(
    name: str, regions: Sequence[tuple[str, Sequence[str], bool | Callable[..., Any]]]
) -> Graph:
    """A graph of regions (name, dependencies, function or True if they wait).

    A function takes the variables of the function that runs the graph, and is compiled if possible.
    The bodies of the others are passed to :func:`run_graph` in the same order.
    """
    result = Graph(name)
    place = 0
    for region, depends, body in regions:
        if callable(body):
            result.region(name=region, depends=depends, compiled=IF_POSSIBLE)(body)
            continue
        result.region(name=region, depends=depends)(_waiting(place) if body else _plain(place))
        place += 1
    _graphs.append(result)
    return result


def _plain(place: int) -> Callable[[Names, int], None]:
    def body(names: Names, i: int) -> None:
        names._mate_bodies[place](i)

    return body


def _waiting(place: int) -> Callable[[Names, int], Any]:
    async def body(names: Names, i: int) -> None:
        await names._mate_bodies[place](i)

    return body


async def run_graph(
    graph: Graph,
    iterations: int | range,
    *bodies: Callable[[int], Any],
    names: dict[str, Any] | None = None,
) -> None:
    """Run the regions; each is called with its own iteration.

    ``names``: the variables for compiled regions; they are read now.
    """
    ctx = context()
    await ctx.execute(graph, iterations, state=Names(names or {}, bodies, ctx))


def start(main: Callable[[], Any]) -> None:
    """Run ``await main()`` on every rank, with the runtime's switches from the command line.

    Ends all processes if a switch is wrong; process 0 prints the message.
    """
    config, wrong = Config(), None
    try:
        config = _command_config()
    except MateError as problem:
        wrong = problem
    try:
        comm = world(config)
        for refusal in comm.allgather(wrong):
            if refusal is not None:
                raise refusal
        with _refuse_forgotten_waits(comm):
            report = run(_life, config, main, comm=comm)
        if os.environ.get("MATE_REGIONS") == "1" and report.process == 0:
            _tell_regions()
    except MateError as problem:
        end_with(Path(sys.argv[0]).name, problem)


def _command_config() -> Config:
    """The configuration; the program's own arguments stay. Raises :class:`ConfigError`."""

    class Parser(argparse.ArgumentParser):
        def error(self, message: str) -> NoReturn:
            raise ConfigError(message, code="mate.option")

    parser = Parser(add_help=False, allow_abbrev=False)
    add_arguments(parser)
    options, rest = parser.parse_known_args()
    sys.argv[1:] = rest
    return from_arguments(options)


def _tell_regions() -> None:
    """Report on standard error how each region of each graph has run in this process."""
    for graph in _graphs:
        for region in graph.regions:
            ways = ["compiled"] * (region.name in graph.machine_code)
            if region.name in graph.fallbacks or not ways:
                ways.append("Python")
            text = f"mate: graph {graph.name}: region {region.name}: {' and '.join(ways)}\n"
            sys.stderr.write(text)


async def _life(ctx: Any, main: Callable[[], Any]) -> None:
    """Run one rank; a program that calls ``sys.exit(0)`` has ended without an error."""
    try:
        await main()
    except SystemExit as exit_request:
        if exit_request.code not in (None, 0):
            raise _exit_error(
                f"rank {ctx.rank} ended with {exit_request.code}", exit_request.code
            ) from None


def _exit_error(text: str, code: object) -> MateError:
    """The exception with which the program asked to end the job."""
    problem = MateError(text, code="mate.message")
    problem.exit_code = code if isinstance(code, int) else 1
    return problem


@contextlib.contextmanager
def _refuse_forgotten_waits(comm: Any) -> Iterator[None]:
    """End the job if an operation was not awaited, because it would silently be skipped.

    This happens if a communicator is passed to a function in an untranslated file.
    """
    show = warnings.showwarning

    def show_warning(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if "was never awaited" not in str(message):
            show(message, category, filename, lineno, file, line)
            return
        sys.stderr.write(
            f"mate: {filename}:{lineno}: {message}: it did not happen; "
            "only functions of the translated file can wait\n"
        )
        sys.stderr.flush()
        comm.Abort(1)

    with warnings.catch_warnings():
        warnings.filterwarnings("always", "coroutine .* was never awaited", RuntimeWarning)
        warnings.showwarning = show_warning
        yield
