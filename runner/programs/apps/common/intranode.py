"""Shared parts of the programs whose ranks share memory: options, start, sweeps, lost ranks."""

from __future__ import annotations

import random
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.common.mpi import Helpful, agree, helped
from runner.programs.apps.common.options import changed, meaningless
from runner.runtimes import intranode

Given = TypeVar("Given", bound=Helpful)
Cell = TypeVar("Cell")


def config_of(given: Namespace, chunked: Sequence[str]) -> tuple[Namespace, intranode.Config, str]:
    """The configuration, and where it came from; the default for a variant without chunks.

    ``chunked``: the variants that have them.  The parser has the switches of MATE too; the first
    value is the command line as MATE reads it, whose ``--steal`` has other words.  Raises
    :class:`AppUsageError` for a switch that means nothing to the variant, and for a configuration
    that cannot be.
    """
    if given.variant in chunked:
        from runner.runtimes import mate  # Only some programs have it.

        plain = mate.Config().steal
        own = None if given.steal == plain else given.steal
        try:
            config, source = intranode.CAB.configured(_with(given, own))
        except intranode.ConfigError as problem:
            raise AppUsageError(str(problem), code=problem.code) from None
        return _with(given, plain), config, source
    for switch in changed(given, lambda parser: intranode.add_arguments(parser, mate=True)):
        raise meaningless(switch, given.variant, chunked)
    return given, intranode.Config(), ""


def _with(given: Namespace, steal: str | None) -> Namespace:
    return Namespace(**{**vars(given), "steal": steal})


def run_program(
    comm: Any, name: str, parse: Callable[[], Given], run: Callable[[Any, Given], int]
) -> int:
    """A program on one rank: the help, or what ``run`` does; returns the exit code.

    Raises :class:`runner.programs.apps.common.errors.AppError` on all ranks alike.
    """
    options = agree(comm, parse)
    if helped(comm, options):
        return 0
    with ending_if_lost(comm, name):
        return run(comm, options)


def sweep(cells: Sequence[Cell], rounds: int, seed: int) -> Iterator[tuple[int, Cell]]:
    """All cells in random order, round by round; round 0 warms up."""
    order = random.Random(seed)
    for number in range(rounds + 1):
        for cell in order.sample(cells, len(cells)):
            yield number, cell


@contextmanager
def ending_if_lost(comm: Any, program: str) -> Iterator[None]:
    """End all ranks with one message if a rank has died.

    Nothing can be agreed on then, because others may have died, too.
    """
    try:
        yield
    except intranode.RankLost as error:
        print(f"{program}: error: {error}", file=sys.stderr, flush=True)
        comm.Abort(1)
        raise
