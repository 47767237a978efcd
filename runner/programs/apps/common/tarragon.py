"""Shared parts of the applications with a form of tasks: the variant and its configuration."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable

from runner.errors import RunnerError
from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.common.options import changed_switches, meaningless
from runner.runtimes import tarragon


def config_of(
    options: Namespace,
    variants: Iterable[str],
    tasks: Iterable[str],
    compiled_variants: Iterable[str] = (),
    shared_switches: Iterable[str] = (),
    mate: bool = False,
) -> tarragon.Config:
    """The configuration of the tasks; the default for a variant without any.

    ``tasks``: the ``variants`` with tasks; ``compiled_variants``: those with compiled tasks;
    ``shared_switches``: switches that also apply to other variants; ``mate``: see
    :func:`runner.runtimes.tarragon.add_arguments`. Raises :class:`AppUsageError` for an unknown
    variant, a switch without a meaning for it, and an impossible configuration.
    """
    names, graphs = tuple(variants), tuple(tasks)
    if options.variant not in names:
        raise AppUsageError(
            f"--variant {options.variant}: expected one of {', '.join(names)}",
            code="app_option.unknown",
        )
    if options.variant in graphs:
        try:
            config = tarragon.from_arguments(options)
            if options.variant in compiled_variants:
                tarragon.check_compiled_tasks(config)
            return config
        except RunnerError as problem:
            raise AppUsageError(str(problem), code=problem.code) from None
    for switch in changed_switches(options, lambda parser: tarragon.add_arguments(parser, mate)):
        if switch not in shared_switches:
            raise meaningless(switch, options.variant, graphs)
    return tarragon.Config()


def level(variant: str, tasks: Iterable[str], config: tarragon.Config) -> str:
    """The thread level that MPI must be started with, as mpi4py names it."""
    return tarragon.thread_level(config) if variant in tasks else "single"
