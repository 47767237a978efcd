"""The command line of Jacobi3D."""

from __future__ import annotations

import dataclasses
from argparse import Namespace
from dataclasses import dataclass

from runner import mate, tarragon, tpod
from runner.apps import common_tarragon, common_tpod
from runner.apps.common_errors import AppUsageError
from runner.apps.common_grid import Shape, parse_shape, parse_size
from runner.apps.common_mated import MatedOptions, add_common, chosen_input, config_of, level_of
from runner.apps.common_options import OptionParser, meaningless, positive
from runner.apps.jacobi3d.inputs import INPUTS

MATED = ("over", "barrier", "mate")
"""The variants that run on the MATE runtime."""

GRAPHS = ("tarragon",)
"""The variants that are graphs of tasks."""

SHARED = ("threads", "openmp")
"""The variants whose threads share the update of a process's block."""

VARIANTS = ("mpi", "over", "overlap", "barrier", "threads", "openmp", "mate", "tarragon", "tpod")
DEFAULT_ITERATIONS = 100
DEFAULT_BLOCK = 64

_TILES = {"block_size", "ranks_per_process", "local_grid"}
_USED = {
    "mpi": {"block_size"},
    "openmp": {"block_size"},
    "overlap": _TILES,
    "threads": _TILES | {"workers", "affinity"},
    "tarragon": _TILES | {"workers", "affinity", "thread_level"},
    "tpod": {"block_size", "workers", "affinity", "thread_level"},
}
"""Switches of the runtime that also apply to the variants without it."""


@dataclass(frozen=True, kw_only=True)
class Options(MatedOptions):
    """The options of one run."""

    size: Shape
    iterations: int
    grid: Shape | None
    block: int
    padding: int
    verify: str
    tarragon: tarragon.Config
    tpod: tpod.Config

    @property
    def thread_level(self) -> str:
        """The thread level that MPI must be started with, as mpi4py names it."""
        if self.variant in MATED:
            return self.config.thread_level
        if self.variant in GRAPHS:
            return common_tarragon.level(self.variant, GRAPHS, self.tarragon)
        if self.variant == "tpod":
            return tpod.thread_level(self.tpod)
        return "funneled" if self.variant in SHARED else "single"


def thread_level(arguments: list[str]) -> str:
    """The thread level for a command line; a wrong command line is reported once MPI runs."""
    return level_of(parse, arguments)


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
    given = parser.parse_args(arguments)
    name, size, iterations = _problem(given.input, given.size)
    config = _config(given)
    return Options(
        input=name,
        size=size,
        iterations=given.iterations or iterations,
        grid=parse_shape(given.grid, "--grid", 3) if given.grid else None,
        block=given.block or config.block_size,
        padding=given.padding,
        tarragon=common_tarragon.config_of(
            *(given, VARIANTS, GRAPHS, GRAPHS),
            shared=("--task-queue",) if given.variant == "tpod" else (),
            mate=True,
        ),
        tpod=common_tpod.config_of(
            given,
            ("tpod",),
            own_calls=True,
            workers=config.workers,
            queue=given.task_queue,
            calls=given.order,
            prepost=given.prepost,
            pinning=config.affinity,
            thread_level=config.thread_level,
        ),
        verify=given.verify,
        repetitions=given.repetitions,
        variant=given.variant,
        config=config,
        help=parser.format_help() if given.help else None,
    )


def _problem(name: str | None, size: str | None) -> tuple[str | None, Shape, int]:
    """Name, size and iterations of the input, or of a size given as numbers."""
    chosen = chosen_input(INPUTS, name, ("--size", size))
    if chosen is not None:
        return chosen, INPUTS[chosen].size, INPUTS[chosen].iterations
    assert size is not None
    return None, parse_size(size, "--size"), DEFAULT_ITERATIONS


def _config(given: Namespace) -> mate.Config:
    """The runtime's configuration, checked for the variant; raises :class:`AppUsageError`."""
    config = config_of(given)
    if config.rank_map is not None:
        raise AppUsageError(
            "--rank-map: Jacobi3D cuts its grid in equal shares, rank by rank; leave it out"
        )
    if given.variant in _USED:
        _refuse_unused(given.variant, config)
    if given.variant == "threads" and config.ranks_per_process != config.workers:
        raise AppUsageError(
            f"--variant threads: {config.workers} workers share {config.ranks_per_process} parts "
            "(--ranks-per-process, or the product of --local-grid): expected one part for each"
        )
    return config


def _refuse_unused(variant: str, config: mate.Config) -> None:
    plain = mate.Config(workers=config.workers if "workers" in _USED[variant] else 1)
    for field in dataclasses.fields(config):
        if field.name in _USED[variant]:
            continue
        if getattr(config, field.name) != getattr(plain, field.name):
            switch = "--idle" if "idle" in field.name else f"--{field.name.replace('_', '-')}"
            able = [v for v in VARIANTS if v in MATED or field.name in _USED[v]]
            raise meaningless(switch, variant, able)
