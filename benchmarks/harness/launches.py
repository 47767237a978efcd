"""The launch of a line, and of any program on some cores."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.compiled import FASTEST, REFERENCES, compiled_for
from benchmarks.harness.table import Line
from runner.machine import describe_machine
from runner.mpi.discover import adapter, find_library
from runner.mpi.library import Library
from runner.types import LaunchSpec

if TYPE_CHECKING:
    from autotune.space import Setting, Space
    from autotune.targets.target import Target

SCRATCH = "{scratch}"
"""In the words of a line: the folder for what it writes."""


@dataclass(frozen=True)
class Place:
    """Where lines run: an MPI library, and a cluster with its launch options.

    ``cluster`` "" is this machine without autotune's definition of it, and so without pydantic.
    """

    library: Library
    cluster: str = "local"
    options: tuple[str, ...] = ()
    own_processes: tuple[str, ...] = ()
    nodes: int = 1

    @classmethod
    def of(cls, cluster: str = "local", mpi: str | None = None) -> Place:
        """The cluster of that name; raises UsageError or RunnerError if it is not there."""
        library = find_library(mpi)
        if not cluster:
            # A slot for each hardware thread; Open MPI itself counts cores.
            slots = ("--host", f"localhost:{len(os.sched_getaffinity(0))}")
            return cls(library, "", slots if library.family == "openmpi" else ())
        from autotune.config.cluster import load_cluster

        definition = load_cluster(cluster)
        own_processes = tuple(definition.own_processes)
        return cls(
            library, cluster, tuple(definition.options(library)), own_processes, definition.nodes
        )

    def program(
        self,
        words: Sequence[str],
        processes: int,
        workers: int = 1,
        bind: str = "",
        metric: str | None = None,
        verify: str | None = None,
        timeout_s: float = 120.0,
    ) -> LaunchSpec:
        """The launch of a command line; the program imports this copy of autotune.

        Each process has its own cores, ``workers`` of them. They share all cores if there are too
        few, and one alone may use all. On several nodes processes are dealt out to these.
        """
        crowded = processes > len(os.sched_getaffinity(0))
        free = processes == 1 or processes * workers > describe_machine().cores
        usual = "none" if free else "core"
        placement = {"map_by": "node"} if self.nodes > 1 else {"bind_to": bind or usual}
        if workers > 1 and not (bind or free):
            placement = adapter(self.library).share_cores({}, workers, self.options)
        # Not read back: a program may bind its threads itself.
        words_of = adapter(self.library).placement_words
        placement_options = () if crowded else tuple(words_of(placement, False))
        return LaunchSpec(
            program=tuple(words),
            ranks=processes,
            placement=placement if crowded else {},
            launch_options=(*self.options, *placement_options),
            oversubscribe=crowded,
            env=_own_copy(),
            read_back=False,
            metric=metric,
            verify=verify,
            timeout_s=timeout_s,
        )

    def target(
        self,
        app: str = "",
        input_: str = "",
        ranks: int | None = None,
        timeout_s: float = 120.0,
        **more: Any,
    ) -> Target:
        """An application, or ``program`` among ``more``, as the tuner starts it.

        ``more`` are fields of TargetRequest. Raises UsageError if something is not there.
        """
        from autotune.api.target import find_target
        from autotune.targets.request import TargetRequest

        return find_target(
            TargetRequest(
                app=app or None, input=input_ or None, ranks=ranks, cluster=self.cluster,
                mpi=self.library.launcher, timeout=timeout_s, **more,
            )
        )  # fmt: skip

    def launch(self, line: Line, scratch: Path) -> LaunchSpec:
        """The launch of a line; a C program is compiled into ``scratch``.

        Raises UsageError for what is not there, and NoCompiler.
        """
        words = tuple(line.words.replace(SCRATCH, str(scratch)).split())
        if not line.app:
            start = (
                [sys.executable, "-m", line.module]
                if line.module
                else [str(_program(line, self.library, scratch))]
            )
            return self.program(
                [*start, *words], line.processes, line.workers, line.bind,
                line.metric or None, line.verify or None, line.timeout_s,
            )  # fmt: skip
        target = self.target(line.app, line.input, line.processes, line.timeout_s)
        if not (line.setting or line.space):
            return on_target(target, words, line.processes, line.workers, metric=line.metric)
        from autotune.targets.setting_syntax import read_settings

        space = target.space(line.space or None)
        space, (setting,) = read_settings([line.setting or "default"], space, self.library)
        return on_target(target, words, line.processes, line.workers, space, setting, line.metric)


def on_target(
    target: Target,
    words: Sequence[str] = (),
    processes: int | None = None,
    workers: int = 1,
    space: Space | None = None,
    setting: Setting | None = None,
    metric: str = "",
) -> LaunchSpec:
    """A target's launch with further words of the program, in a layout of its own.

    ``metric`` replaces the application's own.
    """
    from autotune.space import DEFAULT

    plain = target.spec(space, setting or DEFAULT)
    if processes is None:
        return dataclasses.replace(plain, program=(*plain.program, *words))
    launcher = adapter(target.library)
    return dataclasses.replace(
        plain,
        program=(*plain.program, *words),
        ranks=processes,
        placement=launcher.share_cores(plain.placement, workers, plain.launch_options),
        metric=metric or plain.metric,
    )


def _program(line: Line, library: Library, scratch: Path) -> Path:
    """The compiled program of a line."""
    more: list[str] = ["-lm"]
    if line.blas:
        from runner.runtimes.core import blas

        name, path = blas.symbol(), blas.library_path()
        if name is not None and path is not None:
            whole = f"-DDGEMM={name}", f"-DWHOLE={blas.NAMES[name]}_t"
            more += [*whole, path, f"-Wl,-rpath,{Path(path).parent}"]
    return compiled_for(library, REFERENCES / line.source, scratch, FASTEST, more)


def _own_copy() -> dict[str, str]:
    """The variable by which programs import benchmarks and runner from this copy."""
    root, given = str(REFERENCES.parents[1]), os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": os.pathsep.join([root, *([given] if given else [])])}
