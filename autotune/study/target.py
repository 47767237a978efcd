"""What is tuned: a program with input, ranks, MPI and cluster; and a setting of it as a launch."""

from __future__ import annotations

import dataclasses
import os
import shlex
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autotune.config.app import App, require_tunable
from autotune.config.cluster import Cluster
from autotune.errors import UsageError
from autotune.space import DEFAULT, Setting, Space, load_space
from autotune.study.launcher_line import fixed_parameters, without_parameters
from autotune.study.objective import Objective
from autotune.study.resources import layout, require_room
from autotune.words import seconds
from runner.mpi.base import Adapter
from runner.mpi.families import adapter as adapter_of
from runner.mpi.library import Library
from runner.types import LaunchSpec, MetricChoice

MAX_RANKS = 4096
NOT_PARAMETERS = frozenset({"placement", "env", "arg", "resource"})
"""Parts of a launched setting that are no native parameters of the library or its launcher."""
LONGEST_RUN_S = 3600.0
"""Seconds after which a run is ended where nobody said how long it may take."""


def limit_words(target: Target, budget_s: float | None = None) -> str:
    """How long one run may take at most where nobody said so, and how to change it."""
    limit_s, why = target.limit_s, "the default"
    if budget_s is not None and budget_s < limit_s:
        limit_s, why = budget_s, "the budget"
    return f"time limit of one run: {seconds(limit_s)} ({why}); --timeout S sets another"


