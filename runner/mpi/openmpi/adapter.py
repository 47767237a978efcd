"""Open MPI 4.1 and 5.0: command line, environment, and the values read back after MPI_Init.

The two generations differ in the options for mapping, binding and oversubscription, and in the
component that owns them (ORTE in 4.1, PRRTE in 5.0). Read-back is the same for both:
``mpi_show_mca_params all`` into a file.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from runner.cpus import core_numbers, cpu_list
from runner.files import MIB, read_bytes
from runner.files.paths import exists, file_state, real_path
from runner.mpi.abi import OPEN_MPI_ABI
from runner.mpi.base import PYTHON_LIBRARY, REPORTED_FILE, Adapter, Probe
from runner.mpi.hosts import (
    DEFAULT_HOSTFILE,
    HOST_LISTS,
    HOSTFILES,
    Hosts,
    hosts_of,
)
from runner.mpi.library import POLICIES, Library, ParamInfo
from runner.mpi.openmpi.collectives import (
    COMPONENT_LINE,
    component_priorities,
    idle_parameters,
    log_options,
    operations_of,
    served_collectives,
)
from runner.mpi.openmpi.options import (
    LIST_SIGN,
    VARIABLE_LIST,
    export_options,
    joined_variables,
    map_options,
    mapping_and_binding,
    placement_options,
    shared_cores,
    unbound,
    values_of,
    yield_options,
)
from runner.mpi.openmpi.parameters import (
    ENV_PREFIXES,
    PARAM_FILES,
    closed_parameters,
    installed_components,
    library_file,
    ompi_info_of,
    own_defaults,
    parameter_files,
    parameter_lines,
    parameter_of,
    read_parameter_file,
    read_parameters,
)
from runner.mpi.openmpi.rules import forced_algorithms
from runner.mpi.openmpi.runtime_parameters import read_pmix, read_prte
from runner.mpi.openmpi.shown import (
    SHOW_FILE,
    SHOW_PARAMETER,
    RunValues,
    inherited_values,
    mismatch_of,
    parse_run_values,
    state_of,
    world_size,
)
from runner.mpi.openmpi.traffic import (
    PMLS,
    UCX_CARRIER,
    carrier,
    idle_under,
    transport_of,
    without_traffic,
)
from runner.mpi.openmpi.ucx import (
    UCX_LINE,
    logging_ucx,
    parse_ucx_log,
    refused_log,
    ucx_complaint,
    ucx_logs,
    ucx_protocols,
    ucx_variables,
    uses_ucx,
)
from runner.mpi.openmpi.windows import (
    WINDOW_LINE,
    components_of,
    watching_windows,
    windows_of,
    without_windows,
)
from runner.mpi.rank_layout import LayoutQuery, RankLayout, Topology, open_mpi_layout
from runner.types import LIBRARY, TRANSPORT, WINDOWS, LaunchSpec, ReadBack

_MOST_BYTES = 16 * MIB
"""Limit for the values that a rank wrote."""
_RUNTIME, _PMIX = "prte", "pmix"
"""Kinds of parameters: of the run-time that starts the ranks (ORTE or PRRTE), and of PMIx."""
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
_OF_RUNTIME = re.compile(r"(prte|orte|plm|rmaps|ras|odls|oob|ess|state|hwloc_default)_\w+")
_PLACES_RANKS = re.compile(r"(orte_)?(rmaps|hwloc)_(base|default)_\w+|rmaps_\w+|orte_cpu_set")
"""Parameters of the run-time that map or bind ranks; 4.1 has them among the library's."""
_VERSION = re.compile(r"\(Open MPI\) v?(\d[\w.]*)|\(OpenRTE\) v?(\d[\w.]*)")


