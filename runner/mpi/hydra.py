"""What MPICH and its derivatives have in common: Hydra's launcher, the ABI, and the read-back.

The libraries share the ABI of MPICH (``libmpi.so.12``) and MPI_T. Values are read back by a library
that is preloaded into the ranks (:mod:`runner.mpi.control_variables`). Without a C compiler each
value is ``not observable``.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from pathlib import Path
from typing import ClassVar

from runner import files
from runner.errors import RunnerError
from runner.files.paths import entries, exists, is_file, is_folder
from runner.files.private_files import private_folder
from runner.mpi.abi import LOADER_PATH, MPICH_ABI
from runner.mpi.base import PYTHON_LIBRARY, Adapter, Probe
from runner.mpi.control_variables import (
    REPORT,
    RankReport,
    belongs_below,
    preload_among,
    read_report,
    report_variables,
    reporting_library,
)
from runner.mpi.hosts import HYDRA_FILES, HYDRA_LISTS, Hosts, hydra_hosts_of
from runner.mpi.library import Library
from runner.types import LIBRARY, LaunchSpec, ReadBack

ABI_NAME = "libmpi.so.12"
"""The library file that programs built for the ABI of MPICH need; mpi4py's wheel is one."""
_OTHER_NAMES = {
    ABI_NAME: "libmpich.so.12",
    "libmpifort.so.12": "libmpichfort.so.12",
    "libmpicxx.so.12": "libmpichcxx.so.12",
}
"""Names of the libraries in distributions that keep MPICH beside Open MPI, whose library is
``libmpi`` too."""
NAMES = (_OTHER_NAMES[ABI_NAME], ABI_NAME)
PLACEMENT = {"map_by": "HYDRA_MAPPING", "bind_to": "HYDRA_BINDING"}
"""Placement as variables of Hydra; Hydra has no choice of the order of ranks."""
_HOST_FILES = ("HYDRA_HOST_FILE", "I_MPI_HYDRA_HOST_FILE")
"""Variables that name a hostfile for every launch."""


def shared_library(library: Library) -> Path | None:
    """The launcher's ``libmpi``; None if it is not in the usual place."""
    paths = (folder / name for folder in library.folders for name in NAMES)
    return next((path for path in paths if is_file(path)), None)


def python_variables(library: Library, environment: Mapping[str, str]) -> dict[str, str]:
    """Variables that make mpi4py load the library of this launcher and no other.

    The wheel of mpi4py asks for :data:`ABI_NAME`. Distributions that keep MPICH beside Open MPI
    have the library only under another name (``libmpich.so.12``). Then a cache folder, which the
    loader searches last, holds a link named :data:`ABI_NAME`.
    """
    own = shared_library(library)
    if own is None:
        return {}
    variables = {PYTHON_LIBRARY: environment.get(PYTHON_LIBRARY, str(own))}
    if not exists(own.parent / ABI_NAME) and (folder := _folder_with_link(own)) is not None:
        before = environment.get(LOADER_PATH)
        variables[LOADER_PATH] = f"{before}:{folder}" if before else str(folder)
    return variables


def _folder_with_link(own: Path) -> Path | None:
    """The folder with the links; None if the cache is not writable, or others control it.

    It links the libraries beside ``own`` under the names of both kinds of distribution. It links
    folders, too, if the library searches for others relative to its own path.
    """
    folder = files.cache("mpich", hashlib.sha256(str(own).encode()).hexdigest()[:16])
    try:
        private_folder(folder)
        links = _links(own)
        for name, place in links.items():
            with suppress(FileExistsError):
                (folder / name).symlink_to(place)
        same = all((folder / name).readlink() == place for name, place in links.items())
        return folder if same else None
    except (OSError, RunnerError):
        return None


