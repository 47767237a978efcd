"""The command line of miniGhost."""

from __future__ import annotations

import dataclasses
from argparse import Namespace
from dataclasses import dataclass

from runner.programs.apps.common import intranode as common_intranode
from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.common.grid import Shape, parse_shape, parse_size
from runner.programs.apps.common.mated import add_common, chosen_input, level_of
from runner.programs.apps.common.models import GRAPHS, ModelOptions, models_of
from runner.programs.apps.common.options import OptionParser, meaningless, positive
from runner.programs.apps.minighost.inputs import INPUTS, Input
from runner.runtimes import intranode, tarragon, tpod
from runner.runtimes.mate.config import Config
from runner.runtimes.tpod.config import CALLS, POSTING

VARIANTS = {
    "mpi": "each process sweeps its cells by itself",
    "overlap": "it sweeps the inner ones while messages travel",
    "threads": "--workers threads share the sweep of a process",
    "mate": "ranks of a process share its cells and wait for their neighbours",
    "tarragon": "parts of a process's cells are tasks of a graph",
    "tpod": "blocks are tasks that --workers threads run",
    "cab": "processes of a node copy faces in chunks that others steal",
}
CALLING = ("mpi", "overlap", "threads", "tpod")
"""Variants with a choice of the exchange's calls."""
CHUNK_VARIANTS = ("cab",)
"""Variants whose messages are stolen in chunks."""
_TILES = {"ranks_per_process", "local_grid"}
_OTHER_FIELDS = {"block_size", "in_process", "steal"}
"""The kernels have no cache blocks, and ranks of a process exchange no messages and no arrays."""
_FIELDS = {
    "mpi": set[str](),
    "overlap": _TILES,
    "threads": {"workers", "affinity"},
    "mate": {field.name for field in dataclasses.fields(Config)} - _OTHER_FIELDS,
    "tarragon": _TILES | {"workers", "affinity", "thread_level"},
    "tpod": {"workers", "affinity", "thread_level"},
    "cab": set[str](),
}
"""Switches of MATE that apply to a variant."""
MESSAGES = ("aggregated", "variable")
DEFAULT_STEPS, DEFAULT_VARIABLES = 20, 1
MOST_VARIABLES = 5461
"""Each variable may have six tags, and MPI promises tags up to 32767."""
_ANY_NUMBER = ("mpi", "overlap", "threads", "cab")
"""Variants that need only six tags in total if messages are aggregated."""


@dataclass(frozen=True, kw_only=True)
class Options(ModelOptions):
    """The options of one run."""

    size: Shape
    steps: int
    variables: int
    messages: str
    order: str
    prepost: bool
    grid: Shape | None
    verify: str
    intranode: intranode.Config
    config_source: str
    """Origin of the configuration of ``cab`` (see ``Library.from_options``)."""

    @property
    def groups(self) -> list[range]:
        """The variables exchanged together, in the order of the exchanges."""
        if self.messages == "aggregated":
            return [range(self.variables)]
        return [range(n, n + 1) for n in range(self.variables)]


def thread_level(arguments: list[str]) -> str:
    """The thread level for a command line; a wrong command line is reported once MPI runs."""
    return level_of(parse, arguments)