@dataclass(frozen=True)
class Surroundings:
    """What keeps files of autotune itself out of force; not part of what is tuned.

    ``env`` and ``options`` go on every launch; ``stand_ins`` maps folders with copies of parameter
    files to those they stand for.
    """

    env: dict[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    stand_ins: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Target:
    """Everything about a launch that is not tuned.

    ``ranks`` are the processes of the default, and the cores that a setting may divide otherwise
    between processes and workers.  ``cores`` is what the target may use in all; with more ranks
    than that the launch is declared oversubscribed, so that yielding is on in the default
    (docs/design.md, "Names").
    """

    app: App
    input: str | None
    ranks: int
    cluster: Cluster
    library: Library
    cores: int
    timeout_s: float | None = None
    options: tuple[str, ...] = ()
    placement: dict[str, str] = field(default_factory=dict)
    clean_env: bool = False
    surroundings: Surroundings = field(default_factory=Surroundings)
    cwd: str = field(default_factory=os.getcwd)
    objective: Objective | None = None
    """A user's own figure of a run; None: the metric, or wall time."""

    def __post_init__(self) -> None:
        if not 1 <= self.ranks <= MAX_RANKS:
            raise UsageError(f"--ranks {self.ranks} is out of range; expected 1 to {MAX_RANKS}")

    @classmethod
    def of(
        cls,
        app: App,
        input_name: str | None,
        ranks: int,
        cluster: Cluster,
        library: Library,
        *,
        timeout_s: float | None = None,
        **more: Any,
    ) -> Target:
        """The target with what application, input and cluster say of it.

        ``timeout_s`` comes before the application's own limit, in seconds; ``more`` are further
        fields.  Raises UsageError for an unknown input and for ranks out of range.
        """
        given = app.input(input_name)
        return cls(
            app=app,
            input=input_name or app.usual_input or None,
            ranks=ranks,
            cluster=cluster,
            library=library,
            cores=cluster.total_cores,
            timeout_s=timeout_s or given.timeout_s or app.timeout_s,
            **more,
        )

    def space(self, name: str | None = None) -> Space:
        """The space of that name or file for this target's MPI; the cluster's usual one by default.

        Raises UsageError for one whose options the program does not understand, or whose processes
        and workers do not fit into the target's ranks.
        """
        space = load_space(
            name or self.cluster.space(self.library),
            library=self.library,
            facts=self.facts,
            app_facts=self.app_facts,
        ).without(self._fixed)
        require_tunable(self.app, space.name, space.requires)
        require_room(space, self.ranks)
        # A setting cannot name them either, whether the space has them or not.
        return dataclasses.replace(space, absent={**space.absent, **self._said})

    @property
    def _said(self) -> dict[str, str]:
        """Parameters that the user's own launcher line sets, with that reason."""
        names = [*fixed_parameters(self.options), *self.placement]
        return dict.fromkeys(names, "your launcher line sets it")

    @property
    def _fixed(self) -> dict[str, str]:
        """Parameters that are not searched, each with the reason."""
        return {**self.cluster.fixed, **self._said}

    @property
    def oversubscribed(self) -> bool:
        return self.ranks > self.cores

    @property
    def program(self) -> tuple[str, ...]:
        return self.app.program(self.input, self.ranks)

    @property
    def stdin(self) -> str | None:
        """Path of the file that is rank 0's standard input; None: it is empty."""
        return self.app.standard_input(self.input, self.ranks)

    @property
    def metric_choice(self) -> MetricChoice:
        """Which of several figures of one run counts."""
        return self.app.metric_choice or "max"

    @property
    def limit_s(self) -> float:
        """Longest run in seconds: what was said, else a bound against runs that never end."""
        return self.timeout_s or LONGEST_RUN_S

    @property
    def facts(self) -> dict[str, int]:
        """What conditions of a space may ask about the launch."""
        return {"ranks": self.ranks, "cores": self.cores, "nodes": self.cluster.nodes}

    @property
    def app_facts(self) -> dict[str, int]:
        """What the application tells about its input."""
        return dict(self.app.input(self.input).facts)

    def spec(
        self, space: Space | None, setting: Setting = DEFAULT, timeout_s: float | None = None
    ) -> LaunchSpec:
        """The launch of ``setting``; ``timeout_s`` shortens the target's own limit.

        Raises UsageError where its processes and workers do not fit into the target's ranks.
        """
        groups = space.launched(setting) if space is not None else {}
        options = (*self._cluster_options(), *self.options, *self.surroundings.options)
        # Open MPI does not start with a parameter that is given twice; the setting's value wins.
        options = without_parameters(options, groups.get("mca", {}))
        processes, workers = layout(self.ranks, groups.get("resource", {}))
        arguments = [w for text in groups.get("arg", {}).values() for w in shlex.split(text)]
        return LaunchSpec(
            program=(*self.program, *arguments),
            ranks=processes,
            parameters={k: dict(v) for k, v in groups.items() if k not in NOT_PARAMETERS},
            placement=adapter_of(self.library).share_cores(
                self.placement | groups.get("placement", {}), workers, options, self.oversubscribed
            ),
            env=self.surroundings.env | groups.get("env", {}),
            launch_options=options,
            oversubscribe=self.oversubscribed,
            clean_env=self.clean_env,
            cwd=self.cwd,
            timeout_s=self.limit_s if timeout_s is None else min(timeout_s, self.limit_s),
            metric=self.app.metric,
            metric_choice=self.metric_choice,
            verify=self.app.verify,
            stdin=self.stdin,
        )

    def _cluster_options(self) -> tuple[str, ...]:
        """The cluster's, without what the launcher line of the user sets itself."""
        own = fixed_parameters(self.options)
        return without_parameters(self.cluster.options(self.library), own)

    @property
    def overruled(self) -> dict[str, tuple[str, str]]:
        """Parameters of the cluster's launch options that the user's own line sets otherwise: name
        to the cluster's value and the user's."""
        theirs = fixed_parameters(self.cluster.options(self.library))
        own = fixed_parameters(self.options)
        return {n: (theirs[n], own[n]) for n in theirs if own.get(n, theirs[n]) != theirs[n]}

    def inherited(self, adapter: Adapter) -> dict[str, str]:
        """Settings that environment and parameter files give every launch, under the names of the
        real files."""
        if self.clean_env:
            return {}
        around = self.surroundings
        found = adapter.inherited_settings(dict(os.environ) | around.env)
        for copy, real in around.stand_ins:
            found = {name.replace(copy, real, 1): value for name, value in found.items()}
        return {name: value for name, value in found.items() if name not in around.env}

    def mpirun_line(self, adapter: Adapter, space: Space | None, setting: Setting) -> str:
        """The launch as a user would type it: without read-back, the launcher by its name where the
        shell finds this one by it."""
        plain = dataclasses.replace(self, surroundings=Surroundings())
        spec = dataclasses.replace(plain.spec(space, setting), read_back=False, clean_env=False)
        behind = ""
        if spec.stdin is not None and adapter.forwards_input:
            behind = f" < {shlex.quote(spec.stdin)}"
            spec = dataclasses.replace(spec, stdin=None)
        words = adapter.command(spec, Path())
        name = Path(words[0]).name
        found = shutil.which(name)
        if found is not None and Path(found).resolve() == Path(words[0]).resolve():
            words[0] = name
        return shlex.join(words) + behind
