"""The command line of Needleman-Wunsch."""

from __future__ import annotations

from dataclasses import dataclass

from runner.programs.apps.common import tarragon as common_tarragon
from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.common.mated import level_of
from runner.programs.apps.common.options import OptionParser, positive
from runner.runtimes import tarragon

VARIANTS = {
    "mpi": "blocking messages, even rows send first",
    "async": "receives posted ahead, sends retired late",
    "block": "Tarragon, a task for each block",
    "panel": "Tarragon, a task for each row of blocks",
}
TASKS = ("block", "panel")
INPUTS = {
    "tiny": (600, "600 bases, for tests"),
    "small": (8192, "8192 bases: a tenth of a second on two cores"),
    "default": (24576, "24,576 bases: about a second on two cores"),
    "large": (65536, "65,536 bases, as on a node of the thesis"),
}
"""Bases of each sequence, description."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of one run; ``rows`` and ``columns`` are those of a block."""

    input: str | None
    length: int
    rows: int
    columns: int
    variant: str
    window: int
    seed: int
    verify: bool
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
        "python -m runner.programs.apps.needleman_wunsch",
        "Align two DNA sequences (the score only).",
    )
    inputs = ", ".join(f"{name} ({words})" for name, (_, words) in INPUTS.items())
    variants = ", ".join(f"{name} ({words})" for name, words in VARIANTS.items())
    add = parser.add_argument
    add("--input", metavar="NAME", help=f"one of: {inputs}")
    add("--length", type=positive, metavar="N", help="bases, instead of --input")
    add("--variant", default="mpi", help=f"one of: {variants}")
    add("--rows", type=positive, default=512, metavar="R", help="rows of a block; default 512")
    add("--columns", type=positive, default=512, metavar="C", help="columns; default 512")
    add("--window", type=positive, default=4, metavar="W",
        help="receives that --variant async posts ahead; default 4")  # fmt: skip
    add("--seed", type=positive, default=1, metavar="S", help="of the sequences; default 1")
    add("--verify", choices=("score", "none"), default="score", help="compare the score")
    tarragon.add_arguments(parser)
    options = parser.parse_args(arguments)
    config = common_tarragon.config_of(options, VARIANTS, TASKS, TASKS)
    if options.input is not None and options.length is not None:
        raise AppUsageError("--input and --length exclude each other", code="app_option.conflict")
    name = None if options.length is not None else options.input or "default"
    if name is not None and name not in INPUTS:
        raise AppUsageError(
            f"--input {name}: expected one of {', '.join(INPUTS)}", code="app_option.unknown"
        )
    length = options.length if name is None else INPUTS[name][0]
    return Options(
        input=name,
        length=length,
        rows=min(options.rows, length),
        columns=min(options.columns, length),
        variant=options.variant,
        window=options.window,
        seed=options.seed,
        verify=options.verify == "score",
        config=config,
        help=parser.format_help() if options.help else None,
    )


def thread_level(arguments: list[str]) -> str:
    """The thread level for a command line; a wrong command line is reported once MPI runs."""
    return level_of(parse, arguments)
