"""The command line of the sparse LU factorization."""

from __future__ import annotations

from dataclasses import dataclass

from runner.programs.apps.common import tarragon as common_tarragon
from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.common.grid import parse_shape
from runner.programs.apps.common.mated import level_of
from runner.programs.apps.common.options import OptionParser, positive
from runner.programs.apps.sparse_lu.matrices import MATRICES
from runner.runtimes import tarragon

VARIANTS = {
    "mpi": "step by step, with broadcasts",
    "tarragon": "a graph of tasks",
}
TASKS = ("tarragon",)


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of one run; ``mesh``: rows and columns of processes, None for the squarest."""

    input: str
    size: int
    width: int
    relax: int
    mesh: tuple[int, int] | None
    variant: str
    config: tarragon.Config
    help: str | None = None
    """The text to print instead of running."""

    @property
    def thread_level(self) -> str:
        """The thread level that MPI must be started with, as mpi4py names it."""
        return common_tarragon.level(self.variant, TASKS, self.config)


def parse(arguments: list[str]) -> Options:
    """The options; raises :class:`AppUsageError`."""
    parser = OptionParser(
        "python -m runner.programs.apps.sparse_lu", "Factor a sparse matrix: A = L U."
    )
    inputs = ", ".join(f"{name} ({words})" for name, (_, _, words) in MATRICES.items())
    variants = ", ".join(f"{name} ({words})" for name, words in VARIANTS.items())
    add = parser.add_argument
    add("--input", metavar="NAME", default="poisson", help=f"one of: {inputs}")
    add("--size", type=positive, metavar="N", help="rows, or cells along a side; not the input's")
    add("--variant", default="mpi", help=f"one of: {variants}")
    add("--width", type=positive, default=64, metavar="W",
        help="most columns of a supernode; default 64")  # fmt: skip
    add("--relax", type=positive, default=16, metavar="W",
        help="supernodes with fewer columns are put together; default 16")  # fmt: skip
    add("--mesh", metavar="RxC", help="mesh of processes (default: the squarest)")
    tarragon.add_arguments(parser)
    options = parser.parse_args(arguments)
    config = common_tarragon.config_of(options, VARIANTS, TASKS)
    if options.input not in MATRICES:
        raise AppUsageError(
            f"--input {options.input}: expected one of {', '.join(MATRICES)}",
            code="app_option.unknown",
        )
    mesh = None
    if options.mesh:
        rows, columns = parse_shape(options.mesh, "--mesh", 2)
        mesh = rows, columns
    return Options(
        input=options.input,
        size=options.size or MATRICES[options.input][1],
        width=options.width,
        relax=options.relax,
        mesh=mesh,
        variant=options.variant,
        config=config,
        help=parser.format_help() if options.help else None,
    )


def thread_level(arguments: list[str]) -> str:
    """The thread level for a command line; a wrong command line is reported once MPI runs."""
    return level_of(parse, arguments)
