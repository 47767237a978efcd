"""Intel MPI: settings are I_MPI_* variables.

The launcher is a Hydra, but ``-bind-to`` and ``-map-by`` have no effect in it: it pins by variables
(I_MPI_PIN_DOMAIN), and pins by default. The library aborts on a number that it cannot read. Where
it replaces a given value, it says so while it starts (:mod:`runner.mpi.intel_startup`).
"""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import ClassVar

from runner.errors import RunnerUsageError
from runner.files.paths import is_file, real_path
from runner.mpi.base import Probe
from runner.mpi.hydra import Hydra, shared_library
from runner.mpi.intel_info import COMMAND, read_parameters
from runner.mpi.intel_startup import (
    DEBUG,
    FABRICS,
    FILE,
    FILE_VARIABLE,
    LEVEL,
    SOURCE,
    idle_under,
    read_startup,
)
from runner.mpi.library import Library
from runner.mpi.mpiexec_conf import NONE, conf_files, variables_in
from runner.types import LIBRARY, TRANSPORT, LaunchSpec, ReadBack

FAMILY = "impi"
ROOT = "I_MPI_ROOT"
WAIT_MODE, YIELD = "I_MPI_WAIT_MODE", "I_MPI_THREAD_YIELD"
PIN, DOMAIN, RESPECT = "I_MPI_PIN", "I_MPI_PIN_DOMAIN", "I_MPI_PIN_RESPECT_CPUSET"
BINDINGS = {
    "core": "core",
    "cache": "cache",
    "l1cache": "cache1",
    "l2cache": "cache2",
    "l3cache": "cache3",
    "numa": "numa",
    "socket": "socket",
    "package": "socket",
    "node": "node",
}
"""Values of ``bind_to`` besides ``none``, and the domain of each; the launcher ignores others."""
_HYDRA = "mpiexec.hydra"
_VERSION = re.compile(r"Intel\(R\) MPI Library for Linux\* OS, Version (\d[\d.]*)")
_ALGORITHM = re.compile(
    r"I_MPI_ADJUST_(I?(?:ALLGATHERV?|ALLREDUCE|ALLTOALL[VW]?|BARRIER|BCAST|EXSCAN|GATHERV?"
    r"|REDUCE_SCATTER_BLOCK|REDUCE_SCATTER|REDUCE|SCAN|SCATTERV?))(?:_[A-Z0-9_]+)?"
)
_INSTALLATION = frozenset({ROOT, "I_MPI_ONEAPI_ROOT", "I_MPI_MPIRUN", "I_MPI_LIBRARY_KIND"})
"""Variables that say where the library is; they are not settings."""
_STARTING = re.compile(r"I_MPI_(HYDRA_\w+|PORT_RANGE|TMPDIR|PMI_LIBRARY|OFI_LIBRARY_INTERNAL|YARN)")
"""Variables that a site's launcher may need to reach its nodes; they stay in every launch."""


