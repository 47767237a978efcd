"""The command line of the loops over collectives."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from itertools import chain, product

from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.common.options import OptionParser, positive
from runner.runtimes.intranode import IntranodeError
from runner.runtimes.intranode.mcoll import MCOLL, Config
from runner.runtimes.intranode.mcoll.config import AUTO, FORMS

_TIMES = 1000
_BANDS = ((1024, 1), (8192, 10), (131071, 100))
"""Up to this number of bytes, a batch has this part of the operations (Ouyang 4.7); else a
thousandth."""
_LEAST = 3


@dataclass(frozen=True)
class Cell:
    """One column of a sweep: ``size`` in bytes of a rank or of a vector.

    ``form``: an algorithm, or ``auto`` for the configured one; ``objects``, ``radix``: None for the
    configured ones.
    """

    size: int
    form: str
    objects: int | None
    radix: int | None

    def config(self, config: Config, operation: str) -> Config:
        """The configuration of this cell; raises :class:`runner.runtimes.intranode.ConfigError`."""
        fields: dict[str, str | int] = {}
        if self.form != AUTO:
            fields[operation] = self.form
        if self.objects is not None:
            fields |= {"objects": self.objects, "radix": 0}
        if self.radix is not None:
            fields["radix"] = self.radix
        return replace(config, **fields)  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of one run; ``times``: operations of a batch with the smallest sizes."""

    operation: str
    cells: tuple[Cell, ...]
    nodes: int
    times: int
    rounds: int
    config: Config
    config_source: str
    seed: int
    help: str | None = None
    """The text to print instead of running."""

    def calls(self, size: int) -> int:
        """Operations of a batch at a size."""
        part = next((part for most, part in _BANDS if size <= most), 1000)
        return max(self.times // part, min(_LEAST, self.times))


def parse(arguments: list[str]) -> Options:
    """The options; raises :class:`AppUsageError`."""
    parser = OptionParser(
        "python -m runner.programs.apps.mcoll", "Collectives with several senders on each node."
    )
    add = parser.add_argument
    forms = ", ".join(dict.fromkeys(chain(*FORMS.values())))
    add("--operation", default="allgather", metavar="NAME",
        help=f"{', '.join(FORMS)}; default allgather")  # fmt: skip
    add("--sizes", type=_numbers, default=(8,), metavar="BYTES,...",
        help="bytes of each rank, or of the vector; default 8")  # fmt: skip
    add("--forms", default=AUTO, metavar="NAME,...",
        help=f"algorithms: {forms}; auto: as configured; default auto")  # fmt: skip
    add("--compare-objects", type=_numbers, default=(None,), metavar="N,...",
        help="numbers of objects to compare; 0: all; default: as configured")  # fmt: skip
    add("--compare-radix", type=_numbers, default=(None,), metavar="N,...",
        help="radixes to compare; 0: objects + 1; default: as configured")  # fmt: skip
    add("--nodes", type=int, default=0, metavar="N",
        help="assumed nodes that one machine is split into; default 0")  # fmt: skip
    add("--times", type=positive, default=_TIMES, metavar="N",
        help="operations of a batch up to 1 KiB, a tenth up to 8 KiB, a hundredth below 128 KiB; "
        f"default {_TIMES}")  # fmt: skip
    add("--rounds", type=positive, default=5, metavar="N",
        help="batches of each combination, in random order in each round; default 5")  # fmt: skip
    add("--seed", type=positive, default=1, help="seed of the order; default 1")
    MCOLL.add_arguments(parser.add_argument_group("collectives"))
    options = parser.parse_args(arguments)
    try:
        config, config_source = MCOLL.from_options(options)
        cells = _cells(options)
        for cell in cells:
            cell.config(config, options.operation)
    except IntranodeError as error:
        raise AppUsageError(str(error), code=error.code) from None
    return Options(
        operation=options.operation,
        cells=cells,
        nodes=options.nodes,
        times=options.times,
        rounds=options.rounds,
        config=config,
        config_source=config_source,
        seed=options.seed,
        help=parser.format_help() if options.help else None,
    )


def _numbers(text: str) -> tuple[int, ...]:
    words = text.split(",")
    if not all(word.isascii() and word.isdigit() for word in words):
        raise argparse.ArgumentTypeError(f"expected whole numbers as 0,1,8, not {text!r}")
    return tuple(map(int, words))


def _cells(options: argparse.Namespace) -> tuple[Cell, ...]:
    """All combinations; the library's own has no objects.  Raises :class:`AppUsageError`."""
    operation, forms = options.operation, options.forms.split(",")
    if operation not in FORMS:
        raise AppUsageError(
            f"--operation {operation}: expected one of {', '.join(FORMS)}",
            code="app_option.unknown",
        )
    if options.nodes < 0:
        raise AppUsageError(f"--nodes {options.nodes}: expected 0 or more", code="app_option.ranks")
    choices = (AUTO, *FORMS[operation])
    for form in forms:
        if form not in choices:
            raise AppUsageError(
                f"--forms {form}: expected some of {', '.join(choices)} for {operation}",
                code="app_option.unknown",
            )
    for size in options.sizes:
        if operation == "allreduce" and size % 8:
            raise AppUsageError(
                f"--sizes {size}: expected a multiple of 8 bytes for allreduce",
                code="app_option.invalid",
            )
    cells = []
    for size, form in product(options.sizes, forms):
        if form == "library":
            cells.append(Cell(size, form, None, None))
            continue
        cells += [
            Cell(size, form, k, radix)
            for k, radix in product(options.compare_objects, options.compare_radix)
        ]
    return tuple(dict.fromkeys(cells))
