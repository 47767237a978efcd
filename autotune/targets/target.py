"""Targets: program, input, ranks, MPI and cluster; and a setting of a target as a launch."""

from __future__ import annotations

import dataclasses
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autotune.config.app import (
    App,
    require_tunable,
)
from autotune.config.cluster import Cluster
from autotune.config.launcher import options_for
from autotune.config.shipped_programs import need_packages
from autotune.errors import UsageError
from autotune.notes import Note, Say, lock_notes, unheard
from autotune.space import DEFAULT, Setting, Space, Value, load_space
from autotune.targets.input_files import FILE, input_texts, with_input_rules
from autotune.targets.jobs import shared_notes
from autotune.targets.launch_options import (
    fixed_names,
    fixed_parameters,
    fixed_placement,
    with_placement,
    without_parameters,
)
from autotune.targets.launcher_line import as_user_types
from autotune.targets.layout import NUM_THREADS, Layout, require_room, thread_variables
from autotune.targets.metric import Objective
from autotune.targets.mpi_choice import MpiChoice
from autotune.targets.program_identity import interpreter
from autotune.targets.room import Room
from autotune.targets.rows import MpiChoiceRow
from autotune.wording import seconds
from runner.files.paths import exists, real_path
from runner.launch import Runner
from runner.lock import MachineLock
from runner.mpi.abi import LOADER_PATH, joined_folders
from runner.mpi.base import PYTHON_LIBRARY, Adapter
from runner.mpi.discover import adapter as adapter_of
from runner.mpi.library import Library
from runner.types import LIBRARY, LaunchSpec, MetricChoice

MAX_RANKS = 4096
NOT_PARAMETERS = frozenset({"placement", "env", "arg", "file", "resource"})
"""Parts of a launched setting that are no native parameters of the library or its launcher."""
LONGEST_RUN_S = 3600.0
"""Seconds after which a run is ended if no limit was given."""


def limit_note(target: Target, budget_s: float | None = None) -> Note:
    """How long one run may take if no limit was given, and how to change this."""
    limit_s, why = target.limit_s, "the default"
    if budget_s is not None and budget_s < limit_s:
        limit_s, why = budget_s, "the budget"
    words = f"time limit of one run: {seconds(limit_s)} ({why}); --timeout S sets another"
    return Note("run.limit", words, {"limit_s": limit_s, "of": why})


