"""Trust: the names and values that are accepted from a file, a database, a dataset or a model.

A parameter that names a program, a library, a path or a file decides what is run: launching with it
runs it. It is accepted only from this command line or from a local cluster file. Other parameters
are accepted from outside if they are in a shipped space or one of the user's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from autotune.config.cluster import cluster_names
from autotune.config.find import find_config, list_configs, user_config
from autotune.errors import UsageError
from autotune.space.definition import Definition, Keys, read_definition
from autotune.space.parameter import PLACEMENT, default_kind
from autotune.space.setting import Value
from autotune.space.space import Space
from runner.mpi.library import Library
from runner.published_layout import RUNTIMES, WORDS, variable

Names = Mapping[str, frozenset[str]]
"""Name -> targets (mca, env, ...) that it may have."""

_PREFIX = re.compile(r"(OMPI_MCA|PRTE_MCA|PMIX_MCA|OMPI_PARAM|MPICH|ORTE|OPAL)_", re.IGNORECASE)
_PROGRAM_WORDS = (
    r"agents?|cmd|cmdline|commands?|debugger|ddd|exec|executable|execute|fork|gdb|gtool|hooks?"
    r"|launch|launcher|program|rsh|script|shell|simulator|ssh|strace|tool|valgrind|wrapper|xterm"
)
"""Names of what is started, and how."""
_ARGUMENT_WORDS = r"args?|arguments?|argv|options|opts|env|envars?|environ|environment|envlist"
"""Words and variables passed to the started program: a word may be an option of it."""
_LIBRARY_WORDS = r"dl|dlopen|libmpi|libpmi|library|libraries|libs?|plugins?|preload"
_IO_WORDS = (
    r"backing|config|configure|directory|dump|filem|hints|json|mail|memdump|output|pipe"
    r"|record|ref|session|snapshot|socket|syslog|topolib|xml"
)
"""Names of what is read or written."""
_PLACE = r"\w*?(conf|dirs?|files?|filenames?|home|paths?|prefix|root|cmd|exe|libs?)"
"""Endings of words whose value is a path: ``XMLFILE``, ``PKGLIBDIR``."""
_SPOKEN_TO = r"proxy|remote|report|server|servers|uri|url"
"""Names of peers of a process."""
_WORDS = re.compile(
    "|".join((_PROGRAM_WORDS, _ARGUMENT_WORDS, _LIBRARY_WORDS, _IO_WORDS, _PLACE, _SPOKEN_TO))
)
"""A parameter with one of these words in its name decides what is run, loaded, read or written."""
_FAMILIES = re.compile(
    # Loaders, libraries below MPI that load parts by a path, and this program.
    r"(LD|DYLD|GLIBC|GCONV|MALLOC|LTDL|OPENSSL|SSL|XDG|NUMBA|MPI4PY|AUTOTUNE|HWLOC|UCX_MODULES?"
    r"|FI_HOOK|CUDA_INJECTION64|OMP_TOOL"
    # Interpreters and shells.
    r"|BASH|ZSH|KSH|PYTHON|PERL|RUBY|LUA|TCL|JAVA|JDK|NODE|JULIA|PHP|R|OCTAVE|MATLAB|DOTNET|GIT"
    # Launchers, and containers, which add folders and variables.
    r"|SLURM|SSH|SUDO|HYDRA|HYDI|MPIEXEC|PMI|PMIX|PRTE|I_MPI_HYDRA|I_MPI_JOB|I_MPI_TUNING"
    r"|I_MPI_STATS|(APPTAINER|SINGULARITY)(ENV)?|DOCKER|PODMAN|ENROOT|SARUS|SHIFTER|PYXIS|OCI"
    r")(_.*)?"
)
"""Environment variables (capitals) of loaders, interpreters, launchers and containers."""
_SINGLE = re.compile(
    r"(PATH|[A-Z0-9]+PATH|ENV|HOME|IFS|SHELL|PS[0-9]|USER|LOGNAME|TMP|TEMP|EDITOR|PAGER|VISUAL"
    r"|BROWSER|TERMCAP|TERMINFO|HOSTALIASES|PYTHON[A-Z]+|PERL[A-Z0-9]+|BASHOPTS|SHELLOPTS|LUA[A-Z]+"
    r"|RUBY[A-Z]+|MAIL|DISPLAY|CC|CXX|CPP|FC|F77|F90|MAKE|[A-Z]*FLAGS|[A-Z]{2,}RC)"
)
_WHOLE = re.compile(r"mca(_base)?_verbose|plm|odls|schizo|ras|psec|(rmaps|hwloc)_\w*topology")
"""Complete names: the first may send output to a file, the next choose what starts programs and who
may connect. The mapping's topology is read from a file; others are shapes."""
_VALUE = re.compile(r"[A-Za-z0-9_.,:^+=@%-]{1,500}")
_FILE_VALUE = re.compile(r"(^|[:,])file(=|:|$)", re.IGNORECASE)


