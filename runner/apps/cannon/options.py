"""The command line of Cannon."""

from __future__ import annotations

from dataclasses import dataclass

from runner import mate
from runner.apps.common_errors import AppError, AppUsageError
from runner.apps.common_grid import Shape, parse_shape
from runner.apps.common_options import OptionParser, positive
from runner.mate.options import add_arguments, from_arguments

VARIANTS = ("mpi", "overlap", "mate")
INPUTS = {
    "tiny": (48, 1, "48 x 48, for tests"),
    "small": (384, 64, "384 x 384, 64 times: messages of 576 KiB between two ranks"),
    "default": (1152, 20, "1152 x 1152, 20 times: about a second on two cores"),
    "large": (2304, 3, "2304 x 2304, 3 times: messages of 20 MiB"),
}
"""Rows, multiplications, what it is.  Multiples of 48: cut by 2, 3, 4, 6, 8, 12, 16."""


@dataclass(frozen=True)
class Options:
    """What a run does; ``help`` is the text to print."""

    input: str | None
    size: int
    iterations: int
    grid: Shape | None
    verify: bool
    repetitions: int
    variant: str
    config: mate.Config
    help: str | None

    @property
    def thread_level(self) -> str:
        """What MPI must be started with, in the words of mpi4py."""
        return self.config.thread_level if self.variant == "mate" else "single"


def thread_level(arguments: list[str]) -> str:
    """The thread level for a command line; a wrong one is told about once MPI runs."""
    try:
        return parse(arguments).thread_level
    except AppError:
        return "single"


def parse(arguments: list[str]) -> Options:
    """Raises :class:`AppUsageError`."""
    parser = OptionParser("python -m runner.apps.cannon", "C = A B by Cannon's algorithm.")
    known = ", ".join(f"{name} ({words})" for name, (_, _, words) in INPUTS.items())
    add = parser.add_argument
    add("--input", metavar="NAME", help=f"one of: {known}")
    add("--size", type=positive, metavar="N", help="rows and columns, instead of --input")
    add("--iterations", type=positive, metavar="I", help="multiplications (default: the input's)")
    add("--grid", metavar="PxQ", help="processes in rows and columns (default: the squarest)")
    add("--verify", choices=("exact", "none"), default="exact", help="every bit of the product")
    add("--repetitions", type=positive, default=1, metavar="K", help="solve K times")
    add("--variant", choices=VARIANTS, default="mpi", help="how the ranks work together")
    add_arguments(parser)
    given = parser.parse_args(arguments)
    if given.size is not None and given.input is not None:
        raise AppUsageError(f"--input {given.input} and --size {given.size} exclude each other")
    name = None if given.size is not None else given.input or "default"
    if name is not None and name not in INPUTS:
        raise AppUsageError(f"--input {name} is unknown; there are {', '.join(INPUTS)}")
    size, iterations = (given.size, 1) if name is None else INPUTS[name][:2]
    try:
        config = from_arguments(given)
    except mate.MateError as error:
        raise AppUsageError(str(error)) from None
    if given.variant != "mate" and config.ranks_per_process > 1:
        raise AppUsageError(
            f"--workers and --ranks-per-process mean nothing to --variant {given.variant}"
        )
    if config.rank_map is not None or config.local_grid is not None:
        raise AppUsageError("--rank-map and --local-grid: Cannon's blocks have their own places")
    return Options(
        input=name,
        size=size,
        iterations=given.iterations or iterations,
        grid=parse_shape(given.grid, "--grid", 2) if given.grid else None,
        verify=given.verify == "exact",
        repetitions=given.repetitions,
        variant=given.variant,
        config=config,
        help=parser.format_help() if given.help else None,
    )
