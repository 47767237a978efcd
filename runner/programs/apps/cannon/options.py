"""The command line of Cannon."""

from __future__ import annotations

from dataclasses import dataclass

from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.common.grid import Shape, parse_shape
from runner.programs.apps.common.mated import (
    MatedOptions,
    add_common,
    chosen_input,
    config_of,
    level_of,
)
from runner.programs.apps.common.options import OptionParser, positive

VARIANTS = ("mpi", "overlap", "mate")
INPUTS = {
    "tiny": (48, 1, "48 x 48, for tests"),
    "small": (384, 64, "384 x 384, 64 times: messages of 576 KiB between two ranks"),
    "default": (1152, 20, "1152 x 1152, 20 times: about a second on two cores"),
    "large": (2304, 3, "2304 x 2304, 3 times: messages of 20 MiB"),
}
"""Rows, multiplications, description.

Rows are multiples of 48, so that 2, 3, 4, 6, 8, 12 and 16 divide them.
"""


@dataclass(frozen=True, kw_only=True)
class Options(MatedOptions):
    """The options of one run."""

    size: int
    iterations: int
    grid: Shape | None
    verify: bool


def thread_level(arguments: list[str]) -> str:
    """The thread level for a command line; a wrong command line is reported once MPI runs."""
    return level_of(parse, arguments)


def parse(arguments: list[str]) -> Options:
    """The options; raises :class:`AppUsageError`."""
    parser = OptionParser("python -m runner.programs.apps.cannon", "C = A B by Cannon's algorithm.")
    inputs = ", ".join(f"{name} ({words})" for name, (_, _, words) in INPUTS.items())
    add = parser.add_argument
    add("--input", metavar="NAME", help=f"one of: {inputs}")
    add("--size", type=positive, metavar="N", help="rows and columns, instead of --input")
    add("--iterations", type=positive, metavar="I", help="multiplications (default: the input's)")
    add("--grid", metavar="PxQ", help="processes in rows and columns (default: the squarest)")
    add("--verify", choices=("exact", "none"), default="exact", help="every bit of the product")
    add_common(parser, VARIANTS)
    options = parser.parse_args(arguments)
    name = chosen_input(INPUTS, options.input, ("--size", options.size))
    size, iterations = (options.size, 1) if name is None else INPUTS[name][:2]
    config = config_of(options)
    if options.variant != "mate" and config.ranks_per_process > 1:
        raise AppUsageError(
            f"--workers and --ranks-per-process mean nothing to --variant {options.variant}",
            code="app_option.ranks",
        )
    if config.rank_map is not None or config.local_grid is not None:
        raise AppUsageError(
            "--rank-map and --local-grid: Cannon's blocks have their own places",
            code="app_option.not_applicable",
        )
    return Options(
        input=name,
        size=size,
        iterations=options.iterations or iterations,
        grid=parse_shape(options.grid, "--grid", 2) if options.grid else None,
        verify=options.verify == "exact",
        repetitions=options.repetitions,
        variant=options.variant,
        config=config,
        help=parser.format_help() if options.help else None,
    )
