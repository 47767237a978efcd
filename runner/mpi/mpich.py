"""MPICH (Hydra): settings are MPIR_CVAR_* variables; no value is read back.

A run of MPICH leaves no trace of the values in force. MPICH aborts in MPI_Init on a bad number,
choice or tuning file, but accepts unknown variables and most text silently. So every value is ``not
observable``, and each run record says so.

The first part looks into an installation: its shared library, its selection tree, its variables.
MPICH has no command that prints the tree by which it selects algorithms. A file that replaces the
tree must be complete: if a collective is missing, every program that calls it aborts. The tree is a
constant text in the shared library and is read there. The second part is the adapter.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from runner import files
from runner.files import trusted
from runner.mpi.abi import LOADER_PATH, MPICH_ABI
from runner.mpi.base import PYTHON_LIBRARY, Adapter, Probe
from runner.mpi.library import Library
from runner.types import LIBRARY, LaunchSpec, ReadBack

Tree = dict[str, Any]
FAMILY = "mpich"
TIMEOUT_S = 20
ABI_NAME = "libmpi.so.12"
"""The library that programs built for the ABI of MPICH ask for; mpi4py's wheel is one."""
_OTHER_NAMES = {
    ABI_NAME: "libmpich.so.12",
    "libmpifort.so.12": "libmpichfort.so.12",
    "libmpicxx.so.12": "libmpichcxx.so.12",
}
"""Names of MPICH's libraries in distributions that keep MPICH beside Open MPI."""
_TREE = re.compile(rb'\{"collective=[^\0]{2,1000000}\0')
_ALGORITHM = re.compile(r'"algorithm=(MPI[A-Z]+)_')
_LINE = re.compile(
    r"^\t(MPIR_CVAR_[A-Z0-9_]+) *=([^\t\n]*)\tSCOPE_[^\t\n]*\t[^\t\n]*\t(\w+)\t", re.MULTILINE
)


def shared_library(library: Library) -> Path | None:
    """The ``libmpi`` that belongs to the launcher; None if it is not in the usual place."""
    if library.family != FAMILY:
        return None
    prefix = Path(library.bin).resolve().parent
    # Distributions keep MPICH beside Open MPI, whose library is named libmpi too. The ABI that
    # MPICH and its derivatives share has the number 12.
    for folder in (prefix / "lib", prefix / "lib64", *sorted(prefix.glob("lib/*-linux-gnu*"))):
        for name in ("libmpich.so.12", ABI_NAME):
            if (folder / name).is_file():
                return folder / name
    return None


def python_variables(library: Library, inherited: dict[str, str]) -> dict[str, str]:
    """Variables that make mpi4py load the library of this launcher and no other.

    The wheel of mpi4py asks for :data:`ABI_NAME`. Distributions that keep MPICH beside Open MPI
    have the library under another name only (``libmpich.so.12``). Then a folder of the cache holds
    a link with the name :data:`ABI_NAME`, and the loader looks into this folder last.
    """
    own = shared_library(library)
    if own is None:
        return {}
    made = {PYTHON_LIBRARY: inherited.get(PYTHON_LIBRARY, str(own))}
    if not (own.parent / ABI_NAME).exists() and (folder := _folder_with_link(own)) is not None:
        before = inherited.get(LOADER_PATH)
        made[LOADER_PATH] = f"{before}:{folder}" if before else str(folder)
    return made


def _folder_with_link(own: Path) -> Path | None:
    """The folder with the links; None if the cache cannot be written, or if others may write it.

    It has the libraries beside ``own`` under the names of either kind of distribution. Folders
    beside them are there too if the library looks for others relative to its own place.
    """
    folder = files.cache("mpich", hashlib.sha256(str(own).encode()).hexdigest()[:16])
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not trusted(folder.stat()):
            return None
        links = _links(own)
        for name, place in links.items():
            with suppress(FileExistsError):
                (folder / name).symlink_to(place)
        same = all((folder / name).readlink() == place for name, place in links.items())
        return folder if same else None
    except OSError:
        return None


def _links(own: Path) -> dict[str, Path]:
    links = dict.fromkeys((ABI_NAME, _OTHER_NAMES[ABI_NAME]), own)
    for one, other in _OTHER_NAMES.items():
        found = next((p for n in (one, other) if (p := own.parent / n).is_file()), None)
        if found is not None:
            links |= {one: found, other: found}
    # The loader takes the folder of the link, not that of the file, for $ORIGIN.
    if _looks_beside(own):
        links |= {place.name: place for place in own.parent.iterdir() if place.is_dir()}
    return links


@lru_cache(maxsize=8)
def _looks_beside(path: Path) -> bool:
    """Whether a library looks for others relative to its own place."""
    content = path.read_bytes()
    return b"$ORIGIN" in content or b"${ORIGIN}" in content


