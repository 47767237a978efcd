"""The command line of Barnes-Hut."""

from __future__ import annotations

from dataclasses import dataclass

from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.common.options import OptionParser, above_zero, meaningless, positive
from runner.runtimes.intranode import IntranodeError
from runner.runtimes.intranode.mcoll import MCOLL, Config
from runner.runtimes.intranode.switches import given_switches

VARIANTS = ("mpi", "mcoll")
_WIDEST = 0.57
"""A body is at most sqrt(3) widths from the centre of mass of the cell that contains it."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of one run; ``theta``: cells act as one body below this width / distance."""

    variant: str
    bodies: int
    steps: int
    theta: float
    softening: float
    dt: float
    seed: int
    nodes: int
    config: Config
    config_source: str
    help: str | None = None
    """The text to print instead of running."""


def parse(arguments: list[str]) -> Options:
    """The options; raises :class:`AppUsageError`."""
    parser = OptionParser(
        "python -m runner.programs.apps.nbody", "Barnes-Hut: gravity of many bodies."
    )
    add = parser.add_argument
    add("--variant", default="mpi", metavar="NAME",
        help="who does the allgather of positions: mpi or mcoll; default mpi")  # fmt: skip
    add("--bodies", type=positive, default=10000, metavar="N", help="default 10000")
    add("--steps", type=positive, default=10, metavar="N", help="steps of time; default 10")
    add("--theta", type=above_zero, default=0.5, metavar="X", help="opening angle; default 0.5")
    add("--softening", type=above_zero, default=0.05, metavar="X",
        help="length below which forces are weaker; default 0.05")  # fmt: skip
    add("--dt", type=above_zero, default=0.01, metavar="X", help="step of time; default 0.01")
    add("--seed", type=positive, default=1, metavar="N", help="seed of the bodies; default 1")
    add("--nodes", type=int, default=0, metavar="N",
        help="mcoll: assumed nodes that one machine is split into; default 0")  # fmt: skip
    MCOLL.add_arguments(parser.add_argument_group("collectives, with --variant mcoll"))
    options = parser.parse_args(arguments)
    if options.variant not in VARIANTS:
        raise AppUsageError(
            f"--variant {options.variant}: expected {' or '.join(VARIANTS)}",
            code="app_option.unknown",
        )
    if options.theta > _WIDEST:
        raise AppUsageError(
            f"--theta {options.theta}: expected at most {_WIDEST}; beyond that a cell could act on "
            "a body in it",
            code="app_option.range",
        )
    if options.nodes < 0:
        raise AppUsageError(f"--nodes {options.nodes}: expected 0 or more", code="app_option.ranks")
    config, config_source = Config(), ""
    if options.variant == "mcoll":
        try:
            config, config_source = MCOLL.from_options(options)
        except IntranodeError as error:
            raise AppUsageError(str(error), code=error.code) from None
    else:
        for switch in given_switches(MCOLL.table, options):
            raise meaningless(f"--{switch}", options.variant, ["mcoll"])
    return parser.record(Options, options, config=config, config_source=config_source)