@dataclass(frozen=True)
class Surroundings:
    """What keeps autotune's own published files out of force; it is not part of what is tuned.

    ``env`` and ``options`` are added to every launch. ``stand_ins`` maps folders with copies of
    parameter files to the folders that they replace.
    """

    env: dict[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    stand_ins: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Target:
    """Everything about a launch that is not tuned.

    ``ranks`` is the number of processes of the default, and the number of cores that a setting may
    divide otherwise between processes and workers. ``cores`` is the number of cores that the target
    may use in all. With more ranks than cores the launch is declared oversubscribed, so that the
    default yields the processor (docs/explanation/design.md, "Names"). Raises UsageError for ranks
    out of range.
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
    cores_each: int = 1
    """Cores that the user's line gives each rank; a setting may give more."""
    clean_env: bool = False
    surroundings: Surroundings = field(default_factory=Surroundings)
    cwd: str = field(default_factory=os.getcwd)
    objective: Objective | None = None
    """A user's own figure of a run; None: the metric, or wall time."""
    library_folders: tuple[str, ...] = ()
    """Folders that come first in the loader's path of the ranks, so that the program loads the
    target's library (:func:`autotune.targets.build.library_folders`)."""
    room: Room | None = None
    """Where the user's line or the batch job puts the ranks; None: where the cluster says."""
    commutative_only: bool = False
    """Whether the user says that all operations of the program's reductions commute."""
    tells_python: bool = False
    """Whether a command line names the library for mpi4py wherever it lies."""
    before: tuple[str, ...] = ()
    """Words of a command that is executed before every run, in the run's working directory."""
    choice: MpiChoice | None = None
    """Why the library was taken; None: a stored launch says it, or another target."""
    fresh_copy: bool = False
    """Whether each run gets a copy of ``cwd`` as its working directory."""

    def __post_init__(self) -> None:
        if not 1 <= self.ranks <= MAX_RANKS:
            raise UsageError(
                f"--ranks {self.ranks} is out of range; expected 1 to {MAX_RANKS}",
                code="ranks.range",
            )

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
        room: Room | None = None,
        **more: Any,
    ) -> Target:
        """The target with the values of application, input and cluster; ``room`` is the field.

        ``timeout_s`` replaces the application's own limit, in seconds; ``more`` are further fields.
        Raises UsageError for an unknown input and for ranks out of range.
        """
        variant = app.input(input_name)
        more["before"] = more.get("before") or app.preparation(input_name)
        return cls(
            app=app,
            input=input_name or app.usual_input or None,
            ranks=ranks,
            cluster=cluster,
            library=library,
            cores=cluster.total_cores if room is None else room.cores,
            room=room,
            timeout_s=timeout_s or variant.timeout_s or app.timeout_s,
            **more,
        )

    def space(self, name: str | None = None) -> Space:
        """The space of that name or file for this target's MPI; by default the cluster's usual one.

        A general name means the program's own form of that space (``App.spaces``).

        Raises UsageError for a space whose options the program does not understand, or whose
        ranks, threads and workers do not fit into the target's ranks.
        """
        space = load_space(
            self.app.space(name or self.cluster.space(self.library)),
            library=self.library,
            facts=self.facts,
            app_facts=self.app_facts,
        ).without(self._fixed_parameters)
        require_tunable(self.app, space.name, space.requires)
        require_room(space, self.ranks)
        space = with_input_rules(space, self.app, self.input)
        # A setting cannot name these parameters either, whether the space has them or not.
        return dataclasses.replace(space, absent={**space.absent, **self._user_parameters})

    def cheap(self) -> Target:
        """The target in the cheap form that the application declares for its input.

        Everything else is the same: ranks, library, cluster, time limit. Raises UsageError if none
        is declared.
        """
        app, name = self.app.cheap(self.input)
        return dataclasses.replace(self, app=app, input=name)

    @property
    def _user_parameters(self) -> dict[str, str]:
        """Parameters that the user's own launcher line sets, with that reason."""
        names = [*fixed_names(self.options), *self.placement]
        # A space gives the number of threads by this variable.
        names += ["threads"] if NUM_THREADS in names else []
        return dict.fromkeys(names, "your launcher line sets it")

    @property
    def _fixed_parameters(self) -> dict[str, str]:
        """Parameters that are not searched, each with the reason."""
        return {**self.cluster.fixed, **self._user_parameters}

    @property
    def is_oversubscribed(self) -> bool:
        """Whether there are more ranks than cores."""
        return self.ranks > self.cores

    @property
    def program(self) -> tuple[str, ...]:
        """The argument list of the program.

        A relative path of the program means the file that the user sees, wherever it runs.
        """
        first, *words = self.app.program(self.input, self.ranks)
        need_packages((first, *words))
        if self.fresh_copy and "/" in first and (exists(first) or not self._holds(first)):
            first = str(Path(first).absolute())
        return (first, *words)

    def _holds(self, word: str) -> bool:
        """Whether the working directory has a file of that name."""
        return exists(Path(self.cwd, word))

    def refuse_store_inside(self, database: str | None) -> None:
        """Raise UsageError if the directory that is copied for each run holds the database."""
        if not self.fresh_copy or not database:
            return
        if real_path(database).is_relative_to(real_path(self.cwd)):
            raise UsageError(
                f"--fresh-dir {self.cwd} would copy the results database {database} for each "
                "run; name a directory with the program's input only, or give another --store",
                code="fresh_dir.store",
            )

    @property
    def choice_row(self) -> MpiChoiceRow | None:
        """Why the library was taken, in the published form."""
        return None if self.choice is None else self.choice.row

    @property
    def preparation(self) -> list[Note]:
        """What happens before each run and is no part of the printed command, as notes."""
        notes = []
        if self.before:
            words = shlex.join(self.before)
            notes.append(
                Note(
                    "work.before",
                    f"each run was started after {words} (--before); the printed command needs it "
                    "too",
                    {"before": list(self.before)},
                )
            )
        if texts := self.app.texts(self.input):
            notes.append(
                Note(
                    "work.input_files",
                    f"each run was started in a folder of its own with {', '.join(sorted(texts))}: "
                    f"configs/apps/{self.app.name}.toml has the texts, with {{{{name}}}} in the "
                    "place of a value of the setting",
                    {"files": sorted(texts)},
                )
            )
        if self.fresh_copy:
            notes.append(
                Note(
                    "work.fresh_dir",
                    f"each run was started in a fresh copy of {self.cwd} (--fresh-dir); start the "
                    "printed command in such a copy",
                    {"fresh_dir": self.cwd},
                )
            )
        return notes

    @property
    def stdin(self) -> str | None:
        """Path of the file that is rank 0's standard input; None if it is empty."""
        return self.app.standard_input(self.input, self.ranks)

    @property
    def metric_choice(self) -> MetricChoice:
        """Which of several figures of one run counts; by default that of the slowest rank."""
        return self.app.metric_choice or ("max" if self.app.metric_rate is None else "min")

    @property
    def limit_s(self) -> float:
        """Longest run in seconds: the given limit, else a bound against runs that never end."""
        return self.timeout_s or LONGEST_RUN_S

    @property
    def facts(self) -> dict[str, Value]:
        """Facts of the launch that conditions of a space may use."""
        facts: dict[str, Value] = {
            "ranks": self.ranks,
            "cores": self.cores,
            "nodes": self.cluster.nodes if self.room is None else self.room.nodes,
        }
        selection = fixed_parameters((*self._cluster_options(), *self.options)).get("pml", "")
        return facts | ({"pml": selection} if selection and not selection.startswith("^") else {})

    @property
    def app_facts(self) -> dict[str, int]:
        """Facts that the application gives about its input."""
        return dict(self.app.input(self.input).facts)

    def runner(self, guard: bool = True) -> Runner:
        """A runner on the target's CPUs with its MPI; ``guard``: watch for foreign load."""
        return Runner(
            adapter_of(self.library),
            guard=guard,
            own_processes=self.cluster.own_processes,
            cpus=self.cluster.cpu_set,
        )

    @contextmanager
    def locked_runner(
        self,
        guard: bool = True,
        tell: Say = unheard,
    ) -> Iterator[Runner]:
        """A runner while this process holds the machine lock.

        ``tell`` gets notes on the lock, and on other MPI jobs on the same CPUs.
        """
        with self.machine_lock(tell), self.runner(guard) as runner:
            yield runner

    @contextmanager
    def machine_lock(self, tell: Say = unheard) -> Iterator[None]:
        """Hold the machine lock; ``tell`` gets notes as of :meth:`locked_runner`."""
        with MachineLock("exclusive", cpus=self.cluster.cpu_set, tell=lock_notes(tell)) as lock:
            for note in self.shared_notes(lock):
                tell(note)
            yield

    def shared_notes(self, lock: MachineLock) -> list[Note]:
        """Notes on other MPI jobs on the same CPUs, for the process that took ``lock``.

        A process below its holder says nothing: the holder has said it, or it is a test, whose
        neighbours do not matter.
        """
        if not lock.holds_lock:
            return []
        one_node = self.cluster.nodes == 1 and self.cluster.testbed is None
        one_node = one_node and not (self.room and self.room.on_other_nodes)
        return shared_notes(self.cluster.cpu_set, self.ranks, one_node)

    def spec(
        self, space: Space | None, setting: Setting = DEFAULT, timeout_s: float | None = None
    ) -> LaunchSpec:
        """The launch of ``setting``; ``timeout_s`` shortens the target's own limit.

        Raises UsageError if its ranks, threads and workers do not fit into the target's ranks.
        """
        groups = space.launched(setting) if space is not None else {}
        options = (*self._cluster_options(), *self.options, *self.surroundings.options)
        # Open MPI does not start if a parameter is given twice; the setting's value has precedence.
        options = without_parameters(options, groups.get("mca", {}))
        placement = self.placement | groups.get("placement", {})
        if placement:
            tables = options_for(self.library.launcher, self.library)
            options, placement = with_placement(options, placement, tables)
        layout = Layout.of(self.ranks, groups.get("resource", {}))
        arguments = [w for text in groups.get("arg", {}).values() for w in shlex.split(text)]
        return LaunchSpec(
            program=(*self.program, *arguments),
            ranks=layout.ranks,
            threads=layout.threads,
            parameters={k: dict(v) for k, v in groups.items() if k not in NOT_PARAMETERS},
            placement=adapter_of(self.library).share_cores(
                placement,
                max(layout.cores_each, self.cores_each),
                options,
                self.is_oversubscribed,
            ),
            env=self.surroundings.env,
            variables=self._loader_path | thread_variables(space, layout) | groups.get("env", {}),
            one_machine=self.cluster.testbed is not None,
            launch_options=options,
            oversubscribe=self.is_oversubscribed,
            clean_env=self.clean_env,
            cwd=self.cwd,
            files=input_texts(self.app, self.input, layout.ranks, groups.get(FILE, {})),
            fresh_copy=self.fresh_copy,
            before=self.before,
            timeout_s=self.limit_s if timeout_s is None else min(timeout_s, self.limit_s),
            metric=self.app.figure,
            metric_rate=self.app.metric_rate is not None,
            metric_choice=self.metric_choice,
            verify=self.app.verify,
            verify_absent=self.app.verify_absent,
            exit_codes=self.app.exit_codes,
            stdin=self.stdin,
        )

    @property
    def _loader_path(self) -> dict[str, str]:
        """The variable by which a binary loads the target's library, if it needs one."""
        folders = self.library_folders
        return {LOADER_PATH: joined_folders(folders, os.environ)} if folders else {}

    def _cluster_options(self) -> tuple[str, ...]:
        """The cluster's options without those that the user's launcher line sets itself."""
        own = fixed_parameters(self.options)
        return without_parameters(self.cluster.options(self.library), own)

    @property
    def overruled(self) -> dict[str, tuple[str, str]]:
        """What the cluster's launch options set and the user's line sets to another value.

        Maps the name of a library parameter, or of a part of the placement, to the cluster's value
        and the user's.
        """
        own = fixed_parameters(self.options) | self.placement
        if not own:
            return {}
        tables = options_for(self.library.launcher, self.library)
        options = self.cluster.options(self.library)
        theirs = fixed_parameters(options) | fixed_placement(options, tables)
        return {n: (theirs[n], own[n]) for n in theirs if own.get(n, theirs[n]) != theirs[n]}

    def inherited_settings(self, adapter: Adapter) -> dict[str, str]:
        """Values that environment and parameter files give every launch, by the real paths."""
        if self.clean_env:
            return {}
        around = self.surroundings
        settings = adapter.inherited_settings(dict(os.environ) | around.env)
        for copy, real in around.stand_ins:
            settings = {name.replace(copy, real, 1): value for name, value in settings.items()}
        return {name: value for name, value in settings.items() if name not in around.env}

    def mpirun_line(
        self,
        adapter: Adapter,
        space: Space | None,
        setting: Setting,
        params_file: str | None = None,
    ) -> str:
        """The launch as a user would type it, without read-back.

        ``params_file``: path of a file with the library's parameters, which the line names in
        their place.
        """
        plain = dataclasses.replace(self, surroundings=Surroundings())
        spec = dataclasses.replace(plain.spec(space, setting), read_back=False, clean_env=False)
        if params_file is not None:
            spec = dataclasses.replace(
                spec,
                parameters=spec.parameters | {LIBRARY: {}},
                launch_options=(*spec.launch_options, adapter.tune_option, params_file),
            )
        if os.geteuid() == 0 and adapter.root_option not in ("", *spec.launch_options):
            # Launches of autotune have a variable for it, which the user's shell may not have.
            options = (adapter.root_option, *spec.launch_options)
            spec = dataclasses.replace(spec, launch_options=options)
        behind = ""
        if spec.stdin is not None and adapter.forwards_input:
            behind = f" < {shlex.quote(spec.stdin)}"
            spec = dataclasses.replace(spec, stdin=None)
        python = interpreter(self.program)
        if self.tells_python or (python and python.parent != Path(adapter.library.bin)):
            # Launches of autotune have them anyway; without them mpi4py loads another library, or
            # none.
            user_variables = {n: v for n, v in os.environ.items() if n != PYTHON_LIBRARY}
            python_variables = adapter.python_variables(
                user_variables if self.tells_python else os.environ
            )
            spec = dataclasses.replace(spec, variables=python_variables | spec.variables)
        return (
            shlex.join(as_user_types(adapter.command(spec, Path()), adapter.library.launcher))
            + behind
        )