def runs_programs(name: str) -> bool:
    """True if a parameter or variable of this name decides what is run, loaded, read or written.

    Prefixes such as ``OMPI_MCA_`` and ``PRTE_MCA_`` are ignored.
    """
    plain = name
    while (prefix := _PREFIX.match(plain)) is not None:
        plain = plain[prefix.end() :]
    if any(_FAMILIES.fullmatch(n) or _SINGLE.fullmatch(n) for n in {name, plain}):
        return True
    lower_name = plain.lower()
    return bool(_WHOLE.fullmatch(lower_name)) or any(map(_WORDS.fullmatch, lower_name.split("_")))


def check_name(name: str, origin: str) -> None:
    """Raise UsageError for a name never accepted from outside; ``origin`` names the source."""
    if runs_programs(name):
        raise UsageError(
            f"{origin}: the parameter {name} is refused: it decides which program, library or file "
            "is used.\nSuch a parameter is accepted only on the command line itself or in a local "
            "cluster file (options of configs/clusters/NAME.toml).",
            code="parameter.refused",
        )


def check_value(name: str, value: object, origin: str) -> None:
    """Raise UsageError for a value that could name a file, or be read as several words."""
    text = str(value)
    if not _VALUE.fullmatch(text) or _FILE_VALUE.search(text):
        raise UsageError(
            f"{origin}: the value {text[:80]!r} of {name} is refused: from such a source a "
            "value may have letters, digits and _ . , : ^ + - = @ % only, 1 to 500 of "
            "them, and may not name a file (no /, no file=).\nIf you want it, put it into the "
            "launch options of a cluster of your own (configs/clusters/NAME.toml).",
            code="parameter.value_refused",
        )


def check_no_file(name: str, value: object, origin: str) -> None:
    """Raise UsageError for a value that could name a file."""
    text = str(value)
    if "/" in text or _FILE_VALUE.search(text):
        raise UsageError(
            f"{origin}: the value {text[:80]!r} of {name} is refused: it may not name a file (no "
            "/, no file=).\nIf you want it, put it into the launch options of a cluster of your "
            "own (configs/clusters/NAME.toml), or make it a level of a space of your own.",
            code="parameter.value_refused",
        )


def check_values(values: Mapping[str, Value], origin: str, space: Space | None = None) -> None:
    """Raise UsageError unless these names and values may come from outside.

    ``space`` is a space named on this command line: all its levels are accepted.
    """
    for name, value in values.items():
        if space is not None and name in space and is_level(space, name, value):
            continue
        check_name(name, origin)
        check_value(name, value, origin)


def is_level(space: Space, name: str, value: Value) -> bool:
    """True if a value is one of the parameter's levels in the space."""
    parameter = space[name]
    return parameter.normalise(value) in parameter.levels


