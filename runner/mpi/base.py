"""The interface to one family of MPI libraries: how a program is started and what is read back."""

from __future__ import annotations

import os
import shlex
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from runner.cpus import cpu_list
from runner.errors import RunnerUsageError
from runner.files.paths import is_file
from runner.mpi.abi import STANDARD_ABI, Abi
from runner.mpi.hosts import Hosts
from runner.mpi.library import Library, ParamInfo
from runner.mpi.rank_layout import LayoutQuery, RankLayout, Topology
from runner.scheduler import allocation
from runner.types import LIBRARY, LaunchSpec, ReadBack


@dataclass(frozen=True)
class Probe:
    """Values that were read after a run.

    ``is_initialised`` is None if the library leaves no trace of MPI_Init. ``library_mismatch``
    names the library inside the ranks if it is not the launcher's.
    """

    is_initialised: bool | None
    world_size: int | None = None
    read_back: dict[str, ReadBack] = field(default_factory=dict)
    inherited_values: dict[str, str] = field(default_factory=dict)
    library_mismatch: str | None = None
    complaint: str = ""
    """The failure as reported by a part of the library that does not write to standard error."""
    bindings: tuple[str, ...] = ()
    """The CPU list of each rank, in order, if the ranks reported it themselves; else empty."""
    start_problem: str = ""
    """Why no process of the program was started, if the launcher did not say so itself."""


PYTHON_LIBRARY = "MPI4PY_LIBMPI"
"""The variable that names the library for mpi4py to load."""


REPORTED_FILE = "reported.txt"
"""File with the lines of standard error that match :meth:`Adapter.report_pattern`, for the probe.
"""


