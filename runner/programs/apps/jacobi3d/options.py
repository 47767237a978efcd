"""The command line of Jacobi3D."""

from __future__ import annotations

from dataclasses import dataclass

from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.common.grid import Shape, parse_shape, parse_size
from runner.programs.apps.common.mated import add_common, chosen_input, level_of
from runner.programs.apps.common.models import ModelOptions, models_of
from runner.programs.apps.common.options import OptionParser, positive
from runner.programs.apps.jacobi3d.inputs import INPUTS
from runner.runtimes import mate, tarragon, tpod

VARIANTS = ("mpi", "over", "overlap", "barrier", "threads", "openmp", "mate", "tarragon", "tpod")
DEFAULT_ITERATIONS = 100
DEFAULT_BLOCK = 64

_TILES = {"block_size", "ranks_per_process", "local_grid"}
_SWITCHES = {
    "mpi": {"block_size"},
    "openmp": {"block_size"},
    "overlap": _TILES,
    "threads": _TILES | {"workers", "affinity"},
    "tarragon": _TILES | {"workers", "affinity", "thread_level"},
    "tpod": {"block_size", "workers", "affinity", "thread_level"},
}
"""Switches of the runtime that also apply to the variants without it."""


@dataclass(frozen=True, kw_only=True)
class Options(ModelOptions):
    """The options of one run."""

    size: Shape
    iterations: int
    grid: Shape | None
    block: int
    padding: int
    verify: str


def thread_level(arguments: list[str]) -> str:
    """The thread level for a command line; a wrong command line is reported once MPI runs."""
    return level_of(parse, arguments)


def build_parser() -> OptionParser:
    parser = OptionParser(
        "python -m runner.programs.apps.jacobi3d",
        "Poisson's equation on a box by damped Jacobi updates.",
    )
    inputs = ", ".join(f"{name} ({i.description})" for name, i in INPUTS.items())
    add = parser.add_argument
    add("--input", metavar="NAME", help=f"one of: {inputs}")
    add("--size", metavar="N|NXxNYxNZ", help="cells, instead of --input")
    add("--iterations", type=positive, metavar="I", help="updates (default: the input's, or 100)")
    add("--grid", metavar="PXxPYxPZ", help="process grid (default: the least surface)")
    add("--block", type=positive, metavar="B",
        help=f"cache block in y and z (default: --block-size, {DEFAULT_BLOCK})")  # fmt: skip
    add("--padding", type=positive, default=1, metavar="K",
        help="make each message K times as long as its face; default 1")  # fmt: skip
    add("--verify", choices=("residual", "full", "none"), default="residual",
        help="full: every bit against a serial run")  # fmt: skip
    add_common(parser, VARIANTS)
    tarragon.add_arguments(parser, mate=True)
    tpod.add_arguments(parser, calls=True)
    return parser


def parse(arguments: list[str]) -> Options:
    """The options; raises :class:`AppUsageError`."""
    parser = build_parser()
    options = parser.parse_args(arguments)
    name, size, iterations = _problem(options.input, options.size)
    config, graph, tasks = models_of(options, "Jacobi3D", VARIANTS, _SWITCHES, own_calls=True)
    _check_parts(options.variant, config)
    return Options(
        input=name,
        size=size,
        iterations=options.iterations or iterations,
        grid=parse_shape(options.grid, "--grid", 3) if options.grid else None,
        block=options.block or config.block_size,
        padding=options.padding,
        tarragon=graph,
        tpod=tasks,
        verify=options.verify,
        repetitions=options.repetitions,
        variant=options.variant,
        config=config,
        help=parser.format_help() if options.help else None,
    )


def _problem(name: str | None, size: str | None) -> tuple[str | None, Shape, int]:
    """Name, size and iterations of the input, or of a size given as numbers."""
    input_name = chosen_input(INPUTS, name, ("--size", size))
    if input_name is not None:
        return input_name, INPUTS[input_name].size, INPUTS[input_name].iterations
    assert size is not None
    return None, parse_size(size), DEFAULT_ITERATIONS


def _check_parts(variant: str, config: mate.Config) -> None:
    """Refuse threads without a part, or with several; raises :class:`AppUsageError`."""
    if variant == "threads" and config.ranks_per_process != config.workers:
        raise AppUsageError(
            f"--variant threads: {config.workers} workers share {config.ranks_per_process} parts "
            "(--ranks-per-process, or the product of --local-grid): expected one part for each",
            code="app_option.ranks",
        )
