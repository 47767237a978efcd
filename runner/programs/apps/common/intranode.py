"""Shared parts of the programs whose ranks share memory: options, start, sweeps, lost ranks."""

from __future__ import annotations

import random
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.common.mpi import Helpful, agree, print_help
from runner.programs.apps.common.options import changed_switches, meaningless
from runner.runtimes import intranode

HelpfulOptions = TypeVar("HelpfulOptions", bound=Helpful)
Cell = TypeVar("Cell")


def config_of(
    options: Namespace, chunk_variants: Sequence[str]
) -> tuple[Namespace, intranode.Config, str]:
    """The configuration, and its origin; the default for a variant without chunks.

    ``chunk_variants``: the variants with chunks. The parser also has the switches of MATE; the
    first value is the command line for MATE, whose ``--steal`` has other words. Raises
    :class:`AppUsageError` for a switch without a meaning for the variant, and for an impossible
    configuration.
    """
    if options.variant in chunk_variants:
        from runner.runtimes import mate  # Only some programs have it.

        plain = mate.Config().steal
        own = None if options.steal == plain else options.steal
        try:
            config, source = intranode.CAB.from_options(_with(options, own))
        except intranode.ConfigError as problem:
            raise AppUsageError(str(problem), code=problem.code) from None
        return _with(options, plain), config, source
    for switch in changed_switches(
        options, lambda parser: intranode.add_arguments(parser, mate=True)
    ):
        raise meaningless(switch, options.variant, chunk_variants)
    return options, intranode.Config(), ""


def _with(options: Namespace, steal: str | None) -> Namespace:
    return Namespace(**{**vars(options), "steal": steal})


def run_program(
    comm: Any,
    name: str,
    parse: Callable[[], HelpfulOptions],
    run: Callable[[Any, HelpfulOptions], int],
) -> int:
    """A program on one rank: prints the help, or calls ``run``; returns the exit code.

    Raises :class:`runner.programs.apps.common.errors.AppError` on all ranks alike.
    """
    options = agree(comm, parse)
    if print_help(comm, options):
        return 0
    with abort_on_loss(comm, name):
        return run(comm, options)


def sweep(cells: Sequence[Cell], rounds: int, seed: int) -> Iterator[tuple[int, Cell]]:
    """All cells in random order, round by round; round 0 warms up."""
    order = random.Random(seed)
    for number in range(rounds + 1):
        for cell in order.sample(cells, len(cells)):
            yield number, cell


@contextmanager
def abort_on_loss(comm: Any, program: str) -> Iterator[None]:
    """End all ranks with one message if a rank has died.

    Then no agreement is possible, because others may have died, too.
    """
    try:
        yield
    except intranode.RankLost as error:
        print(f"{program}: error: {error}", file=sys.stderr, flush=True)
        comm.Abort(1)
        raise
