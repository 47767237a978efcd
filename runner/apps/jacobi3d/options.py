"""The command line of Jacobi3D."""

from __future__ import annotations

from dataclasses import dataclass

from runner.apps.common_errors import AppUsageError
from runner.apps.common_grid import Shape, parse_shape
from runner.apps.common_options import OptionParser, positive
from runner.apps.jacobi3d.inputs import INPUTS

VARIANTS = ("mpi",)
DEFAULT_INPUT = "default"
DEFAULT_ITERATIONS = 100
DEFAULT_BLOCK = 64


@dataclass(frozen=True)
class Options:
    """What a run does; ``input`` is None for a size given by hand, ``help`` the text to print."""

    input: str | None
    size: Shape
    iterations: int
    grid: Shape | None
    block: int
    verify: str
    repetitions: int
    variant: str
    help: str | None


def build_parser() -> OptionParser:
    parser = OptionParser(
        "python -m runner.apps.jacobi3d", "Poisson's equation on a box by damped Jacobi updates."
    )
    known = ", ".join(f"{name} ({i.description})" for name, i in INPUTS.items())
    add = parser.add_argument
    add("--input", metavar="NAME", help=f"one of: {known}")
    add("--size", metavar="N|NXxNYxNZ", help="cells, instead of --input")
    add("--iterations", type=positive, metavar="I", help="updates (default: the input's, or 100)")
    add("--grid", metavar="PXxPYxPZ", help="process grid (default: the least surface)")
    add("--block", type=positive, default=DEFAULT_BLOCK, metavar="B", help="cache block in y and z")
    add("--verify", choices=("residual", "full", "none"), default="residual",
        help="full: every bit against a serial run")  # fmt: skip
    add("--repetitions", type=positive, default=1, metavar="K", help="solve K times")
    add("--variant", choices=VARIANTS, default="mpi", help="how the ranks work together")
    return parser


def parse(arguments: list[str]) -> Options:
    """Raises :class:`AppUsageError`."""
    parser = build_parser()
    given = parser.parse_args(arguments)
    name, size, iterations = _problem(given.input, given.size)
    return Options(
        input=name,
        size=size,
        iterations=given.iterations or iterations,
        grid=parse_shape(given.grid, "--grid", 3) if given.grid else None,
        block=given.block,
        verify=given.verify,
        repetitions=given.repetitions,
        variant=given.variant,
        help=parser.format_help() if given.help else None,
    )


def _problem(name: str | None, size: str | None) -> tuple[str | None, Shape, int]:
    """Name, size and iterations of the input, or of a size given by hand."""
    if size is not None:
        if name is not None:
            raise AppUsageError(f"--input {name} and --size {size} exclude each other")
        cube = size if "x" in size.lower() else f"{size}x{size}x{size}"
        return None, parse_shape(cube, "--size", 3), DEFAULT_ITERATIONS
    name = name or DEFAULT_INPUT
    if name not in INPUTS:
        raise AppUsageError(f"--input {name} is unknown; there are {', '.join(INPUTS)}")
    return name, INPUTS[name].size, INPUTS[name].iterations
