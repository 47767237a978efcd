"""What one MPICH installation holds: its shared library, its selection tree, its variables.

MPICH has no command that prints the tree by which it selects algorithms, and a file that replaces
the tree must be complete: a collective that is missing aborts every program that calls it.  The
tree is a constant of the shared library, as text; there it is read.

MPICH (Hydra): settings are MPIR_CVAR_* variables; a run leaves no trace of what they became.

MPICH aborts in MPI_Init on a bad number, choice or tuning file, but accepts unknown variables and
most text in silence; so every value is ``not observable`` here, and says so in each run.
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
from typing import Any

from runner import files
from runner.files import trusted
from runner.mpi.base import Adapter, Probe
from runner.mpi.library import Library
from runner.types import LIBRARY, LaunchSpec, ReadBack

Tree = dict[str, Any]
FAMILY = "mpich"
TIMEOUT_S = 20
ABI_NAME = "libmpi.so.12"
"""The name that programs built for the ABI of MPICH ask for, the wheel of mpi4py among them."""
_TREE = re.compile(rb'\{"collective=[^\0]{2,1000000}\0')
_ALGORITHM = re.compile(r'"algorithm=(MPI[A-Z]+)_')
_LINE = re.compile(
    r"^\t(MPIR_CVAR_[A-Z0-9_]+) *=([^\t\n]*)\tSCOPE_[^\t\n]*\t[^\t\n]*\t(\w+)\t", re.MULTILINE
)


def shared_library(library: Library) -> Path | None:
    """The ``libmpi`` that belongs to the launcher; None where it does not lie beside it."""
    if library.family != FAMILY:
        return None
    prefix = Path(library.bin).resolve().parent
    # Distributions keep MPICH beside Open MPI, whose library has the name libmpi too: the ABI that
    # MPICH and its derivatives share has the number 12.
    for folder in (prefix / "lib", prefix / "lib64", *sorted(prefix.glob("lib/*-linux-gnu*"))):
        for name in ("libmpich.so.12", ABI_NAME):
            if (folder / name).is_file():
                return folder / name
    return None


def python_variables(library: Library, inherited: dict[str, str]) -> dict[str, str]:
    """Variables with which mpi4py loads the library of this launcher, and no other.

    The wheel of mpi4py asks for :data:`ABI_NAME`.  Distributions that keep MPICH beside Open MPI
    have it under another name only (``libmpich.so.12``): then a folder of the cache, with that name
    as a link to it, is the last one in which the loader looks.
    """
    own = shared_library(library)
    if own is None:
        return {}
    made = {"MPI4PY_LIBMPI": inherited.get("MPI4PY_LIBMPI", str(own))}
    if not (own.parent / ABI_NAME).exists() and (folder := _folder_with_link(own)) is not None:
        before = inherited.get("LD_LIBRARY_PATH")
        made["LD_LIBRARY_PATH"] = f"{before}:{folder}" if before else str(folder)
    return made


def _folder_with_link(own: Path) -> Path | None:
    """None where the cache cannot be written, or others may write it."""
    folder = files.cache("mpich", hashlib.sha256(str(own).encode()).hexdigest()[:16])
    link = folder / ABI_NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not trusted(folder.stat()):
            return None
        with suppress(FileExistsError):
            link.symlink_to(own)
        return folder if link.readlink() == own else None
    except OSError:
        return None


def builtin_tree(library: Library) -> Tree | None:
    """The tree by which this MPICH selects algorithms unless told otherwise; None: not found."""
    path = shared_library(library)
    return None if path is None else _read_tree(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _read_tree(path: Path, changed: int) -> Tree | None:
    """Of the library's trees the one that names algorithms of the general layer alone; the others
    choose between layers (compositions) or are for shared memory (MPIDI_POSIX)."""
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
    """Numbers as ``mpivars``, a program of MPICH, finds them in a process with ``environment``.

    Choices appear as their numbers.  For a variable that holds text the answer is "": MPI_T shows
    its default whatever the environment says (seen with 5.0.2).  Empty where there is no
    ``mpivars``, or it cannot start (MPICH aborts on a value that it does not understand).
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
"""Placement as variables of Hydra, which has no other order of ranks."""


class Mpich(Adapter):
    family = FAMILY
    title = "MPICH"
    parameter_names = "variables (MPIR_CVAR_...)"
    placement_names = frozenset(_PLACEMENT)
    checks_values = True
    rank_variables = ("PMI_RANK",)
    refusals = ("unrecognized argument", "unable to find", "execvp error", "no executable provided")

    @classmethod
    def version_in(cls, text: str) -> str | None:
        found = _VERSION.search(text)
        return found[1] if found else None

    def command(self, spec: LaunchSpec, scratch: Path) -> list[str]:
        words = [self.library.launcher, "-n", str(spec.ranks), *spec.launch_options]
        words += self.placement_words(spec.placement, spec.oversubscribe)
        words += self.rank_environment(spec.of(LIBRARY))
        return [*words, *self.program(spec)]

    def placement_words(self, placement: dict[str, str], oversubscribe: bool) -> list[str]:
        # Hydra never counts slots on one node: oversubscription needs no word.
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
        # mpi4py would load the library beside its Python: under another MPI's launcher every rank
        # is then a world of its own, and nothing here would notice.
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

    def values_in_force(self, environment: dict[str, str]) -> dict[str, str]:
        return values_in_force(self.library, environment)

    def inherited_settings(self, environment: dict[str, str]) -> dict[str, str]:
        return {k: v for k, v in environment.items() if k.startswith(_PREFIXES)}
