"""The run-time parameters of an Open MPI installation (4.1 and 5.0), and its parameter files.

The parameters come from the installation's own ``ompi_info``. One parameter is several rows
``mca:FRAMEWORK:COMPONENT:param:NAME:FIELD:CONTENT``; the content may itself contain colons (help
texts, paths). Mapping and binding of Open MPI 5 belong to PRRTE and are not listed.

Also finds and reads the parameter files of an Open MPI.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from runner.errors import RunnerError
from runner.files import MIB, read_bytes
from runner.files.paths import exists, real_path
from runner.mpi.hosts import DEFAULT_HOSTFILE, DEFAULT_HOSTFILES
from runner.mpi.library import Library, ParamInfo
from runner.mpi.output import output_of

_ARGUMENTS = ("--all", "--parsable", "--level", "9")
_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
_TIMEOUT_S = 60
_MOST_BYTES = 4 * MIB
"""Limit for a parameter file."""
_LATE_COMPONENT = "ucx"
_TYPES = {
    "bool": "bool",
    "string": "string",
    "size_t": "size_t",
    "double": "double",
    "int": "int",
    "unsigned_int": "unsigned",
    "unsigned_long": "unsigned",
    "unsigned_long_long": "unsigned",
    "uint64_t": "unsigned",
}


@dataclass
class _Draft:
    """A parameter while its rows are read; the defaults are for missing rows."""

    framework: str
    component: str
    default: str = ""
    type: str = "string"
    level: int = 9
    help: str = ""
    enum: dict[int, str] = field(default_factory=dict)
    source: str = "default"
    synonym_of: str | None = None
    is_deprecated: bool = False
    is_disabled: bool = False


def read_parameters(
    ompi_info: str | Path, environment: Mapping[str, str] | None = None
) -> dict[str, ParamInfo]:
    """The parameters as the installation reports them in an environment (None: that of this
    process).

    Values inherited from the environment and from parameter files are included, with their source.
    Takes 0.05-0.2 s. Raises :class:`RunnerError` if the command does not run or lists nothing.
    """
    command = [str(ompi_info), *_ARGUMENTS]
    # ompi_info itself accepts root; a wrapper that shares mpirun's code may not.
    env = {**(os.environ if environment is None else environment), **_ROOT}
    try:
        process = subprocess.run(
            command, env=env, capture_output=True, timeout=_TIMEOUT_S, check=False,
            encoding="utf-8", errors="replace", stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RunnerError(
            f"cannot list the parameters of Open MPI: {' '.join(command)}: {error}; expected the "
            "ompi_info of an Open MPI 4.1 or 5.0 installation",
            code="mpi.parameter_list",
        ) from error
    params = parse_ompi_info(process.stdout)
    if process.returncode != 0 or not params:
        message = process.stderr.strip() or process.stdout.strip() or "it printed nothing"
        raise RunnerError(
            f"cannot list the parameters of Open MPI: {' '.join(command)} ended with code "
            f"{process.returncode} and {len(params)} parameters: {message[-400:]}",
            code="mpi.parameter_list",
        )
    return params


def own_defaults(ompi_info: str | Path) -> dict[str, str]:
    """The library's own defaults, whatever the environment and parameter files set."""
    plain = {k: v for k, v in os.environ.items() if not k.startswith(ENV_PREFIXES)}
    params = read_parameters(ompi_info, {**plain, PARAM_FILES: "none"})
    return {name: info.default for name, info in params.items() if info.source == "default"}


@lru_cache(maxsize=4)
def _listing(ompi_info: str) -> str:
    """The whole output of ``ompi_info``; "" if it cannot be executed."""
    return output_of((ompi_info, *_ARGUMENTS), {**os.environ, **_ROOT}, timeout_s=_TIMEOUT_S)


def closed_parameters(ompi_info: str) -> dict[str, ParamInfo]:
    """The parameters that an installation lists although their component could not be opened."""
    return parse_ompi_info(_listing(ompi_info), closed=True)


def installed_components(ompi_info: str) -> dict[str, frozenset[str]]:
    """The installed components by framework: rows ``mca:FRAMEWORK:COMPONENT:version:...``, and
    other names of components that have parameters."""
    components: dict[str, set[str]] = {}
    for line in _listing(ompi_info).split("\n"):
        parts = line.split(":", 4)
        if parts[0] == "mca" and len(parts) > 3 and parts[3] in ("version", "param"):
            components.setdefault(parts[1], set()).add(parts[2])
    return {name: frozenset(several - {"base"}) for name, several in components.items()}