def check_space(space: Space, origin: str) -> None:
    """Raise UsageError for a space from outside that varies or implies forbidden parameters.

    Words and numbers of the program itself (targets ``arg`` and ``resource``) are accepted only in
    a space named on this command line.
    """
    for parameter in space:
        if parameter.target not in ("arg", "file", "resource"):
            check_name(parameter.name, origin)
        for values in (parameter.implies, *parameter.implies_at.values()):
            check_values(values, origin)


def check_config_name(kind: str, name: str, origin: str) -> str:
    """The same ``name``, if it is a known configuration of that kind.

    The kinds are "spaces", "clusters" and "apps". A path is never accepted from outside, even if a
    file is there. Raises UsageError for an unknown name.
    """
    names = cluster_names() if kind == "clusters" else [file.name for file in list_configs(kind)]
    for part in name.split("+") if kind == "spaces" else [name]:
        if part.strip() not in names:
            raise UsageError(
                f"{origin}: names the {kind.removesuffix('s')} {part!r}, which is not known "
                f"here (known: {', '.join(names) or 'none'}); a path is not accepted from such "
                f"a source.\nIf you trust it, put its file into configs/{kind} of this "
                f"directory, or into {user_config() / kind} to be found from anywhere.",
                code="trust.name_unknown",
            )
    return name


def known_names(library: Library | None = None, spaces: Iterable[str] = ()) -> Names:
    """Every name in the shipped spaces and the user's own, with its targets; and the variables of
    layouts that runtimes read.

    ``spaces`` are further names or files from the command line. ``library``: its own names for
    these parameters are added. A user's file with mistakes adds nothing; one of ``spaces`` with
    mistakes raises UsageError.
    """
    targets_by_name: dict[str, set[str]] = {
        variable(runtime, word): {"env"} for runtime in RUNTIMES for word in WORDS
    }
    files = [(file, False) for file in list_configs("spaces")]
    files += [(find_config("spaces", part), True) for name in spaces for part in name.split("+")]
    for file, is_requested in files:
        try:
            _collect(read_definition(file), targets_by_name)
        except UsageError:
            if is_requested:
                raise
    if library is not None:
        for name in list(targets_by_name):
            info = library.params.get(name)
            if info is not None and info.synonym_of:
                targets_by_name.setdefault(info.synonym_of, set()).update(targets_by_name[name])
    return {name: frozenset(targets) for name, targets in targets_by_name.items()}


def _collect(definition: Definition, targets_by_name: dict[str, set[str]]) -> None:
    for canonical, table in definition.parameters.items():
        variants: list[Keys] = [table, *table.on.values()]
        targets = {keys.target for keys in variants if keys.target}
        for name in {canonical, *(keys.name for keys in variants if keys.name)}:
            targets_by_name.setdefault(name, set()).update(targets or {default_kind(name)})
        for keys in variants:
            for name, _ in keys.implied_values:
                targets_by_name.setdefault(name, set()).add(
                    "placement" if name in PLACEMENT else "mca"
                )


def check_groups(
    groups: Mapping[str, Mapping[str, str]],
    known_targets: Names,
    origin: str,
    files: Mapping[str, Iterable[str]] | None = None,
) -> None:
    """Raise UsageError unless a launch's values (group -> name -> text) may come from outside.

    ``files``: parameters that may name these files, because autotune wrote the files itself.
    """
    for group, values in groups.items():
        for name, value in values.items():
            if value in (files or {}).get(name, ()):
                continue
            check_name(name, origin)
            check_value(name, value, origin)
            if group not in known_targets.get(name, ()):
                where = "an environment variable" if group == "env" else f"{group} parameter"
                raise UsageError(
                    f"{origin}: no space known here has {name} as {where}; from such a source only "
                    "parameters of the shipped spaces and of your own are accepted.\nIf you trust "
                    "it, name a space file that has it (--space FILE), or put one into "
                    "configs/spaces.",
                    code="trust.parameter_unknown",
                )
