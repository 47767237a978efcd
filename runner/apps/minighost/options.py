"""The command line of miniGhost."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass

from runner import tpod
from runner.apps import common_tpod
from runner.apps.common_errors import AppUsageError
from runner.apps.common_grid import Shape, parse_shape, parse_size
from runner.apps.common_mated import chosen_input, level_of
from runner.apps.common_options import OptionParser, meaningless, positive
from runner.apps.minighost.inputs import INPUTS, Input
from runner.mate.config import AFFINITIES, THREAD_LEVELS
from runner.tpod.config import CALLS, POSTING, QUEUES

VARIANTS = {
    "mpi": "each process sweeps its cells by itself",
    "threads": "--workers threads share the sweep of a process",
    "tpod": "blocks are tasks that --workers threads run",
}
CUT = ("threads", "tpod")
"""Variants with several threads in a process."""
MESSAGES = ("aggregated", "variable")
DEFAULT_STEPS, DEFAULT_VARIABLES = 20, 1
MOST_VARIABLES = 5461
"""Each variable may have six tags, and MPI promises tags up to 32767."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of one run; ``input`` is None for a size in numbers."""

    input: str | None
    size: Shape
    steps: int
    variables: int
    variant: str
    workers: int
    affinity: str
    messages: str
    order: str
    prepost: bool
    grid: Shape | None
    verify: str
    repetitions: int
    tpod: tpod.Config
    help: str | None = None
    """The text to print instead of running."""

    @property
    def thread_level(self) -> str:
        """The thread level that MPI must be started with, as mpi4py names it."""
        if self.variant == "tpod":
            return tpod.thread_level(self.tpod)
        return "funneled" if self.variant == "threads" else "single"

    @property
    def groups(self) -> list[range]:
        """The variables that are exchanged together, in the order of the exchanges."""
        if self.messages == "aggregated":
            return [range(self.variables)]
        return [range(n, n + 1) for n in range(self.variables)]


def thread_level(arguments: list[str]) -> str:
    """The thread level for a command line; a wrong command line is reported once MPI runs."""
    return level_of(parse, arguments)


def build_parser() -> OptionParser:
    parser = OptionParser(
        "python -m runner.apps.minighost", "Heat in a box: a 7-point stencil over variables."
    )
    known = ", ".join(f"{name} ({i.description})" for name, i in INPUTS.items())
    variants = ", ".join(f"{name} ({words})" for name, words in VARIANTS.items())
    add = parser.add_argument
    add("--input", metavar="NAME", help=f"one of: {known}")
    add("--size", metavar="N|NXxNYxNZ", help="cells, instead of --input")
    add("--steps", type=positive, metavar="S",
        help=f"time steps (default: the input's, or {DEFAULT_STEPS})")  # fmt: skip
    add("--variables", type=positive, metavar="V",
        help=f"grids of this size (default: the input's, or {DEFAULT_VARIABLES})")  # fmt: skip
    add("--variant", choices=VARIANTS, default="mpi", help=variants)
    add("--workers", type=positive, metavar="T",
        help="threads of a process with --variant threads or tpod; default 1")  # fmt: skip
    add("--affinity", choices=AFFINITIES,
        help="how these threads are pinned to CPUs; default compact")  # fmt: skip
    add("--task-queue", choices=QUEUES,
        help="where ready tasks wait: shared, private, stealing; default shared")  # fmt: skip
    add("--thread-level", choices=THREAD_LEVELS,
        help="who takes the lock round MPI calls of several workers: the MPI library "
        "(multiple), or the runtime (serialized)")  # fmt: skip
    add("--messages", choices=MESSAGES, default="aggregated",
        help="one message for each face, or for each face and variable")  # fmt: skip
    add("--order", choices=CALLS, default="ISIR",
        help="S send, R receive, I before it: nonblocking")  # fmt: skip
    add("--prepost", action="store_true",
        help="post the receives of the next step before the sweep")  # fmt: skip
    add("--grid", metavar="PXxPYxPZ", help="process grid (default: the least surface)")
    add("--verify", choices=("heat", "full", "none"), default="heat",
        help="full: also every bit against a serial run")  # fmt: skip
    add("--repetitions", type=positive, default=1, metavar="K", help="solve K times")
    tpod.add_arguments(parser)
    return parser


def parse(arguments: list[str]) -> Options:
    """The options; raises :class:`AppUsageError`."""
    parser = build_parser()
    given = parser.parse_args(arguments)
    name, problem = _problem(given.input, given.size)
    variables = given.variables or problem.variables
    if variables > MOST_VARIABLES:
        raise AppUsageError(f"--variables {variables}: expected at most {MOST_VARIABLES}")
    _check(given)
    return Options(
        input=name,
        size=problem.size,
        steps=given.steps or problem.steps,
        variables=variables,
        variant=given.variant,
        workers=given.workers or 1,
        affinity=given.affinity or AFFINITIES[0],
        messages=given.messages,
        order=given.order,
        prepost=given.prepost,
        grid=parse_shape(given.grid, "--grid", 3) if given.grid else None,
        verify=given.verify,
        repetitions=given.repetitions,
        tpod=_tasks(given),
        help=parser.format_help() if given.help else None,
    )


def _problem(name: str | None, size: str | None) -> tuple[str | None, Input]:
    """The name and the input, or the problem that a size in numbers stands for."""
    chosen = chosen_input(INPUTS, name, ("--size", size))
    if chosen is not None:
        return chosen, INPUTS[chosen]
    assert size is not None
    return None, Input(parse_size(size, "--size"), DEFAULT_STEPS, DEFAULT_VARIABLES, "")


def _check(given: Namespace) -> None:
    """Refuse what has no meaning; raises :class:`AppUsageError`."""
    if given.prepost and given.order not in POSTING:
        raise AppUsageError(
            f"--prepost needs receives that do not block, and those of --order {given.order} do: "
            f"leave it out, or choose --order {' or '.join(POSTING)}"
        )
    for switch, able in (
        *(("workers", CUT), ("affinity", CUT)),
        *(("task_queue", ("tpod",)), ("thread_level", ("tpod",))),
    ):
        if given.variant not in able and getattr(given, switch) is not None:
            raise meaningless(f"--{switch.replace('_', '-')}", given.variant, able)


def _tasks(given: Namespace) -> tpod.Config:
    """The configuration of the tasks; the default for a variant without any."""
    return common_tpod.config_of(
        given,
        ("tpod",),
        workers=given.workers or 1,
        queue=given.task_queue or QUEUES[0],
        calls=given.order,
        prepost=given.prepost,
        pinning=given.affinity or AFFINITIES[0],
        thread_level=given.thread_level or THREAD_LEVELS[0],
    )