def builtin_tree(library: Library) -> Tree | None:
    """The tree by which this MPICH selects algorithms by default; None if it is not found."""
    path = shared_library(library)
    return None if path is None else _read_tree(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _read_tree(path: Path, changed: int) -> Tree | None:
    """The tree of the library that names only algorithms of the general layer.

    The other trees choose between layers (compositions) or are for shared memory (MPIDI_POSIX).
    """
    for found in _TREE.finditer(path.read_bytes()):
        text = found[0][:-1].decode(errors="replace")
        if set(_ALGORITHM.findall(text)) != {"MPIR"} or '"composition=' in text:
            continue
        try:
            tree = json.loads(text)
        except ValueError:
            continue
        if isinstance(tree, dict):
            return tree
    return None


def values_in_force(library: Library, environment: dict[str, str]) -> dict[str, str]:
    """Values that ``mpivars``, a program of MPICH, reports in a process with ``environment``.

    Choices appear as their numbers. For a variable that holds text the answer is "", because MPI_T
    shows its default whatever the environment says (seen with 5.0.2). The answer is empty if there
    is no ``mpivars``, or if it cannot start (MPICH aborts on a value that it does not understand).
    """
    command = Path(library.bin) / "mpivars"
    if library.family != FAMILY or not command.is_file():
        return {}
    try:
        done = subprocess.run(
            [library.launcher, "-n", "1", str(command)],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
            check=False,
            env=environment,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    if done.returncode:
        return {}
    found = _LINE.findall(done.stdout)
    return {name: "" if kind == "MPI_CHAR" else value for name, value, kind in found}


_PREFIXES = ("MPIR_CVAR_", "MPICH_")
_VERSION = re.compile(r"HYDRA build details:.*?Version:\s+(\S+)", re.DOTALL)
_PLACEMENT = {"map_by": "HYDRA_MAPPING", "bind_to": "HYDRA_BINDING"}
"""Placement as variables of Hydra; Hydra has no choice of the order of ranks."""


class Mpich(Adapter):
    family = FAMILY
    title = "MPICH"
    abi = MPICH_ABI
    parameter_names = "variables (MPIR_CVAR_...)"
    placement_names = frozenset(_PLACEMENT)
    checks_values = True
    version_marker = "HYDRA build details: Version: "
    rank_variables = ("PMI_RANK",)
    host_options = frozenset({"-f", "-hosts", "-host", "--hosts", "--host", "-hostfile"})
    launchers: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("mpirun", "mpiexec", "hydra_pmi_proxy", "hydra_bstrap_pr"), "4.0"
    )
    refusals = ("unrecognized argument", "unable to find", "execvp error", "no executable provided")

    @classmethod
    def version_in(cls, text: str) -> str | None:
        found = _VERSION.search(text)
        return found[1] if found else None

    def command(self, spec: LaunchSpec, scratch: Path) -> list[str]:
        words = [self.library.launcher, "-n", str(spec.ranks), *spec.launch_options]
        words += self.placement_words(spec.placement, spec.oversubscribe)
        words += self.rank_environment(spec.of(LIBRARY) | spec.variables)
        return [*words, *self.program(spec)]

    def placement_words(self, placement: dict[str, str], oversubscribe: bool) -> list[str]:
        # Hydra never counts slots on one node, so oversubscription needs no option.
        words: list[str] = []
        if "bind_to" in placement:
            words += ["-bind-to", placement["bind_to"]]
        if "map_by" in placement:
            words += ["-map-by", placement["map_by"]]
        return words

    def environment(self, spec: LaunchSpec, inherited: dict[str, str]) -> dict[str, str]:
        env = {
            key: value
            for key, value in inherited.items()
            if not (spec.clean_env and key.startswith(_PREFIXES))
        }
        # Without these, mpi4py would load the library beside its Python. Under another MPI's
        # launcher every rank is then a world of its own, and autotune would not notice.
        env.update(self.python_variables(env))
        env.update(spec.env)
        return env

    def probe(self, spec: LaunchSpec, scratch: Path) -> Probe:
        read_back = {
            name: ReadBack("not observable", value) for name, value in spec.of(LIBRARY).items()
        }
        return Probe(initialised=None, read_back=read_back)

    def rank_environment(self, variables: Mapping[str, str]) -> list[str]:
        return [word for pair in variables.items() for word in ("-genv", *pair)]

    def variables(
        self, parameters: Mapping[str, Mapping[str, str]], placement: Mapping[str, str]
    ) -> dict[str, str]:
        placed = {_PLACEMENT[n]: v for n, v in placement.items() if n in _PLACEMENT}
        return dict(parameters.get(LIBRARY, {})) | placed

    def kind_of(self, name: str) -> str | None:
        return LIBRARY if name.startswith(_PREFIXES) else None

    def python_variables(self, inherited: Mapping[str, str]) -> dict[str, str]:
        return python_variables(self.library, dict(inherited))

    def file_for(self, needed: str) -> Path | None:
        own = super().file_for(needed)
        return shared_library(self.library) if own is None and MPICH_ABI.matches(needed) else own

    def folder_for(self, needed: str) -> Path | None:
        own = self.file_for(needed)
        if own is None or (own.parent / needed).exists():
            return None if own is None else own.parent
        return _folder_with_link(own)

    def values_in_force(self, environment: dict[str, str]) -> dict[str, str]:
        return values_in_force(self.library, environment)

    def inherited_settings(self, environment: dict[str, str]) -> dict[str, str]:
        return {k: v for k, v in environment.items() if k.startswith(_PREFIXES)}
