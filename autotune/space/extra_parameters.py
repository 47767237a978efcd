"""Extra parameters: those that a setting names although its space does not have them.

Any parameter may be named. If the library lists the parameter, its value is checked before the run.
Any other parameter is tried, and read-back decides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from autotune.errors import UsageError
from autotune.nearest import nearest
from autotune.space.check import refused_value, today
from autotune.space.outside_names import check_no_file, check_value, is_level, runs_programs
from autotune.space.parameter import Parameter, ParameterKind, default_kind
from autotune.space.resolve import title
from autotune.space.setting import Setting, Value
from autotune.space.space import Space
from runner.mpi.discover import adapter, families
from runner.mpi.library import Library, placement_of
from runner.types import LIBRARY

PREFIXES: Mapping[str, ParameterKind] = {
    "OMPI_MCA_": "mca",
    "PRTE_MCA_": "prte",
    "PMIX_MCA_": "pmix",
}
"""Prefix of a parameter's environment variable; removed from names."""
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
_OWN = ("mpi_show_mca_params", "mpi_show_mca_params_file")
"""Parameters that autotune itself sets in every launch."""


def plain_names(values: Mapping[str, Value]) -> tuple[Setting, dict[str, ParameterKind]]:
    """The values under the names that a space uses, and the targets that the names imply.

    Prefixes of environment variables are removed, and mapping, binding and ranking get one name
    each. Raises UsageError if one parameter has two names with different values.
    """
    plain_values: dict[str, Value] = {}
    targets: dict[str, ParameterKind] = {}
    entries = [(name, name, value) for name, value in values.items()]
    for kind in families().values():
        for knob, (word, names) in kind.placement_in(values).items():
            entries = [one for one in entries if one[0] not in names] + [(names[0], knob, word)]
    for original, plain, value in entries:
        prefix = next((p for p in PREFIXES if plain.startswith(p)), "")
        name = plain.removeprefix(prefix)
        placement = placement_of(name)
        if prefix and placement is None:
            targets[name] = PREFIXES[prefix]
        name = placement or name
        if plain_values.setdefault(name, value) != value:
            raise UsageError(
                f"{original}={value} and {name}={plain_values[name]} set one parameter to two "
                "values; keep one of them",
                code="parameter.conflict",
            )
    return Setting(plain_values), targets


def without_implied_values(setting: Setting, space: Space) -> Setting:
    """The setting without the values that its other values imply in this space; a file has both."""
    parameters = [space[name] for name in setting if name in space]
    implied_values = {
        n: v for p in parameters for n, v in p.implied_values(p.normalise(setting[p.name])).items()
    }
    same = [
        n for n, v in implied_values.items() if n not in space and str(setting.get(n)) == str(v)
    ]
    return setting.without(*same)


def with_extra_parameters(
    space: Space,
    settings: Sequence[Setting],
    library: Library,
    targets: Mapping[str, ParameterKind] | None = None,
) -> Space:
    """The ``space`` with every missing parameter that these settings name.

    ``targets`` gives the known targets of some parameters; they are not checked. Raises UsageError
    for a mistyped name, a name that differs in this library, a value that the library refuses, and
    a parameter that selects a program, library or file.
    """
    levels: dict[str, list[Value]] = {}
    for setting in settings:
        for name, value in setting.items():
            if name in space:
                _refuse_file(name, value, space)
            is_known = name in space or name in space.derived or name in space.absent
            if not is_known and name not in space.aliases:
                extra_levels = levels.setdefault(name, [])
                extra_levels += [] if value in extra_levels else [value]
    more = [_parameter(n, v, library, space, dict(targets or {})) for n, v in levels.items()]
    return replace(space, parameters=(*space.parameters, *more)) if more else space


def _parameter(
    name: str,
    values: list[Value],
    library: Library,
    space: Space,
    targets: dict[str, ParameterKind],
) -> Parameter:
    _refuse(name, values)
    target = targets.get(name) or _target(name, library)
    info = library.params.get(name) if target == "mca" else None
    if info is not None:
        for value in values:
            if problem := refused_value(value, info):
                raise UsageError(
                    f"{name}={value} cannot be used: {problem} (type {info.type})",
                    code="parameter.value",
                )
        numbers = {word: number for number, word in info.number_names.items()}
        levels = tuple(dict.fromkeys(numbers.get(str(v), v) for v in values))
        return Parameter(
            name, levels, target, help=info.help, enum=info.number_names, words=info.only_words
        )
    if name not in targets:
        _refuse_misspelling(name, target, library, space)
    return Parameter(name, tuple(values), target)


def _refuse_file(name: str, value: Value, space: Space) -> None:
    """Words and numbers of the program itself are the user's own business."""
    if space[name].target not in ("arg", "file", "resource") and not is_level(space, name, value):
        check_no_file(name, value, "the setting")


def _refuse(name: str, values: list[Value]) -> None:
    if runs_programs(name):
        raise UsageError(
            f"the parameter {name} is refused in a setting: it decides which program, "
            "library or file is used.\nPut it into the launch options of a cluster of your "
            "own (configs/clusters/NAME.toml); it is then in force in every run.",
            code="parameter.refused",
        )
    if name in _OWN:
        raise UsageError(
            f"{name} is set by autotune itself to read settings back; leave it out",
            code="parameter.reserved",
        )
    for value in values:
        check_value(name, value, "the setting")


def _target(name: str, library: Library) -> ParameterKind:
    """The target of a parameter that is unknown to both space and library."""
    usual = default_kind(name)
    if usual == "resource":
        raise UsageError(
            f"{name} is not a parameter of this space; use --ranks for the number of ranks, or a "
            "space that varies ranks and threads (--space hybrid)",
            code="parameter.unknown",
        )
    if usual != "mca" or name in library.params:
        return usual
    launcher = adapter(library)
    kind = launcher.kind_of(name)
    if kind is None and not _VARIABLE.fullmatch(name):
        raise UsageError(
            f"{name} is not a parameter of {title(library)}, whose parameters are "
            f"{launcher.parameter_names}",
            code="parameter.unknown",
        )
    return cast(ParameterKind, kind or "env")


def _refuse_misspelling(name: str, target: ParameterKind, library: Library, space: Space) -> None:
    if target in ("placement", "prte"):
        return
    advice = today(name, library) if library.params and target == "mca" else ""
    known_names = dict.fromkeys((*space.names, *(library.params if target != "env" else ())))
    near = nearest(name, known_names)
    if advice.startswith("it is called"):
        hint = advice
    elif near:
        hint = f"did you mean {' or '.join(near)}?"
    else:
        return
    variable = next(iter(adapter(library).variables({target: {name: ""}}, {})), name)
    out = f"\nIf {name} is right, write {variable}=VALUE: it is passed on unchecked."
    raise UsageError(
        f"{name} is not a parameter of space {space.name}, and {title(library)} does "
        "not list it; " + hint + (out if target == LIBRARY and variable != name else ""),
        code="parameter.unknown",
    )
