"""The command line of the programs."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace

from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.common.options import OptionParser, positive
from runner.runtimes import intranode
from runner.runtimes.intranode import IntranodeError

PROGRAMS = {
    "pingpong": "two ranks send each other a message in turn, and the others wait",
    "pack": "two ranks pack a face with gaps in turn",
    "strided": "two ranks send each other a face with gaps in turn",
    "accumulate": "a rank adds to the memory of another one",
    "product": "block-sparse C += A B: ranks get blocks, multiply, and add to the owner's block",
    "saturation": "copies by 1, 2, ... ranks at once: what the memory can do",
}
LEAST_RANKS = {"saturation": 1, "accumulate": 1, "product": 1}
_PRODUCT = {"width": 128, "blocks": 6, "absent": 50}
"""Options only of ``product``, and their defaults."""
_SIZE = 1 << 20
_BATCH_BYTES, _FEW, _MANY = 1 << 26, 4, 2000
"""Bytes of a batch by default, and the fewest and most operations in it."""


@dataclass(frozen=True)
class Cell:
    """One column of a sweep.

    ``workers``: ranks that may help, 0 for no stealing; for ``saturation`` the copying ranks.
    ``chunk``: bytes of a chunk; 0 for the configuration's.
    """

    workers: int
    chunk: int = 0

    def config(self, config: intranode.Config) -> intranode.Config:
        """The configuration of this cell."""
        chunk = self.chunk
        if chunk:
            config = replace(config, chunk_small=chunk, chunk_medium=chunk, chunk_large=chunk)
        return replace(config, steal=config.steal and self.workers > 0)


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of one run.

    ``size``: bytes of a message, face, sum or block; ``width``, ``blocks``, ``absent``: rows of a
    block of matrices, blocks along a side, percent of them that are zero; ``rows``, ``spread``: a
    face is ``rows`` rows of an array, one of every ``spread``; ``times``: operations in a batch;
    ``rounds``: batches of each cell; ``share``: the copying ranks share one buffer;
    ``config_source``: the origin of the configuration
    (:meth:`runner.runtimes.intranode.published.TunedLibrary.from_options`).
    """

    program: str
    size: int
    width: int
    blocks: int
    absent: int
    rows: int
    spread: int
    times: int
    rounds: int
    share: bool
    read: bool
    pin: bool
    probe_chunk: int
    cells: tuple[Cell, ...]
    config: intranode.Config
    config_source: str
    seed: int
    help: str | None = None
    """The text to print instead of running."""


