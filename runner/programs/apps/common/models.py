"""The options of a stencil with every programming model: MPI, threads, MATE, Tarragon, TPOD."""

from __future__ import annotations

import dataclasses
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from runner.programs.apps.common import tarragon as common_tarragon
from runner.programs.apps.common import tpod as common_tpod
from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.common.mated import MatedOptions, config_of, layout_of_runtime
from runner.programs.apps.common.options import meaningless
from runner.runtimes import mate, tarragon, tpod

MATE_VARIANTS = ("over", "barrier", "mate")
"""The variants that run on the MATE runtime."""

GRAPHS = ("tarragon",)
"""The variants that are graphs of tasks."""

TASKS = ("tpod",)
"""The variants whose blocks are waiting tasks."""

CELL_SHARING = ("threads", "openmp")
"""The variants whose threads share the cells of a process."""


def runtime_of(variant: str) -> str:
    """The runtime of a variant whose cells it cuts in parts; "" for another variant."""
    for runtime, variants in (("mate", MATE_VARIANTS), ("tarragon", GRAPHS), ("tpod", TASKS)):
        if variant in variants:
            return runtime
    return ""


def face_limit(variant: str, bytes_of_cell: int) -> int | None:
    """Cells of a face between processes whose message stays below the published chunk, if each has
    so many bytes; None if none is published for the variant's runtime."""
    chunk = layout_of_runtime(runtime_of(variant)).chunk
    return None if chunk is None else max((chunk - 1) // bytes_of_cell, 1)


@dataclass(frozen=True, kw_only=True)
class ModelOptions(MatedOptions):
    """Options of every model; ``config`` also has the threads and parts of plain MPI."""

    tarragon: tarragon.Config
    tpod: tpod.Config

    @property
    def thread_level(self) -> str:
        """The thread level that MPI must be started with, as mpi4py names it."""
        if self.variant in MATE_VARIANTS:
            return self.config.thread_level
        if self.variant in GRAPHS:
            return common_tarragon.level(self.variant, GRAPHS, self.tarragon)
        if self.variant in TASKS:
            return tpod.thread_level(self.tpod)
        return "funneled" if self.variant in CELL_SHARING else "single"


def models_of(
    options: Namespace,
    program: str,
    variants: Sequence[str],
    fields_by_variant: Mapping[str, Iterable[str]],
    own_calls: bool,
) -> tuple[mate.Config, tarragon.Config, tpod.Config]:
    """The configuration of each runtime; the default for a variant without it.

    ``fields_by_variant``: the fields of MATE's configuration that apply to a variant; all fields
    apply to a variant not in it. ``own_calls``: ``--order`` and ``--prepost`` belong only to TPOD.
    Raises :class:`AppUsageError` for a switch without a meaning for the variant, and for an
    impossible configuration.
    """
    blocks = options.variant in TASKS
    level = options.thread_level
    if blocks:
        # It has its own levels.
        options = Namespace(**{**vars(options), "thread_level": mate.Config().thread_level})
    config = config_of(options, "" if blocks else runtime_of(options.variant))
    if config.rank_map is not None:
        raise AppUsageError(
            f"--rank-map: {program} cuts its grid in equal shares, rank by rank; leave it out",
            code="app_option.ranks",
        )
    _refuse_other_fields(options.variant, config, variants, fields_by_variant)
    return (
        config,
        common_tarragon.config_of(
            *(options, variants, GRAPHS, GRAPHS),
            shared_switches=("--task-queue",) if blocks else (),
            mate=True,
        ),
        common_tpod.config_of(
            options,
            TASKS,
            own_calls=own_calls,
            workers=config.workers,
            queue=options.task_queue,
            calls=options.order,
            prepost=options.prepost,
            pinning=config.affinity,
            thread_level=level,
        ),
    )


def _refuse_other_fields(
    variant: str,
    config: mate.Config,
    variants: Sequence[str],
    fields_by_variant: Mapping[str, Iterable[str]],
) -> None:
    """Raise :class:`AppUsageError` for a field that is set but has no meaning for the variant."""
    if variant not in fields_by_variant:
        return
    plain = mate.Config(workers=config.workers if "workers" in fields_by_variant[variant] else 1)
    for field in dataclasses.fields(config):
        if field.name in fields_by_variant[variant]:
            continue
        if getattr(config, field.name) != getattr(plain, field.name):
            switch = "--idle" if "idle" in field.name else f"--{field.name.replace('_', '-')}"
            able = [
                v
                for v in variants
                if v not in fields_by_variant or field.name in fields_by_variant[v]
            ]
            raise meaningless(switch, variant, able)
