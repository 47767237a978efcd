"""The command line of the hydrodynamics step."""

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

VARIANTS = ("mpi", "mate")
INPUTS: dict[str, tuple[Shape, int, str]] = {
    "tiny": ((12, 10, 8), 5, "12x10x8 cells, 5 steps: for tests"),
    "small": ((32, 32, 32), 60, "32x32x32 cells, 60 steps: bound by messages"),
    "default": ((64, 64, 64), 100, "64x64x64 cells, 100 steps: about a second on two cores"),
    "long": ((512, 32, 32), 30, "512x32x32 cells, 30 steps: small faces; for latency"),
}
"""Cells along x, y, z, steps, description."""
ENERGIES: dict[tuple[int, ...], float] = {
    (12, 10, 8, 5): 307.0341796482891,
    (32, 32, 32, 60): 11306.850213817157,
    (64, 64, 64, 100): 88592.42348585321,
    (512, 32, 32, 30): 180197.14744986058,
}
"""Energies at the end of a serial run, by size and steps (tests/apps/test_cloverleaf3d.py)."""


@dataclass(frozen=True, kw_only=True)
class Options(MatedOptions):
    """The options of one run."""

    size: Shape
    steps: int
    grid: Shape | None
    verify: str


def thread_level(arguments: list[str]) -> str:
    """The thread level for a command line; a wrong command line is reported once MPI runs."""
    return level_of(parse, arguments)


def parse(arguments: list[str]) -> Options:
    """The options; raises :class:`AppUsageError`."""
    parser = OptionParser(
        "python -m runner.programs.apps.cloverleaf3d",
        "Compressible gas in a box with walls, explicit steps.",
    )
    inputs = ", ".join(f"{name} ({words})" for name, (_, _, words) in INPUTS.items())
    add = parser.add_argument
    add("--input", metavar="NAME", help=f"one of: {inputs}")
    add("--size", metavar="NXxNYxNZ", help="cells, instead of --input")
    add("--steps", type=positive, metavar="S", help="time steps (default: the input's, or 20)")
    add("--grid", metavar="PXxPYxPZ", help="process grid (default: the least surface)")
    checks = "energy: the stored one, no mass lost; full: also every bit of a serial run"
    add("--verify", choices=("energy", "full", "none"), default="energy", help=checks)
    add_common(parser, VARIANTS)
    options = parser.parse_args(arguments)
    name = chosen_input(INPUTS, options.input, ("--size", options.size))
    size, steps = (parse_shape(options.size, "--size", 3), 20) if name is None else INPUTS[name][:2]
    config = config_of(options, "mate" if options.variant == "mate" else "")
    if options.variant != "mate" and config.ranks_per_process > 1:
        raise AppUsageError(
            "--workers and --ranks-per-process mean nothing to --variant mpi",
            code="app_option.ranks",
        )
    if config.rank_map is not None:
        raise AppUsageError(
            "--rank-map: the grid is cut in equal shares, rank by rank", code="app_option.ranks"
        )
    return Options(
        input=name,
        size=size,
        steps=options.steps or steps,
        grid=parse_shape(options.grid, "--grid", 3) if options.grid else None,
        verify=options.verify,
        repetitions=options.repetitions,
        variant=options.variant,
        config=config,
        help=parser.format_help() if options.help else None,
    )
