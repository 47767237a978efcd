"""The command line of the ring."""

from __future__ import annotations

from dataclasses import dataclass

from runner.programs.apps.common import tarragon as common_tarragon
from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.common.mated import level_of
from runner.programs.apps.common.options import OptionParser, positive
from runner.runtimes import tarragon

VARIANTS = ("mpi", "tarragon", "compiled")
TASKS = ("tarragon", "compiled")


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of one run. ``tasks``: places of the ring, 0 for one per process."""

    variant: str
    size: int
    laps: int
    tasks: int
    config: tarragon.Config
    help: str | None = None
    """The text to print instead of running."""

    @property
    def thread_level(self) -> str:
        """The thread level that MPI must be started with, as mpi4py names it."""
        return common_tarragon.level(self.variant, TASKS, self.config)


def parse(arguments: list[str], ranks: int) -> Options:
    """The options; raises :class:`AppUsageError`."""
    parser = OptionParser("python -m runner.programs.apps.ring", "Send a message round a ring.")
    add = parser.add_argument
    add("--variant", default="mpi",
        help="mpi (a place a rank), tarragon (tasks), compiled (compiled tasks)")  # fmt: skip
    add("--size", type=positive, default=8, metavar="BYTES", help="bytes of the message; default 8")
    add("--laps", type=positive, default=1000, metavar="N", help="timed laps; default 1000")
    add("--tasks", type=positive, default=None, metavar="N",
        help="places of the ring of tasks; default: one for each rank")  # fmt: skip
    tarragon.add_arguments(parser)
    options = parser.parse_args(arguments)
    config = common_tarragon.config_of(options, VARIANTS, TASKS, ("compiled",))
    if options.variant == "mpi" and options.tasks is not None:
        raise AppUsageError(
            "--tasks needs --variant tarragon or --variant compiled",
            code="app_option.not_applicable",
        )
    if options.variant == "mpi" and ranks < 2 and not options.help:
        raise AppUsageError(
            "--variant mpi needs at least 2 ranks; start it with mpirun -n 2",
            code="app_option.ranks",
        )
    tasks = options.tasks or ranks
    if tasks < 2 and not options.help:
        raise AppUsageError(
            "a ring needs at least 2 tasks: --tasks 2", code="app_option.not_applicable"
        )
    if tasks < ranks:
        raise AppUsageError(
            f"--tasks {tasks}: expected one for each of the {ranks} ranks", code="app_option.ranks"
        )
    return Options(
        variant=options.variant,
        size=options.size,
        laps=options.laps,
        tasks=tasks,
        config=config,
        help=parser.format_help() if options.help else None,
    )


def thread_level(arguments: list[str]) -> str:
    """The thread level for a command line; a wrong command line is reported once MPI runs."""
    return level_of(lambda words: parse(words, 2), arguments)