class Adapter(ABC):
    """One MPI library: turns a setting into command line and environment, and reads values back.

    Each family has one class, registered in :mod:`runner.mpi.discover`. Other modules ask the
    adapter and never compare family names. A method that a class does not override answers for a
    library that lacks the ability. :class:`autotune.testing.MpiLibraryContract` tests what every
    class must guarantee.
    """

    family: ClassVar[str]
    """Name of the family in ``--mpi``, definitions and results database: lower-case letters."""
    title: ClassVar[str]
    """Name of the family for people."""
    abi: ClassVar[Abi | None] = None
    """The family's binary interface; None if it is unknown which programs the family can run."""
    kinds: ClassVar[tuple[str, ...]] = (LIBRARY,)
    """Accepted kinds of native parameters (:attr:`runner.types.LaunchSpec.parameters`)."""
    parameter_names: ClassVar[str] = "those that it lists"
    """Name of the library's own parameters, for messages."""
    placement_names: ClassVar[frozenset[str]] = frozenset({"map_by", "bind_to"})
    """Parts of the placement (mapping, binding, ranking) that the launcher has options for."""
    reads_back: bool = False
    """True if :meth:`probe` reads the values in force; if not, they are ``not observable``."""
    checks_values: ClassVar[bool] = False
    """True if a number or choice that the library does not understand stops the launch."""
    tune_option: ClassVar[str] = ""
    """Option of the launcher that loads a file of ``--mca NAME VALUE`` lines; "" if none."""
    root_option: ClassVar[str] = ""
    """Option that lets root use the launcher; "" if root needs none."""
    transport_parameter: ClassVar[str] = ""
    """Parameter that chooses what carries the messages; "" if there is none."""
    on_testbed: ClassVar[bool] = False
    """True if the launcher can start ranks on the nodes of :mod:`runner.testbed`."""
    identify_environment: ClassVar[Mapping[str, str]] = {}
    """Variables that the launcher needs even to print its version."""
    version_marker: ClassVar[str] = ""
    """Text before the version in the output of ``LAUNCHER --version``, with single blanks.

    "" if no fixed text precedes the version.
    """
    rank_variables: ClassVar[tuple[str, ...]] = ()
    """Environment variables that hold a process's rank."""
    host_options: ClassVar[frozenset[str]] = frozenset()
    """Options of the launcher that name nodes."""
    counts_slots: ClassVar[bool] = False
    """True if the launcher refuses more ranks than slots unless an option allows them."""
    launchers: ClassVar[Mapping[str, str]] = {}
    """Names of the processes that start ranks, as ``ps`` shows them, up to the first dot.

    Each maps to a library version with that launcher; only options depend on it.
    """
    daemons: ClassVar[frozenset[str]] = frozenset()
    """Names of processes that start ranks from outside of the launcher's process tree.

    What they need for a launch is no foreign load.
    """
    forwards_input: bool = False
    """True if a file redirected to the launcher (``< FILE``) reaches rank 0 whole, with its end."""
    hiccups: ClassVar[tuple[str, ...]] = ()
    """Messages of a launcher that sometimes fails by itself before any rank has begun."""
    refusals: ClassVar[tuple[str, ...]] = ()
    """Messages by which the launcher says that it did not start the program."""

    def __init__(self, library: Library) -> None:
        self.library = library

    @classmethod
    @abstractmethod
    def version_in(cls, text: str) -> str | None:
        """The version in the output of ``LAUNCHER --version``; None for another family's output."""

    @classmethod
    def complete(cls, library: Library) -> Library:
        """``library`` with the parameters that it lists.

        Raises RunnerError if the family's command for listing them fails.
        """
        return library

    def state_of_lists(self) -> Hashable:
        """What changes when the files change that decide which parameters the library lists."""
        return ()

    @property
    def launcher_title(self) -> str:
        """The launcher for people: by default that of the library."""
        return f"{self.title} {self.library.version}".strip()

    def refuse_unknown_kinds(self, spec: LaunchSpec) -> None:
        """Raise RunnerUsageError for parameters of a kind that this library does not have."""
        for kind, values in spec.parameters.items():
            if values and kind not in self.kinds:
                raise RunnerUsageError(
                    f"{self.title} {self.library.version} has no parameters of the kind {kind!r} "
                    f"({', '.join(values)}); it has {', '.join(self.kinds)}",
                    code="parameter.kind_unknown",
                )

    def require(self) -> None:
        """Raise RunnerError if the launcher can start no ranks from this process."""
        return

    @abstractmethod
    def command(self, spec: LaunchSpec, scratch: Path) -> list[str]:
        """The argument list that starts ``spec``; read-back files are written below ``scratch``."""

    def program(self, spec: LaunchSpec) -> tuple[str, ...]:
        """The program's argument list; rank 0 opens an input itself, and the other ranks get none.

        The launcher does not pass the input on: PRRTE 3 (Open MPI 5) never signals the end of the
        input and damages large inputs (openpmix/prrte 2373, 2579); Hydra 4.0 ended by SIGPIPE on 4
        MB. The file must exist on rank 0's node.
        """
        if spec.stdin is None:
            return spec.program
        first, *others = (f"${{{name}-" for name in self.rank_variables)
        rank = first + "".join(others) + "}" * len(self.rank_variables)
        script = (
            f'if [ "{rank}" = 0 ]; then exec "$@" < {shlex.quote(spec.stdin)}; fi; '
            'exec "$@" < /dev/null'
        )
        return ("/bin/sh", "-c", script, "sh", *spec.program)

    def confine(self, spec: LaunchSpec, cpus: frozenset[int]) -> LaunchSpec:
        """``spec`` with options that keep the launcher's own binding within ``cpus``.

        The launcher's processes inherit their affinity; only launchers that widen it need options.
        """
        return spec

    def line_on(self, cpus: frozenset[int], ranks: int) -> list[str]:
        """A command line that starts ``ranks`` ranks of PROGRAM on ``cpus`` only.

        ``ranks`` is at most the number of cores. Options are needed only if the launcher binds
        ranks; other ranks inherit its affinity.
        """
        spec = self.confine(LaunchSpec(("PROGRAM",), ranks, read_back=False), cpus)
        return ["taskset", "-c", cpu_list(cpus), *self.command(spec, Path())]

    @abstractmethod
    def environment(self, spec: LaunchSpec, base: dict[str, str]) -> dict[str, str]:
        """``base`` with the spec's variables, for some families without its MPI settings."""

    def report_environment(self, spec: LaunchSpec, scratch: Path) -> dict[str, str]:
        """Variables with which the ranks write the read-back files below ``scratch``."""
        return {}

    def end_launch(self, scratch: Path) -> None:
        """End what is left of a launch that did not end by itself, beyond its process tree.

        ``scratch`` is the folder of its read-back files.
        """
        return

    @abstractmethod
    def probe(self, spec: LaunchSpec, scratch: Path) -> Probe:
        """The values that were in force in the program; called once, after the run has ended."""

    @classmethod
    def operations_of(cls, parameter: str) -> tuple[str, ...]:
        """The collectives that a parameter can affect; empty if it is not about collectives."""
        return ()

    @abstractmethod
    def inherited_settings(self, environment: dict[str, str]) -> dict[str, str]:
        """MPI settings in force that the spec does not name: variable or ``file:name`` -> value."""

    def settings_files(self, environment: dict[str, str]) -> dict[str, list[tuple[int, str, str]]]:
        """The files with settings that a launch reads, the one that counts first: number of the
        line, name and value of each setting, by path."""
        return {}

    @contextmanager
    def one_launch(self) -> Iterator[None]:
        """Within the block, which is one launch, an adapter may read files of settings only once.

        What is asked of them after the run is then what was in force when it began.
        """
        yield

    def one_node(self, spec: LaunchSpec) -> bool:
        """True if all ranks are certainly on the launcher's own node."""
        return not allocation(os.environ).several and not self.names_hosts(spec)

    def names_hosts(self, spec: LaunchSpec) -> bool:
        """True if the launch options name nodes."""
        return any(word in self.host_options for word in spec.launch_options)

    def hosts(
        self, options: Sequence[str], environment: Mapping[str, str], folder: Path
    ) -> Hosts | None:
        """The hosts that launch options, or the environment, name; None if none are named.

        ``folder`` is the working directory. Raises RunnerUsageError for a malformed list or file.
        """
        return None

    def on_this_machine(self, spec: LaunchSpec) -> bool:
        """True if all ranks are certainly on this machine, so that their processes and files are
        visible."""
        return spec.one_machine or self.one_node(spec)

    def report_pattern(self, spec: LaunchSpec) -> str:
        """Regular expression of the lines on standard error that :meth:`probe` reads; "": none.

        These lines are removed from the program's output and written to :data:`REPORTED_FILE` in
        the folder of the read-back files.
        """
        return ""

    def transports(self) -> list[str]:
        """Installed values of :attr:`transport_parameter`, in a fixed order."""
        return []

    @classmethod
    def idle_under(cls, names: Iterable[str], transport: str) -> dict[str, str]:
        """The parameters in ``names`` that have no effect under a transport, each with the reason.

        ``transport`` is the read-back value of :data:`TRANSPORT`.
        """
        return {}

    def collective_components(self) -> list[str]:
        """The installed components that serve collectives, with their priority; [] if unknown.

        A collective is served by the first component that implements it.
        """
        return []

    def idle_parameters(self) -> dict[str, str]:
        """Parameters of components below the one that serves all collectives, with the reason."""
        return {}

    def layered_parameters(self) -> dict[str, dict[str, ParamInfo]]:
        """The parameters that belong to other parts than the library, by kind: of the run-time that
        starts the ranks, of PMIx; empty if all are the library's own."""
        return {}

    def own_default(self, name: str) -> str | None:
        """The library's own default of a parameter that the environment or a file sets; None if it
        is not known."""
        return None

    def closed_parameters(self) -> dict[str, ParamInfo]:
        """The parameters of components that are installed but cannot be opened on this machine."""
        return {}

    def components(self) -> dict[str, frozenset[str]]:
        """The installed components by framework; empty if the library has none, or does not say."""
        return {}

    def had_hiccup(self, stderr: str) -> bool:
        """True if a launch that failed before any rank began should simply be repeated."""
        return any(words in stderr for words in self.hiccups)

    def ready_file(self, spec: LaunchSpec, scratch: Path) -> Path | None:
        """The file that the library writes shortly before MPI_Init ends; None if there is none."""
        return None

    @abstractmethod
    def placement_words(self, placement: dict[str, str], oversubscribe: bool) -> list[str]:
        """Mapping and binding as command-line arguments."""

    def places_ranks(self, name: str) -> bool:
        """True if a parameter of the library decides, beside the placement, where ranks run."""
        return False

    def layout_query(self, spec: LaunchSpec) -> LayoutQuery | None:
        """The command that prints where the ranks of ``spec`` would run, without the program.

        None if the library has none, or if its answer may be wrong for other nodes than this one.
        """
        return None

    def layout_in(self, output: str, spec: LaunchSpec, topology: Topology) -> RankLayout | None:
        """The layout in the output of :meth:`layout_query`; None if it has none."""
        return None

    @abstractmethod
    def rank_environment(self, variables: Mapping[str, str]) -> list[str]:
        """Command-line arguments that set ``variables`` for the ranks, not for the launcher."""

    def forwarding(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Library parameters that hand ``variables`` to the ranks of all nodes.

        Empty if the library has no such parameters, or forwards every variable by itself.
        """
        return {}

    @abstractmethod
    def variables(
        self, parameters: Mapping[str, Mapping[str, str]], placement: Mapping[str, str]
    ) -> dict[str, str]:
        """Parameters by kind and the placement as environment variables of the launcher.

        Anything without such a variable is left out.
        """

    @classmethod
    def placement_in(cls, variables: Mapping[str, object]) -> dict[str, tuple[str, list[str]]]:
        """The placement that these variables set: its name -> its value, and the variables."""
        return {}

    def kind_of(self, name: str) -> str | None:
        """The kind of a parameter that the library does not list, by its name.

        None: the library can have no parameter of that name.
        """
        return None

    def share_cores(
        self,
        placement: Mapping[str, str],
        workers: int,
        launch_options: Sequence[str] = (),
        oversubscribe: bool = False,
    ) -> dict[str, str]:
        """``placement`` extended so that each rank gets as many cores as it has workers.

        It is unchanged if the launcher does not bind by itself.
        """
        return dict(placement)

    def c_compiler(self) -> tuple[str, ...]:
        """First arguments of a command that compiles C for this library; empty if there is none.

        A distribution with several libraries in one place adds the family to the compilers' names.
        """
        own = Path(self.library.bin)
        names = (own / f"mpicc.{self.family}", own / "mpicc")
        return next(((str(path),) for path in names if os.access(path, os.X_OK)), ())

    def python_variables(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Variables that make mpi4py load the library of this launcher and no other.

        ``environment`` is that of the process; a library named there stays. Empty if the variables
        are not known.
        """
        return {}

    def can_run(self, file_name: str) -> bool:
        """True if a program that needs the library file ``file_name`` can run with this family: it
        was built for the family's ABI or the standard ABI, or the family's ABI is unknown."""
        return self.abi is None or self.abi.matches(file_name) or STANDARD_ABI.matches(file_name)

    def file_for(self, file_name: str) -> Path | None:
        """This library's file for programs that need ``file_name``; None if it has none."""
        paths = (folder / file_name for folder in self.library.folders)
        return next((path for path in paths if is_file(path)), None)

    def folder_for(self, file_name: str) -> Path | None:
        """A folder in which the loader finds :meth:`file_for` under the name ``file_name``.

        None if there is none.
        """
        own = self.file_for(file_name)
        return None if own is None else own.parent

    def values_in_force(self, environment: dict[str, str]) -> dict[str, str]:
        """Library parameters in force in a process with ``environment``: name -> value.

        A command of the library reports them. The value is "" if the parameter is known but not
        shown.
        """
        return {}