def parse_ompi_info(text: str, closed: bool = False) -> dict[str, ParamInfo]:
    """Parameters by name from the output of ``ompi_info --all --parsable``.

    Malformed rows are skipped without an error. Parameters marked disabled (their component could
    not be opened) are left out, except those of UCX: 4.1 opens it if it is asked to use any
    transport. With ``closed`` only those left out are returned.
    """
    drafts: dict[str, _Draft] = {}
    # Not splitlines(): it also breaks at characters that may occur inside a help text.
    for line in text.split("\n"):
        parts = line.rstrip("\r").split(":", 6)
        if len(parts) != 7 or parts[0] != "mca" or parts[3] != "param" or not parts[4]:
            continue
        _, framework, component, _, name, key, content = parts
        if reader := _READERS.get(key):
            reader(drafts.setdefault(name, _Draft(framework, component)), content)
    return {
        name: _finish(name, draft)
        for name, draft in drafts.items()
        if (not draft.is_disabled or draft.component == _LATE_COMPONENT) != closed
    }


def _read_value(draft: _Draft, content: str) -> None:
    """Sets the value of a row; ompi_info puts values with a colon, and only these, in double
    quotes."""
    is_quoted = ":" in content and len(content) > 1 and content[0] == content[-1] == '"'
    draft.default = content[1:-1] if is_quoted else content


def _read_source(draft: _Draft, content: str) -> None:
    draft.source = content


def _read_help(draft: _Draft, content: str) -> None:
    draft.help = content


def _read_level(draft: _Draft, content: str) -> None:
    draft.level = _integer(content) or draft.level


def _read_type(draft: _Draft, content: str) -> None:
    draft.type = _TYPES.get(content, content)


def _read_enumerator(draft: _Draft, content: str) -> None:
    """Sets number and name from ``value:NUMBER:NAME``."""
    word, _, rest = content.partition(":")
    number, colon, name = rest.partition(":")
    place = _integer(number)
    if word == "value" and colon and place is not None:
        draft.enum[place] = name


def _read_synonym_of(draft: _Draft, content: str) -> None:
    """Sets the current name from ``name:CURRENT_NAME``."""
    word, _, name = content.partition(":")
    if word == "name" and name:
        draft.synonym_of = name


def _read_deprecation(draft: _Draft, content: str) -> None:
    draft.is_deprecated = content == "yes"


def _read_disabling(draft: _Draft, content: str) -> None:
    draft.is_disabled = content == "true"


_READERS: dict[str, Callable[[_Draft, str], None]] = {
    "value": _read_value,
    "source": _read_source,
    "help": _read_help,
    "level": _read_level,
    "type": _read_type,
    "enumerator": _read_enumerator,
    "synonym_of": _read_synonym_of,
    "deprecated": _read_deprecation,
    "disabled": _read_disabling,
}


