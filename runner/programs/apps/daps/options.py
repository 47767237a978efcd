"""The command line of the programs."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from typing import Any

from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.common.options import OptionParser, positive
from runner.runtimes.intranode import IntranodeError
from runner.runtimes.intranode.daps import DAPS, PROGRESS, Config, add_arguments

PROGRAMS = {
    "capability": "a rank puts, gets, adds and sends to one that sleeps",
    "product": "two stages of get, DGEMM and accumulate: much computing, then many messages",
    "stencil": "five-point stencil of a square, faces exchanged while the inner part is computed",
}
OPERATIONS = ("put", "get", "accumulate", "send")
COMPUTES = ("dgemm", "sleep")
DEALS = ("counter", "dealt")
_OWN: dict[str, tuple[str, Any]] = {
    "size": ("capability", 16 << 20),
    "strided_size": ("capability", 2 << 20),
    "sleep_ms": ("capability", 200),
    "operations": ("capability", OPERATIONS),
    "dgemms": ("product", (130, 50)),
    "messages": ("product", (512, 8640)),
    "width": ("product", 1024),
    "edge": ("product", 50),
    "compute": ("product", "dgemm"),
    "tasks": ("product", "counter"),
    "cells": ("stencil", 4096),
    "steps": ("stencil", 20),
}
"""Option -> its program and its default."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of one run.

    ``size``, ``strided_size``: bytes of data of each of two operations, and of two sends of bytes
    64 apart; ``dgemms``, ``messages``: products of matrices with ``width`` rows, and pairs of a get
    and an accumulate of ``edge``^3 doubles, in each stage; ``cells``: along a side of the square;
    ``modes``: the compared configurations, by name; ``rounds``: runs of each; ``config_source``:
    the origin of the configuration; ``nodes``: nodes to assume if there is only one.
    """

    program: str
    size: int
    strided_size: int
    sleep_ms: int
    operations: tuple[str, ...]
    dgemms: tuple[int, ...]
    messages: tuple[int, ...]
    width: int
    edge: int
    compute: str
    tasks: str
    cells: int
    steps: int
    modes: dict[str, Config]
    rounds: int
    nodes: int
    config_source: str
    seed: int
    help: str | None = None
    """The text to print instead of running."""


def parse(arguments: list[str], ranks: int) -> Options:
    """The options; raises :class:`AppUsageError`."""
    parser = OptionParser(
        "python -m runner.programs.apps.daps", "Active messages to ranks that compute or sleep."
    )
    add = parser.add_argument
    text = "; ".join(f"{name}: {words}" for name, words in PROGRAMS.items())
    add("--program", default="capability", metavar="NAME", help=f"default capability. {text}")
    add("--modes", metavar="MODE,...", help="ways of progress to compare, in random order "
        "in each round: none, thread, thread:dedicated, ghosts:N, dynamic; default: as "
        "configured")  # fmt: skip
    add("--rounds", type=positive, default=3, metavar="N", help="runs of each mode; default 3")
    add("--nodes", type=_count, default=0, metavar="N",
        help="nodes to assume if there is one, groups of ranks; default 0: none")  # fmt: skip
    add("--size", type=positive, metavar="BYTES",
        help="capability: bytes of an operation; default 16777216")  # fmt: skip
    add("--strided-size", type=positive, metavar="BYTES",
        help="capability: bytes of a send, 64 apart; default 2097152")  # fmt: skip
    add("--sleep-ms", type=_count, metavar="N",
        help="capability: milliseconds that the target sleeps; default 200")  # fmt: skip
    add("--operations", type=_words, metavar="NAME,...",
        help=f"capability: some of {', '.join(OPERATIONS)}; default: all")  # fmt: skip
    add("--dgemms", type=_numbers, metavar="N,N",
        help="product: products of matrices in each stage; default 130,50")  # fmt: skip
    add("--messages", type=_numbers, metavar="N,N",
        help="product: gets, and as many sums, in each stage; default 512,8640")  # fmt: skip
    add("--width", type=positive, metavar="N", help="product: rows of a matrix; default 1024")
    add("--edge", type=positive, metavar="N",
        help="product: a get or sum has N^3 doubles; default 50")  # fmt: skip
    add("--compute", metavar="HOW", help="product: dgemm, or sleep for the time of one, as "
        "if each rank had a core of its own; default dgemm")  # fmt: skip
    add("--tasks", metavar="HOW", help="product: tasks are drawn from a counter, or dealt to "
        "the ranks: counter, dealt; default counter")  # fmt: skip
    add("--cells", type=positive, metavar="N",
        help="stencil: cells along a side of the square; default 4096")  # fmt: skip
    add("--steps", type=positive, metavar="N", help="stencil: steps; default 20")
    add("--seed", type=positive, default=1, help="seed of the order of modes; default 1")
    add_arguments(parser)
    options = parser.parse_args(arguments)
    try:
        config, config_source = DAPS.from_options(options)
        modes = _modes(options, config)
    except IntranodeError as error:
        raise AppUsageError(str(error), code=error.code) from None
    if not options.help:
        _check(options, ranks, modes)
    values = {name: getattr(options, name) for name in _OWN}
    own = {name: _OWN[name][1] if value is None else value for name, value in values.items()}
    return parser.record(Options, options, **own, modes=modes, config_source=config_source)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"expected a whole number, not {text!r}")
    return int(text)


def _numbers(text: str) -> tuple[int, ...]:
    words = text.split(",")
    if len(words) != 2 or not all(word.isascii() and word.isdigit() for word in words):
        raise argparse.ArgumentTypeError(f"expected two whole numbers as 130,50, not {text!r}")
    return tuple(map(int, words))


def _words(text: str) -> tuple[str, ...]:
    words = tuple(text.split(","))
    if unknown := [word for word in words if word not in OPERATIONS]:
        raise argparse.ArgumentTypeError(
            f"{unknown[0]!r}: expected some of {', '.join(OPERATIONS)}"
        )
    return words


def mode_name(config: Config) -> str:
    """The way of progress, as ``--modes`` has it."""
    if config.progress == "ghosts":
        return f"ghosts:{config.ghost_count}"
    return "thread:dedicated" if config.thread_place == "dedicated" else config.progress


def _modes(options: argparse.Namespace, config: Config) -> dict[str, Config]:
    """The configuration of each mode."""
    if options.modes is None:
        return {mode_name(config): config}
    modes = {}
    for name in options.modes.split(","):
        way, _, detail = name.partition(":")
        fits = {"thread": detail in ("", "dedicated"), "ghosts": detail.isdigit() or not detail}
        if way not in PROGRESS or not fits.get(way, not detail):
            raise AppUsageError(
                f"--modes {name}: expected none, thread, thread:dedicated, ghosts:N or dynamic",
                code="app_option.invalid",
            )
        mode = replace(
            config,
            progress=way,
            ghosts=int(detail or 1) if way == "ghosts" else 0,
            thread_place=detail if way == "thread" and detail else "shared",
        )
        modes[mode_name(mode)] = mode
    return modes


def _check(options: argparse.Namespace, ranks: int, modes: dict[str, Config]) -> None:
    """Refuse unsupported options."""
    program = options.program
    if program not in PROGRAMS:
        raise AppUsageError(
            f"--program {program}: expected one of {', '.join(PROGRAMS)}", code="app_option.unknown"
        )
    for name, (able, _) in _OWN.items():
        if getattr(options, name) is not None and program != able:
            raise AppUsageError(
                f"--{name.replace('_', '-')} needs --program {able}",
                code="app_option.not_applicable",
            )
    for name, choices in (("compute", COMPUTES), ("tasks", DEALS)):
        value = getattr(options, name)
        if value is not None and value not in choices:
            raise AppUsageError(
                f"--{name} {value}: expected one of {', '.join(choices)}", code="app_option.unknown"
            )
    if program == "capability" and ranks < 2:
        raise AppUsageError(
            "--program capability needs at least 2 ranks; start it with mpirun -n 2",
            code="app_option.ranks",
        )
    if options.size is not None and options.size % 8:
        raise AppUsageError(
            f"--size {options.size}: expected a multiple of 8 bytes", code="app_option.invalid"
        )
    if options.nodes > ranks:
        raise AppUsageError(
            f"--nodes {options.nodes}: expected 0 to {ranks}, the number of ranks",
            code="app_option.ranks",
        )
    if options.dgemms and not all(options.dgemms):
        raise AppUsageError(
            f"--dgemms {options.dgemms}: expected at least 1 in each stage", code="app_option.range"
        )