def _links(own: Path) -> dict[str, Path]:
    links = dict.fromkeys((ABI_NAME, _OTHER_NAMES[ABI_NAME]), own)
    for one, other in _OTHER_NAMES.items():
        file = next((p for n in (one, other) if is_file(p := own.parent / n)), None)
        if file is not None:
            links |= {one: file, other: file}
    # For $ORIGIN the loader takes the folder of the link, not that of the file.
    if _has_relative_search(own):
        links |= {place.name: place for place in entries(own.parent) if is_folder(place)}
    return links


@lru_cache(maxsize=8)
def _has_relative_search(path: Path) -> bool:
    """True if a library searches for others relative to its own path."""
    content = path.read_bytes()
    return b"$ORIGIN" in content or b"${ORIGIN}" in content


class Hydra(Adapter):
    """Starts programs by Hydra and reads back the values that their ranks report."""

    abi = MPICH_ABI
    placement_names = frozenset(PLACEMENT)
    rank_variables = ("PMI_RANK",)
    host_options = frozenset({*HYDRA_LISTS, *HYDRA_FILES})
    launchers: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("mpirun", "mpiexec", "hydra_pmi_proxy", "hydra_bstrap_pr"), "4.0"
    )
    refusals = ("unrecognized argument", "unable to find", "execvp error", "no executable provided")
    prefixes: ClassVar[tuple[str, ...]]
    """Prefixes of the names of the library's own variables."""
    own_words: ClassVar[re.Pattern[str]]
    """Finds the version, as group 1, in the library's version text."""
    launcher_words: ClassVar[re.Pattern[str]]
    """Finds the version, as group 1, in the launcher's version text."""
    algorithm_names: ClassVar[re.Pattern[str]]
    """Matches the names of parameters for a collective's algorithm; group 1 is the collective."""

    @classmethod
    def version_in(cls, text: str) -> str | None:
        match = cls.launcher_words.search(text)
        return match[1] if match else None

    @classmethod
    def operations_of(cls, parameter: str) -> tuple[str, ...]:
        match = cls.algorithm_names.fullmatch(parameter)
        return (match[1].lower(),) if match else ()

    @classmethod
    def placement_in(cls, variables: Mapping[str, object]) -> dict[str, tuple[str, list[str]]]:
        names = {knob: name for knob, name in PLACEMENT.items() if name in variables}
        return {knob: (str(variables[name]), [name]) for knob, name in names.items()}

    @cached_property
    def reads_back(self) -> bool:  # type: ignore[override]
        """True if the ranks can report; this needs a C compiler once."""
        return reporting_library() is not None

    def command(self, spec: LaunchSpec, scratch: Path) -> list[str]:
        arguments = [self.library.launcher, "-n", str(spec.ranks), *spec.launch_options]
        arguments += self.placement_words(spec.placement, spec.oversubscribe)
        arguments += self.rank_environment(spec.of(LIBRARY) | spec.variables)
        if spec.read_back:
            arguments += self.rank_environment(self._reporting(spec, arguments, scratch))
        return [*arguments, *self.program(spec)]

    def _reporting(self, spec: LaunchSpec, arguments: list[str], scratch: Path) -> dict[str, str]:
        """The variables of the report; other libraries that the launch preloads are kept."""
        looked_at = self.ready_file(spec, scratch) is not None
        preload = preload_among(arguments, spec.env)
        return report_variables(scratch, self._watch_list(spec), preload, looked_at)

    def _watch_list(self, spec: LaunchSpec) -> set[str]:
        """Names of the environment variables whose reading by a library is reported."""
        below = {n for n in spec.variables | spec.expected_variables if belongs_below(n)}
        inherited_names = set() if spec.clean_env else {*self.inherited_settings(dict(os.environ))}
        options = {n for o, n in itertools.pairwise(spec.launch_options) if o in ("-genv", "-env")}
        return {*spec.of(LIBRARY), *spec.expected, *below, *inherited_names, *options}

    def report_environment(self, spec: LaunchSpec, scratch: Path) -> dict[str, str]:
        return self._reporting(spec, [], scratch)

    def ready_file(self, spec: LaunchSpec, scratch: Path) -> Path | None:
        return scratch / REPORT if spec.read_back and self.on_this_machine(spec) else None

    def environment(self, spec: LaunchSpec, base: dict[str, str]) -> dict[str, str]:
        env = {
            key: value
            for key, value in base.items()
            if not (spec.clean_env and key.startswith(self.prefixes))
        }
        # Without these, mpi4py would load the library beside its Python. Each rank would then be a
        # separate world under another MPI's launcher.
        env.update(self.python_variables(env))
        env.update(spec.env)
        return env

    def probe(self, spec: LaunchSpec, scratch: Path) -> Probe:
        report = read_report(scratch)
        requests = spec.of(LIBRARY) | spec.expected
        if not report.is_initialised:
            # A program that started without loading the report's library can hide MPI_Init.
            states = {name: ReadBack("not observable", value) for name, value in requests.items()}
            return Probe(is_initialised=False if report.is_loaded else None, read_back=states)
        below = spec.variables | spec.expected_variables
        requests |= {name: value for name, value in below.items() if belongs_below(name)}
        return Probe(
            is_initialised=True,
            world_size=report.world_size,
            read_back={n: report.state(n, value, self.library) for n, value in requests.items()},
            inherited_values=self._inherited_values(report, requests),
            library_mismatch=self._mismatch(report),
        )

    def _inherited_values(self, report: RankReport, requests: Mapping[str, str]) -> dict[str, str]:
        """Library variables in force that nobody requested, each with the library that read it."""
        return {
            name: f"{value} (read by {by})"
            for name, (value, by) in report.reads.items()
            if value is not None and name not in requests and name.startswith(self.prefixes)
        }

    def _mismatch(self, report: RankReport) -> str | None:
        """How the ranks' library differs from the launcher's; None if they are the same."""
        match = self.own_words.search(report.version)
        if match is None:
            return f"it is {report.version or report.path}"
        if match[1] == self.library.version:
            return None
        return f"it is {self.title} {match[1]} in {report.path}"

    def rank_environment(self, variables: Mapping[str, str]) -> list[str]:
        return [word for pair in variables.items() for word in ("-genv", *pair)]

    def variables(
        self, parameters: Mapping[str, Mapping[str, str]], placement: Mapping[str, str]
    ) -> dict[str, str]:
        policies = {PLACEMENT[n]: v for n, v in placement.items() if n in PLACEMENT}
        return dict(parameters.get(LIBRARY, {})) | policies

    def kind_of(self, name: str) -> str | None:
        return LIBRARY if name.startswith(self.prefixes) else None

    def python_variables(self, environment: Mapping[str, str]) -> dict[str, str]:
        return python_variables(self.library, environment)

    def file_for(self, file_name: str) -> Path | None:
        own = super().file_for(file_name)
        return shared_library(self.library) if own is None and MPICH_ABI.matches(file_name) else own

    def folder_for(self, file_name: str) -> Path | None:
        own = self.file_for(file_name)
        if own is None or exists(own.parent / file_name):
            return None if own is None else own.parent
        return _folder_with_link(own)

    def names_hosts(self, spec: LaunchSpec) -> bool:
        return super().names_hosts(spec) or any(map(os.environ.get, _HOST_FILES))

    def hosts(
        self, options: Sequence[str], environment: Mapping[str, str], folder: Path
    ) -> Hosts | None:
        usual = next((v for n in _HOST_FILES if (v := environment.get(n))), None)
        return hydra_hosts_of(options, usual, folder)

    def inherited_settings(self, environment: dict[str, str]) -> dict[str, str]:
        return {k: v for k, v in environment.items() if k.startswith(self.prefixes)}

    @abstractmethod
    def placement_words(self, placement: dict[str, str], oversubscribe: bool) -> list[str]: ...