class IntelMpi(Hydra):
    family = FAMILY
    title = "Intel MPI"
    parameter_names = "variables (I_MPI_...)"
    placement_names = frozenset({"bind_to"})
    transport_parameter = FABRICS
    # With an options file of only comments, the launcher crashes before it prints its version.
    identify_environment: ClassVar[Mapping[str, str]] = {"HOME": "/nonexistent"}
    version_marker = "Intel(R) MPI Library for Linux* OS, Version "
    # Its processes have the same names as MPICH's; listing both would make neither known.
    launchers: ClassVar[Mapping[str, str]] = {}
    prefixes = ("I_MPI_", "MPIR_CVAR_")
    launcher_words = _VERSION
    algorithm_names = _ALGORITHM
    own_words = re.compile(r"Intel\(R\) MPI Library (\d[\d.]*)")

    @classmethod
    def complete(cls, library: Library) -> Library:
        command = Path(library.bin) / COMMAND
        params = read_parameters(command, _surroundings(library, os.environ))
        return dataclasses.replace(library, params=params)

    @classmethod
    def placement_in(cls, variables: Mapping[str, object]) -> dict[str, tuple[str, list[str]]]:
        bound = _binding_of(variables)
        return {} if bound is None else {"bind_to": (bound, [PIN, DOMAIN])}

    def command(self, spec: LaunchSpec, scratch: Path) -> list[str]:
        environment = {} if spec.clean_env else os.environ
        if {WAIT_MODE, YIELD} & {*environment, *spec.env}:
            spec = dataclasses.replace(spec, oversubscribe=False)
        arguments = super().command(spec, scratch)
        return [self._starter(), *([NONE] if spec.clean_env else []), *arguments[1:]]

    def _starter(self) -> str:
        """The launcher, or what ``mpirun`` should start where PATH leads to another Hydra.

        So the printed line works in a shell, too.
        """
        launcher = Path(self.library.launcher)
        own = launcher.parent / _HYDRA
        is_reachable = self._path(os.environ) == os.environ.get("PATH", os.defpath)
        return str(
            launcher if is_reachable or launcher.name != "mpirun" or not is_file(own) else own
        )

    def program(self, spec: LaunchSpec) -> tuple[str, ...]:
        """The program's argument list; its file is found on the caller's PATH.

        The PATH of the launch (:meth:`environment`) may lead to other programs.
        """
        first, *others = spec.program
        path = shutil.which(first) if os.sep not in first else None
        if path is not None and path != shutil.which(first, path=self._path(os.environ)):
            spec = dataclasses.replace(spec, program=(path, *others))
        return super().program(spec)

    def _path(self, environment: Mapping[str, str]) -> str:
        """PATH with which ``mpirun``, a script, finds this library's ``mpiexec.hydra``."""
        path = environment.get("PATH", os.defpath)
        launcher = shutil.which(_HYDRA, path=path)
        if launcher is not None and Path(launcher).parent == Path(self.library.bin):
            return path
        return f"{self.library.bin}{os.pathsep}{path}"

    def environment(self, spec: LaunchSpec, base: dict[str, str]) -> dict[str, str]:
        staying = {n: v for n, v in base.items() if _STARTING.fullmatch(n)}
        env = _surroundings(self.library, super().environment(spec, base) | staying)
        return env | {"PATH": self._path(env)} | spec.env

    def confine(self, spec: LaunchSpec, cpus: frozenset[int]) -> LaunchSpec:
        """The launcher stays within its inherited affinity unless an option says otherwise."""
        options = self.rank_environment({RESPECT: "1"}) if RESPECT in os.environ else []
        return dataclasses.replace(spec, launch_options=(*options, *spec.launch_options))

    def places_ranks(self, name: str) -> bool:
        return name == PIN or name.startswith(f"{PIN}_")

    def placement_words(self, placement: dict[str, str], oversubscribe: bool) -> list[str]:
        # Ranks that spin while waiting for a rank without a core lose whole time slices.
        waiting = {WAIT_MODE: "1"} if oversubscribe else {}
        return self.rank_environment(waiting | _pinning(placement))

    def variables(
        self, parameters: Mapping[str, Mapping[str, str]], placement: Mapping[str, str]
    ) -> dict[str, str]:
        return _pinning(placement) | dict(parameters.get(LIBRARY, {}))

    def _watch_list(self, spec: LaunchSpec) -> set[str]:
        # A variable of the launcher's files is listed as FILE:NAME.
        return {name.rpartition(":")[2] for name in super()._watch_list(spec)}

    def _reporting(self, spec: LaunchSpec, arguments: list[str], scratch: Path) -> dict[str, str]:
        variables = super()._reporting(spec, arguments, scratch)
        if not variables or DEBUG in spec.of(LIBRARY):
            return variables
        return variables | {FILE_VARIABLE: str(scratch / FILE), DEBUG: str(LEVEL)}

    def probe(self, spec: LaunchSpec, scratch: Path) -> Probe:
        base = super().probe(spec, scratch)
        startup = read_startup(scratch)
        if base.is_initialised is None and self.on_this_machine(spec):
            # The launcher's own message is sometimes lost: it ends by SIGPIPE.
            first = spec.program[0]
            why = "" if shutil.which(first) else f"there is no program {first}"
            return dataclasses.replace(base, start_problem=why)
        if not base.is_initialised or not startup.fabric:
            return base
        params = self.library.params
        states = {n: startup.judge(n, b, params.get(n)) for n, b in base.read_back.items()}
        if spec.ranks > 1:
            states[TRANSPORT] = ReadBack("in force", "", startup.transport, SOURCE)
        return dataclasses.replace(base, read_back=states)

    @classmethod
    def idle_under(cls, names: Iterable[str], transport: str) -> dict[str, str]:
        return idle_under(names, transport)

    def transports(self) -> list[str]:
        return ["shm", "shm:ofi", "ofi"]

    def inherited_settings(self, environment: dict[str, str]) -> dict[str, str]:
        """Variables, and those of the launcher's files, which have precedence."""
        settings = super().inherited_settings(environment)
        settings = {n: v for n, v in settings.items() if n not in _INSTALLATION}
        places = _surroundings(self.library, environment)
        for path in conf_files(places, Path.cwd()):
            settings |= {f"{path}:{n}": v for n, v in variables_in(path).items()}
        return settings

    def settings_files(self, environment: dict[str, str]) -> dict[str, list[tuple[int, str, str]]]:
        files = conf_files(_surroundings(self.library, environment), Path.cwd())
        return {
            str(path): [(0, name, value) for name, value in variables_in(path).items()]
            for path in reversed(files)
        }

    def c_compiler(self) -> tuple[str, ...]:
        """The C compiler with the library's paths: its ``mpicc`` needs other variables."""
        own, compiler = shared_library(self.library), shutil.which("cc")
        prefix = real_path(self.library.bin).parent
        if own is None or compiler is None or not is_file(prefix / "include" / "mpi.h"):
            return ()
        return (
            compiler, f"-I{prefix / 'include'}", f"-L{own.parent}", f"-Wl,-rpath,{own.parent}",
            "-Wl,--no-as-needed", "-lmpi", "-Wl,--as-needed",
        )  # fmt: skip