class OpenMPI(Adapter):
    family = "openmpi"
    title = "Open MPI"
    abi = OPEN_MPI_ABI
    kinds = (LIBRARY, _RUNTIME, _PMIX)
    placement_names = frozenset(POLICIES)
    reads_back = True
    tune_option = "--tune"
    root_option = "--allow-run-as-root"
    on_testbed = True
    transport_parameter = "pml"
    # Open MPI demands both variables from root; for other users they have no effect.
    version_marker = "(Open MPI) "
    identify_environment: ClassVar[Mapping[str, str]] = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    rank_variables = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK")
    host_options = frozenset({*HOST_LISTS, *HOSTFILES})
    counts_slots = True
    # mpirun of 5.0 becomes prterun; that of the 4.1 wheel becomes orterun_wrapper.
    launchers: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("prterun", "prte", "prted"), "5.0"),
        **dict.fromkeys(("mpirun", "mpiexec", "orterun", "orterun_wrapper", "orted"), "4.1"),
    }
    # Sometimes seen with 5.0.11 (exit code 213); the same command then works.
    hiccups = ("PMIx server's listener thread failed to start",)
    refusals = (
        "not enough slots",
        "slots that were requested",
        "could not access\nor execute",
        "was unable to find the specified executable",
        "unable to launch the specified application",
        "unrecognized",
        "Unrecognized",
        "was unable to launch",
        "unknown option",
        "requires a value",
        "binding directive",
        "mapping policy is invalid",
        "The specified",
        "not supported",
        "invalid policy",
        "could not be found",
        "Your job failed to map",
    )

    def __init__(self, library: Library) -> None:
        super().__init__(library)
        self.prrte = library.version_tuple >= (5,)
        self.forwards_input = not self.prrte
        self._has_ucx_traffic = False
        """True if UCX carried the messages of a run."""
        self._no_log_files = False
        """True if UCX could not open its log in a run."""
        self._read_settings: dict[tuple[tuple[str, str], ...], dict[str, str]] | None = None
        """Within a launch, what :meth:`inherited_settings` read, by the variables of the spec."""

    @classmethod
    def version_in(cls, text: str) -> str | None:
        match = _VERSION.search(text)
        return (match[1] or match[2]) if match else None

    @classmethod
    def complete(cls, library: Library) -> Library:
        return dataclasses.replace(library, params=read_parameters(ompi_info_of(library)))

    def command(self, spec: LaunchSpec, scratch: Path) -> list[str]:
        arguments = [self.library.launcher, "-n", str(spec.ranks)]
        arguments += self._yielding(spec)
        arguments += mapping_and_binding(spec, self.prrte, self.names_hosts(spec))
        own = spec.of(LIBRARY) | watching_windows(spec)
        for option, settings in (("--mca", own), *self._runtime(spec)):
            for name, value in settings.items():
                arguments += [option, name, value]
        exports = {k: v for k, v in spec.variables.items() if not k.startswith(ENV_PREFIXES)}
        if spec.clean_env and self.prrte and "HOME" in os.environ:
            exports |= {"HOME": os.environ["HOME"]}
        if self._logs_ucx(spec):
            exports = logging_ucx(self._log_folder(spec, scratch), spec.ranks) | exports
        arguments += export_options(exports, self._site_variables(spec))
        arguments += self._log_options(spec)
        if spec.read_back:
            arguments += ["--mca", "mpi_show_mca_params", "all"]
            arguments += ["--mca", SHOW_PARAMETER, str(scratch / SHOW_FILE)]
        return [*arguments, *self.program(spec)]

    def report_environment(self, spec: LaunchSpec, scratch: Path) -> dict[str, str]:
        own = watching_windows(spec) | values_of(self._log_options(spec))
        own |= {"mpi_show_mca_params": "all", SHOW_PARAMETER: str(scratch / SHOW_FILE)}
        logs = logging_ucx(self._log_folder(spec, scratch), spec.ranks)
        return self.variables({LIBRARY: own}, {}) | (logs if self._logs_ucx(spec) else {})

    def _logs_ucx(self, spec: LaunchSpec) -> bool:
        """True if UCX should write its log because it is known to have a part in the launch.

        If the library chose UCX by itself, this is known after the first run.
        """
        return spec.read_back and (
            self._has_ucx_traffic or uses_ucx(spec, self._inherited_names(spec))
        )

    def _log_options(self, spec: LaunchSpec) -> tuple[str, ...]:
        return log_options(spec, self.one_node(spec), self._inherited_names(spec))

    def _inherited_names(self, spec: LaunchSpec) -> list[str]:
        """Names of library parameters set by the environment or a parameter file."""
        if spec.clean_env:
            return []
        return [parameter_of(name) for name in self._around(spec)]

    @contextmanager
    def one_launch(self) -> Iterator[None]:
        before = self._read_settings
        self._read_settings = {}
        try:
            yield
        finally:
            self._read_settings = before

    def _around(self, spec: LaunchSpec) -> dict[str, str]:
        """The settings of the environment and of the parameter files around a launch."""
        known_settings = self._read_settings
        if known_settings is None:
            return self.inherited_settings(os.environ | spec.env)
        key = tuple(spec.env.items())
        if key not in known_settings:
            known_settings[key] = self.inherited_settings(os.environ | spec.env)
        return known_settings[key]

    def had_hiccup(self, stderr: str) -> bool:
        # A rank in a container may not see the folder.  From now on the log goes to standard error.
        self._no_log_files = self._no_log_files or refused_log(stderr)
        return super().had_hiccup(stderr) or refused_log(stderr)

    def _log_folder(self, spec: LaunchSpec, scratch: Path) -> Path | None:
        """Folder in which the ranks write UCX's log; None for standard error."""
        return scratch if self.on_this_machine(spec) and not self._no_log_files else None

    def report_pattern(self, spec: LaunchSpec) -> str:
        logs = self._logs_ucx(spec) and self._log_folder(spec, Path()) is None
        kinds = {
            UCX_LINE: logs,
            WINDOW_LINE: watching_windows(spec),
            COMPONENT_LINE: self._log_options(spec),
        }
        return "|".join(line for line, is_wanted in kinds.items() if is_wanted)

    def confine(self, spec: LaunchSpec, cpus: frozenset[int]) -> LaunchSpec:
        """``spec`` with the core list or binding that keeps the ranks within ``cpus``.

        Both generations may bind to any core of the machine, regardless of inherited affinity. A
        list of cores (in hwloc's numbers) prevents that, but 4.1 refuses a list beside a mapping,
        and 5.0 respects it only if it binds to cores. In these cases the ranks stay unbound and
        keep the inherited affinity, unless the spec asks for a binding. If that binding leaves
        ``cpus``, read-back shows it.
        """
        options = unbound(spec, self.prrte)
        cores = cpu_list(core_numbers(cpus))
        if self.prrte:
            options = ("--prtemca", "hwloc_default_cpu_list", cores, *options)
        elif "map_by" not in spec.placement:
            options = ("--mca", "hwloc_base_cpu_list", cores)
        return dataclasses.replace(spec, launch_options=(*options, *spec.launch_options))

    def _runtime(self, spec: LaunchSpec) -> tuple[tuple[str, dict[str, str]], ...]:
        if self.prrte:
            return (("--prtemca", spec.of(_RUNTIME)), ("--pmixmca", spec.of(_PMIX)))
        # 4.1 has one namespace for the library and its run-time environment.
        return (("--mca", spec.of(_RUNTIME)), ("--mca", spec.of(_PMIX)))

    def _yielding(self, spec: LaunchSpec) -> tuple[str, ...]:
        return yield_options(spec) if spec.oversubscribe and self.names_hosts(spec) else ()

    def placement_words(self, placement: dict[str, str], oversubscribe: bool) -> list[str]:
        return placement_options(placement, oversubscribe, self.prrte)

    def environment(self, spec: LaunchSpec, base: dict[str, str]) -> dict[str, str]:
        env = {
            key: value
            for key, value in base.items()
            if not (spec.clean_env and key.startswith(ENV_PREFIXES))
        }
        if spec.clean_env:
            # This keeps the ranks from reading the user's and the system's parameter files. 5.0's
            # launcher still reads the user's file and passes the values on, so it gets another
            # HOME; command() gives the ranks the real HOME back.
            env[PARAM_FILES] = "none"
            if self.prrte:
                env["HOME"] = "/nonexistent"
        env |= self.identify_environment
        # Without it, mpi4py would load the library beside its Python, under any launcher.
        env |= self.python_variables(env)
        env.update(spec.env)
        # The launcher passes variables with its own prefixes on to all nodes by itself.
        env |= {k: v for k, v in spec.variables.items() if k.startswith(ENV_PREFIXES)}
        return env

    def rank_environment(self, variables: Mapping[str, str]) -> list[str]:
        return export_options(variables, ())

    def _site_variables(self, spec: LaunchSpec) -> list[str]:
        """The variables in the list that a parameter file or the environment sets, for 4.1."""
        if self.prrte or spec.clean_env:
            return []
        around = self._around(spec)
        lists = [value for name, value in around.items() if parameter_of(name) == VARIABLE_LIST]
        return [word for word in lists[0].split(LIST_SIGN) if word] if lists else []

    def forwarding(self, variables: Mapping[str, str]) -> dict[str, str]:
        # 4.1 refuses the parameter beside an option -x, so a file with it would break launches.
        joined = joined_variables(dict(sorted(variables.items()))) if self.prrte else ""
        return {VARIABLE_LIST: joined} if joined else {}

    def variables(
        self, parameters: Mapping[str, Mapping[str, str]], placement: Mapping[str, str]
    ) -> dict[str, str]:
        own, runtime, pmix = ENV_PREFIXES if self.prrte else ENV_PREFIXES[:1] * 3
        policies = {POLICIES[n][self.prrte]: v for n, v in placement.items() if n in POLICIES}
        return {
            prefix + name: value
            for prefix, values in (
                (own, parameters.get(LIBRARY, {})),
                (runtime, parameters.get(_RUNTIME, {})),
                (runtime, policies),
                (pmix, parameters.get(_PMIX, {})),
            )
            for name, value in values.items()
        }

    def kind_of(self, name: str) -> str | None:
        if _VARIABLE.fullmatch(name):
            return None
        return _RUNTIME if self.prrte and _OF_RUNTIME.fullmatch(name) else LIBRARY

    def share_cores(
        self,
        placement: Mapping[str, str],
        workers: int,
        launch_options: Sequence[str] = (),
        oversubscribe: bool = False,
    ) -> dict[str, str]:
        return shared_cores(placement, workers, launch_options, oversubscribe)

    def places_ranks(self, name: str) -> bool:
        return _PLACES_RANKS.fullmatch(name) is not None

    def layout_query(self, spec: LaunchSpec) -> LayoutQuery | None:
        # The map shows this node's cores for every node.
        if not self.on_this_machine(spec):
            return None
        bare = dataclasses.replace(spec, program=("true",), stdin=None, read_back=False)
        launcher, *arguments = self.command(bare, Path())
        options = map_options(spec, self.prrte, self.names_hosts(spec))
        # ORTE prints the map, and then complains that nothing was launched.
        return LayoutQuery([launcher, *options, *arguments], fails=not self.prrte)

    def layout_in(self, output: str, spec: LaunchSpec, topology: Topology) -> RankLayout | None:
        return open_mpi_layout(output, spec.ranks, topology)

    def python_variables(self, environment: Mapping[str, str]) -> dict[str, str]:
        own = self._shared_library
        return {PYTHON_LIBRARY: environment.get(PYTHON_LIBRARY, own)} if own else {}

    @cached_property
    def _shared_library(self) -> str:
        return library_file(self._prefix)

    @cached_property
    def _prefix(self) -> Path:
        """The folder of the installation."""
        return real_path(self.library.bin).parent

    def ready_file(self, spec: LaunchSpec, scratch: Path) -> Path | None:
        # Rank 0 writes the file before the barrier at the end of MPI_Init, when all ranks are
        # there.
        return scratch / SHOW_FILE if spec.read_back else None

    def probe(self, spec: LaunchSpec, scratch: Path) -> Probe:
        report_lines = _lines(scratch / REPORTED_FILE)
        logs = ucx_logs(scratch, report_lines)
        try:
            content = read_bytes(scratch / SHOW_FILE, _MOST_BYTES)
            text = content.decode("utf-8", "replace")
        except OSError:  # The ranks did not get there, or wrote another file to this path.
            return Probe(is_initialised=False, complaint=ucx_complaint(logs))
        size, run_values = parse_run_values(text)
        options = (
            *self._yielding(spec),
            *self._log_options(spec),
            *spec.launch_options,
        )
        ours = values_of(options) | spec.of(LIBRARY) | spec.expected | watching_windows(spec)
        params = self.library.params
        if self._site_variables(spec):
            ours |= {VARIABLE_LIST: ""}
        inherited_settings = inherited_values(run_values, ours, spec, params)
        requests = spec.of(LIBRARY) | spec.expected
        read_back = {
            name: state_of(name, value, run_values, params) for name, value in requests.items()
        }
        read_back |= without_traffic(read_back, run_values, self.one_node(spec) and spec.ranks > 1)
        log = parse_ucx_log(logs) if logs else None
        self._has_ucx_traffic = self._has_ucx_traffic or carrier(run_values) == UCX_CARRIER
        read_back |= ucx_variables(spec.variables, log, carrier(run_values) == UCX_CARRIER)
        read_back |= ucx_protocols(log)
        read_back |= self._windows(spec, read_back, components_of(report_lines, log))
        read_back |= served_collectives(read_back, report_lines)
        read_back |= self._algorithm_states(spec, read_back, run_values)
        transport = transport_of(run_values, log, self.one_node(spec))
        read_back |= {TRANSPORT: transport} if transport.effective and spec.ranks > 1 else {}
        mismatch = mismatch_of(self.library, self._prefix, run_values, spec)
        complaint = ucx_complaint(logs)
        return Probe(
            True, world_size(size, run_values), read_back, inherited_settings, mismatch, complaint
        )

    def _algorithm_states(
        self, spec: LaunchSpec, read_back: Mapping[str, ReadBack], run_values: RunValues
    ) -> dict[str, ReadBack]:
        """The parameters that force algorithms, where a rules file or a switch overrides them."""
        return forced_algorithms(
            read_back,
            run_values,
            spec.ranks,
            file_first=not self.prrte,
            folder=Path(spec.cwd or Path.cwd()),
            on_this_machine=self.on_this_machine(spec),
        )

    def _windows(
        self, spec: LaunchSpec, read_back: Mapping[str, ReadBack], components: tuple[str, ...]
    ) -> dict[str, ReadBack]:
        """The components that served the windows, and their parameters without effect."""
        if not watching_windows(spec):
            return {}
        state = windows_of(components, names_every_window=self.prrte)
        idle = without_windows(read_back, components) if self.prrte else {}
        return idle | ({WINDOWS: state} if state else {})

    def layered_parameters(self) -> dict[str, dict[str, ParamInfo]]:
        folder = Path(self.library.bin)
        # 4.1 has one namespace for the library and its run-time environment.
        return {_RUNTIME: read_prte(folder), _PMIX: read_pmix(folder)} if self.prrte else {}

    def own_default(self, name: str) -> str | None:
        return own_defaults(self._ompi_info).get(name)

    def closed_parameters(self) -> dict[str, ParamInfo]:
        return closed_parameters(self._ompi_info)

    def components(self) -> dict[str, frozenset[str]]:
        return installed_components(self._ompi_info)

    @property
    def _ompi_info(self) -> str:
        return str(ompi_info_of(self.library))

    def collective_components(self) -> list[str]:
        priorities = component_priorities(self.library.params)
        return [f"{c} {p}{' (between nodes)' if c == 'han' else ''}" for c, p in priorities.items()]

    def idle_parameters(self) -> dict[str, str]:
        return idle_parameters(self.library.params)

    @classmethod
    def operations_of(cls, parameter: str) -> tuple[str, ...]:
        return operations_of(parameter)

    def transports(self) -> list[str]:
        return [p for p in PMLS if any(n.startswith(f"pml_{p}_") for n in self.library.params)]

    @classmethod
    def idle_under(cls, names: Iterable[str], transport: str) -> dict[str, str]:
        return idle_under(names, transport)

    def names_hosts(self, spec: LaunchSpec) -> bool:
        return super().names_hosts(spec) or DEFAULT_HOSTFILE in self._inherited_names(spec)

    def hosts(
        self, options: Sequence[str], environment: Mapping[str, str], folder: Path
    ) -> Hosts | None:
        settings = self.inherited_settings(dict(environment))
        usual = {parameter_of(key): value for key, value in settings.items()}
        return hosts_of(options, usual.get(DEFAULT_HOSTFILE), folder)

    def state_of_lists(self) -> Hashable:
        # They choose the components that are opened, whose parameters alone are listed.
        return tuple(map(file_state, parameter_files(self.library, dict(os.environ))))

    def settings_files(self, environment: dict[str, str]) -> dict[str, list[tuple[int, str, str]]]:
        files = parameter_files(self.library, environment)
        # The override file counts before all others.
        files.sort(key=lambda path: not path.name.endswith("-override.conf"))
        lines = {str(path): parameter_lines(path) for path in files}
        return {path: entries for path, entries in lines.items() if entries}

    def inherited_settings(self, environment: dict[str, str]) -> dict[str, str]:
        settings = {k: v for k, v in environment.items() if k.startswith(ENV_PREFIXES)}
        for path in parameter_files(self.library, environment):
            for name, value in read_parameter_file(path).items():
                settings[f"{path}:{name}"] = value
        return settings


def _lines(path: Path) -> list[str]:
    """The lines of a file; empty if there is no file."""
    return path.read_text(encoding="utf-8", errors="replace").splitlines() if exists(path) else []