def _integer(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _finish(name: str, draft: _Draft) -> ParamInfo:
    return ParamInfo(
        name=name,
        type=draft.type,
        default=draft.default,
        framework=draft.framework,
        component=draft.component,
        level=draft.level,
        help=draft.help,
        enum=draft.enum,
        source=draft.source,
        synonym_of=draft.synonym_of,
        deprecated=draft.is_deprecated,
    )


ENV_PREFIXES = ("OMPI_MCA_", "PRTE_MCA_", "PMIX_MCA_")
"""The prefixes before a parameter in the name of its variable."""
PARAM_FILES = "OMPI_MCA_mca_base_param_files"
SYSTEM_VARIABLE = "OPAL_SYSCONFDIR"
"""The variable with the directory of the library's system files."""


def parameter_files(library: Library, environment: dict[str, str]) -> list[Path]:
    """The user's and the system's parameter files, whether they exist or not."""
    home = Path(environment.get("HOME", "/nonexistent"))
    etc = Path(environment.get(SYSTEM_VARIABLE) or Path(library.bin).parent / "etc")
    runtime_etc = Path(environment.get("PRTE_SYSCONFDIR") or etc)
    prrte = library.version_tuple >= (5,)
    runtime = ("prte", "pmix") if prrte else ()
    user = home / ".openmpi" / "mca-params.conf"
    files = [user, etc / "openmpi-mca-params.conf"]
    info = library.params.get("mca_base_param_files")
    if (file_list := environment.get(PARAM_FILES)) is not None:
        # The list replaces the library's own list; 5.0's launcher still reads the user's file.
        files = [user] if prrte else []
        files += [Path(word) for word in file_list.split(",") if file_list != "none"]
    elif info and SYSTEM_VARIABLE not in environment:
        # The first file of the list is the user's own as seen by ompi_info, perhaps under another
        # HOME.
        files.append(Path(info.default.split(",")[-1]))
    files += [etc / "openmpi-mca-params-override.conf"]
    for part in runtime:
        files += [
            home / f".{part}" / "mca-params.conf",
            runtime_etc / f"{part}-mca-params.conf",
        ]
    return list(dict.fromkeys(files))


def system_folder(library: Library, command: str = "ompi_info") -> Path:
    """The folder of the installation's parameter files, as the library itself says.

    ``command`` is the library's, or ``prte_info`` of its launcher. A library that lies elsewhere
    than where it was built for (a wheel) reports the folder of its build, and reads the one at the
    same place below its own prefix.
    """
    own = real_path(library.bin).parent
    prefix, folder = _reported_paths(str(Path(library.bin, command)))
    if folder is None and command != "ompi_info":
        return system_folder(library)
    if folder is None:
        return own / "etc"
    is_moved = prefix is not None and real_path(prefix) != own and folder.is_relative_to(prefix)
    return own / folder.relative_to(prefix) if prefix and is_moved else folder


@lru_cache(maxsize=16)
def _reported_paths(command: str) -> tuple[Path | None, Path | None]:
    """Prefix and folder of configuration files of an installation; None: it does not say."""
    paths = []
    for name in ("prefix", "sysconfdir"):
        text = output_of((command, "--path", name))
        match = re.search(rf"^\s*{name}:\s*(/\S*)\s*$", text, re.IGNORECASE | re.MULTILINE)
        paths.append(Path(match[1]) if match else None)
    prefix, folder = paths
    return prefix, folder


def read_parameter_file(path: Path) -> dict[str, str]:
    """The ``name = value`` lines of an MCA parameter file; empty if the file is not readable."""
    return {name: value for _, name, value in parameter_lines(path)}


def parameter_lines(path: Path) -> list[tuple[int, str, str]]:
    """Number, name and value of each line of an MCA parameter file, or of one for ``--tune``.

    Such a file has ``--mca NAME VALUE`` or ``-x NAME=VALUE``. Empty if the file is not readable.
    """
    try:
        text = read_bytes(path, _MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return []
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if words[:1] and words[0] in ("--mca", "-mca") and len(words) > 2:
            lines.append((number, words[1], " ".join(words[2:])))
            continue
        name, mark, value = line.strip().removeprefix("-x ").partition("=")
        if mark and not name.lstrip().startswith("#"):
            lines.append((number, name.strip(), value.strip()))
    return lines


def parameter_of(setting: str) -> str:
    """The parameter of an inherited setting, without the prefix or file before it.

    The hostfile parameter has one name for all versions.
    """
    name = setting.rpartition(":")[2].removeprefix(ENV_PREFIXES[0])
    plain = name.removeprefix(ENV_PREFIXES[1])
    return DEFAULT_HOSTFILE if plain in DEFAULT_HOSTFILES else name


def ompi_info_of(library: Library) -> Path:
    """The command that lists the parameters; raises RunnerError if there is none."""
    info = Path(library.bin) / "ompi_info"
    if exists(info):
        return info
    path = shutil.which("ompi_info")
    if path is None:
        raise RunnerError(
            f"{library.launcher} is Open MPI {library.version}, but its ompi_info was not "
            f"found in {library.bin}; without it no parameter can be checked.  Install the "
            "complete package.",
            code="mpi.parameter_list",
        )
    return Path(path)


def library_file(prefix: Path) -> str:
    """Path of an installation's library for mpi4py to load; "" if it does not exist."""
    paths = sorted(prefix.glob("lib/libmpi.so.*")) or sorted(prefix.glob("lib/libmpi.so"))
    # Distributions keep the libraries of MPICH beside it; 40 is the ABI of Open MPI.
    paths = paths or sorted(prefix.glob("lib/*-linux-gnu*/libmpi.so.40"))
    return str(paths[0]) if paths else ""