def _pinning(placement: Mapping[str, str]) -> dict[str, str]:
    """Binding as variables; raises RunnerUsageError for a word that the launcher would ignore."""
    binding = placement.get("bind_to")
    if binding is None:
        return {}
    if binding == "none":
        return {PIN: "0"}
    if binding not in BINDINGS:
        raise RunnerUsageError(
            f"bind_to={binding}: Intel MPI has no such binding and would ignore it; expected none, "
            f"{', '.join(BINDINGS)}",
            code="parameter.value",
        )
    return {PIN: "1", DOMAIN: BINDINGS[binding]}


def _binding_of(variables: Mapping[str, object]) -> str | None:
    """The ``bind_to`` that these variables set; None if they set none."""
    texts = {name: str(value) for name, value in variables.items()}
    bindings = ("none", *BINDINGS)
    return next((w for w in bindings if _pinning({"bind_to": w}).items() <= texts.items()), None)


def _surroundings(library: Library, environment: Mapping[str, str]) -> dict[str, str]:
    """``environment`` with the paths of ``library``: its root, and its libraries first."""
    env = dict(environment)
    env[ROOT] = str(real_path(library.bin).parent)
    own = shared_library(library)
    if own is not None:
        before = [p for p in env.get("LD_LIBRARY_PATH", "").split(os.pathsep) if p]
        if before[:1] != [str(own.parent)]:
            env["LD_LIBRARY_PATH"] = os.pathsep.join([str(own.parent), *before])
    return env