def build_parser() -> OptionParser:
    parser = OptionParser(
        "python -m runner.programs.apps.minighost",
        "Heat in a box: a 7-point stencil over variables.",
    )
    inputs = ", ".join(f"{name} ({i.description})" for name, i in INPUTS.items())
    variants = ", ".join(f"{name} ({words})" for name, words in VARIANTS.items())
    add = parser.add_argument
    add("--input", metavar="NAME", help=f"one of: {inputs}")
    add("--size", metavar="N|NXxNYxNZ", help="cells, instead of --input")
    add("--steps", type=positive, metavar="S",
        help=f"time steps (default: the input's, or {DEFAULT_STEPS})")  # fmt: skip
    add("--variables", type=positive, metavar="V",
        help=f"grids of this size (default: the input's, or {DEFAULT_VARIABLES})")  # fmt: skip
    add("--messages", choices=MESSAGES, default="aggregated",
        help="one message for each face, or for each face and variable")  # fmt: skip
    add("--order", choices=CALLS, default="ISIR",
        help="S send, R receive, I before it: nonblocking")  # fmt: skip
    add("--prepost", action="store_true",
        help="post the receives of the next step before the sweep")  # fmt: skip
    add("--grid", metavar="PXxPYxPZ", help="process grid (default: the least surface)")
    add("--verify", choices=("heat", "full", "none"), default="heat",
        help="full: also every bit against a serial run")  # fmt: skip
    add_common(parser, tuple(VARIANTS), variants)
    tarragon.add_arguments(parser, mate=True)
    tpod.add_arguments(parser)
    intranode.add_arguments(parser, mate=True)
    return parser


def parse(arguments: list[str]) -> Options:
    """The options; raises :class:`AppUsageError`."""
    parser = build_parser()
    options = parser.parse_args(arguments)
    name, problem = _problem(options.input, options.size)
    variables = options.variables or problem.variables
    needs_tags = options.messages != "aggregated" or options.variant not in _ANY_NUMBER
    if needs_tags and variables > MOST_VARIABLES:
        raise AppUsageError(
            f"--variables {variables}: expected at most {MOST_VARIABLES} with --variant "
            f"{options.variant} and --messages {options.messages}: their messages need so many "
            "tags",
            code="app_option.range",
        )
    options, cab_config, source = common_intranode.config_of(options, CHUNK_VARIANTS)
    config, graph, tasks = models_of(
        options, "miniGhost", tuple(VARIANTS), _FIELDS, own_calls=False
    )
    _check(options)
    return Options(
        input=name,
        size=problem.size,
        steps=options.steps or problem.steps,
        variables=variables,
        variant=options.variant,
        messages=options.messages,
        order=options.order,
        prepost=options.prepost,
        grid=parse_shape(options.grid, "--grid", 3) if options.grid else None,
        verify=options.verify,
        repetitions=options.repetitions,
        config=config,
        tarragon=graph,
        tpod=tasks,
        intranode=cab_config,
        config_source=source,
        help=parser.format_help() if options.help else None,
    )


def _problem(name: str | None, size: str | None) -> tuple[str | None, Input]:
    """The name and the input, or the problem for a size in numbers."""
    input_name = chosen_input(INPUTS, name, ("--size", size))
    if input_name is not None:
        return input_name, INPUTS[input_name]
    assert size is not None
    return None, Input(parse_size(size), DEFAULT_STEPS, DEFAULT_VARIABLES, "")


def _check(options: Namespace) -> None:
    """Refuse meaningless options; raises :class:`AppUsageError`."""
    if options.prepost and options.order not in POSTING:
        raise AppUsageError(
            f"--prepost needs receives that do not block, and those of --order {options.order} do: "
            f"leave it out, or choose --order {' or '.join(POSTING)}",
            code="app_option.not_applicable",
        )
    if options.variant not in CALLING:
        for switch, is_set in (
            ("--order", options.order != "ISIR"),
            ("--prepost", options.prepost),
        ):
            if is_set:
                raise meaningless(switch, options.variant, CALLING)
    if options.variant == "overlap" and options.order == "SR":
        raise AppUsageError(
            "--order SR sends and receives in turn, so no message travels while cells are swept: "
            "leave it out, or choose another order or another variant",
            code="app_option.not_applicable",
        )
    if options.variant in GRAPHS and options.messages != "aggregated":
        raise AppUsageError(
            f"--messages {options.messages}: an edge between two tasks of --variant "
            f"{options.variant} carries one message in a step, with all variables; leave it out",
            code="app_option.not_applicable",
        )