def parse(arguments: list[str], ranks: int) -> Options:
    """The options; raises :class:`AppUsageError`."""
    parser = OptionParser(
        "python -m runner.programs.apps.cab", "Copies and sums in chunks that waiting ranks steal."
    )
    add = parser.add_argument
    text = "; ".join(f"{name}: {words}" for name, words in PROGRAMS.items())
    add("--program", default="pingpong", metavar="NAME", help=f"default pingpong. {text}")
    add("--size", type=positive, metavar="BYTES",
        help="bytes of a message, face or sum, or that a rank copies; default 1048576")  # fmt: skip
    add("--width", type=positive, metavar="N", help="product: rows of a block; default 128")
    add("--blocks", type=positive, metavar="N",
        help="product: blocks along a side of a matrix; default 6")  # fmt: skip
    add("--absent", type=int, metavar="PERCENT",
        help="product: chance that a block of A or B is zero; default 50")  # fmt: skip
    add("--rows", type=positive, default=256, metavar="N", help="rows of a face; default 256")
    add("--spread", type=positive, default=2, metavar="N",
        help="rows of the array for one of the face; default 2")  # fmt: skip
    add("--times", type=positive, default=None, metavar="N",
        help="operations in a batch; default: about 64 MiB")  # fmt: skip
    add("--rounds", type=positive, default=5, metavar="N",
        help="batches of each cell, in random order in each round; default 5")  # fmt: skip
    add("--helpers", type=_numbers, default=None, metavar="N,N,...",
        help="ranks that may help, 0: no stealing; for saturation: ranks that copy; "
        "default: all others, for saturation 1 to all")  # fmt: skip
    add("--chunks", type=_numbers, default=(0,), metavar="BYTES,...",
        help="bytes of a chunk, for all messages; default: as configured")  # fmt: skip
    add("--share", action="store_true", help="saturation: the ranks share one buffer of --size")
    add("--read", action="store_true", help="pingpong: the receiver reads the message")
    add("--probe-chunk", type=positive, default=65536, metavar="BYTES",
        help="saturation: bytes that are copied at once; default 65536")  # fmt: skip
    add("--pin", action="store_true", help="each rank stays on a core of its own")
    add("--seed", type=positive, default=1, help="seed of the order of cells; default 1")
    intranode.add_arguments(parser)
    options = parser.parse_args(arguments)
    try:
        config, config_source = intranode.CAB.from_options(options)
        cells = _cells(options, ranks)
        for cell in cells:
            cell.config(config)
    except IntranodeError as error:
        raise AppUsageError(str(error), code=error.code) from None
    _check(options, ranks)
    product = options.program == "product"
    values = {name: getattr(options, name) for name in _PRODUCT}
    own = {name: _PRODUCT[name] if value is None else value for name, value in values.items()}
    size = 8 * own["width"] ** 2 if product else options.size or _SIZE
    return parser.record(
        Options,
        options,
        **own,
        size=size,
        times=options.times or (_FEW if product else min(max(_BATCH_BYTES // size, _FEW), _MANY)),
        cells=cells,
        config=config,
        config_source=config_source,
    )


def _numbers(text: str) -> tuple[int, ...]:
    words = text.split(",")
    if not all(word.isascii() and word.isdigit() for word in words):
        raise argparse.ArgumentTypeError(f"expected whole numbers as 0,1,2, not {text!r}")
    return tuple(map(int, words))


def _cells(options: argparse.Namespace, ranks: int) -> tuple[Cell, ...]:
    probe = options.program == "saturation"
    workers = options.helpers
    if workers is None:
        workers = tuple(range(1, ranks + 1)) if probe else (ranks - 1,)
    least, most = (1, ranks) if probe else (0, ranks - 1)
    for number in workers:
        if not least <= number <= most and not options.help:
            raise AppUsageError(
                f"--helpers {number}: expected {least} to {most} with {ranks} ranks; start more "
                "with mpirun -n",
                code="app_option.ranks",
            )
    # Nothing is divided without helpers.
    cells = (Cell(n, chunk if n else 0) for n in workers for chunk in options.chunks)
    return tuple(dict.fromkeys(cells))


def _check(options: argparse.Namespace, ranks: int) -> None:
    """Refuse unsupported options."""
    program = options.program
    if program not in PROGRAMS:
        raise AppUsageError(
            f"--program {program}: expected one of {', '.join(PROGRAMS)}", code="app_option.unknown"
        )
    if options.help:
        return
    least = LEAST_RANKS.get(program, 2)
    if ranks < least:
        raise AppUsageError(
            f"--program {program} needs at least {least} ranks; start it with mpirun -n {least}",
            code="app_option.ranks",
        )
    unit = 8 * options.rows if program in ("pack", "strided") else 8
    if program != "saturation" and (options.size or unit) % unit:
        raise AppUsageError(
            f"--size {options.size}: expected a multiple of {unit} bytes for --program {program}",
            code="app_option.invalid",
        )
    for switch, able in (
        *(("share", "saturation"), ("read", "pingpong")),
        *((name, "product") for name in _PRODUCT),
    ):
        if getattr(options, switch) not in (None, False) and program != able:
            raise AppUsageError(
                f"--{switch} needs --program {able}", code="app_option.not_applicable"
            )
    if program == "product" and options.size is not None:
        raise AppUsageError(
            f"--size {options.size} means nothing to --program product: leave it out, and say with "
            "--width how many rows a block has",
            code="app_option.not_applicable",
        )
    if options.absent is not None and not 0 <= options.absent <= 99:
        raise AppUsageError(
            f"--absent {options.absent}: expected 0 to 99 percent", code="app_option.range"
        )
