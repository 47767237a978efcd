"""What is known of one parameter here: meaning, values, who sets it, whether it can act."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from autotune.config.find import list_configs
from autotune.parameters.catalogue import (
    BELOW,
    TITLES,
    VARIABLE_LAYERS,
    Catalogue,
    KnownParameter,
    plain_name,
)
from autotune.parameters.effect import idle_reason
from autotune.parameters.measured_effect import MeasuredEffect
from autotune.parameters.request import Request, by_precedence, reaches
from autotune.space.meanings import FAMILIES, MEANINGS
from autotune.space.new_names import new_names
from runner.mpi.library import ParamInfo, enumerated_values
from runner.types import LIBRARY

_MOST_VALUES = 24


@dataclass(frozen=True)
class SetValue:
    """A value that something sets; ``counts``: it is the one in force."""

    value: str
    origin: str
    counts: bool


@dataclass(frozen=True)
class ParameterExplanation:
    """One parameter on this machine.

    ``default`` is the library's own, ``in_force`` the value with which a launch starts here; None
    if unknown. ``can_act`` is None if nothing is known that keeps it from having an effect;
    ``reason`` says why. ``needs`` is an assignment with which it would act. ``family`` is the
    common beginning of the names in ``siblings``. ``elsewhere`` maps libraries to what they call
    it.
    """

    name: str
    mpi: str
    owner: str
    component: str
    meaning: str
    library_help: str
    type: str
    values: str
    default: str | None
    in_force: str | None
    set_by: tuple[SetValue, ...]
    transport: str
    can_act: bool | None
    reason: str
    needs: str
    measured: MeasuredEffect
    set_with: str
    family: str
    siblings: tuple[str, ...]
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    synonym_of: str | None = None
    is_installed: bool = True
    """False if only the name is known, from the shipped names of the library."""


@dataclass(frozen=True)
class SpaceMeaning:
    """What the spaces say of a parameter: its names there, and its meaning in plain words."""

    names: frozenset[str]
    help: str = ""


def meaning_in_spaces(name: str) -> SpaceMeaning:
    """The names and the help of a parameter in the spaces that are known here."""
    names, text = {name}, ""
    for file in list_configs("spaces"):
        try:
            tables = tomllib.loads(file.text).get("parameters", {})
        except tomllib.TOMLDecodeError:
            continue
        for canonical, table in tables.items():
            variants = [table, *table.get("on", {}).values()] if isinstance(table, dict) else []
            own = {v["name"] for v in variants if isinstance(v, dict) and "name" in v}
            if name == canonical or name in own:
                names.add(canonical)
                text = text or str(table.get("help", ""))
    return SpaceMeaning(frozenset(names), text)


def explain(
    parameter: KnownParameter,
    catalogue: Catalogue,
    requests: Sequence[Request],
    transport: str,
    measured: MeasuredEffect,
    meaning: SpaceMeaning,
    own_default: str | None = None,
) -> ParameterExplanation:
    """What is known of a parameter; ``requests`` are those of the environment and of files.

    ``own_default`` is needed where the library lists the value that something sets.
    """
    info = parameter.info
    mine = [
        request
        for request in by_precedence(list(requests), catalogue)
        if (known := catalogue.find(request.name)) is not None
        and known.name == parameter.name
        and reaches(request, parameter.layer, catalogue)
    ]
    values = {
        plain_name(request.name): request.value
        for request in reversed(by_precedence(list(requests), catalogue))
    }
    idle = idle_reason(parameter, values, catalogue, transport)
    can_act, reason = (None, "") if idle is None else (False, idle.reason)
    if idle is None and transport:
        can_act, reason = True, f"{transport} carries the messages"
    default = own_default
    if default is None and info is not None and info.source == "default":
        default = info.default
    return ParameterExplanation(
        name=parameter.name,
        mpi=catalogue.title,
        owner=TITLES.get(parameter.layer, catalogue.title.rpartition(" ")[0]),
        component=_component(info),
        meaning=meaning.help or (_first_sentence(info.help) if info else ""),
        library_help=" ".join(info.help.split()) if info else "",
        type=info.type if info is not None else "",
        values=_values(info),
        default=default,
        in_force=mine[0].value if mine else (info.default if info else None),
        set_by=tuple(SetValue(r.value, r.origin, r is mine[0]) for r in mine),
        transport=transport,
        can_act=can_act,
        reason=reason,
        needs="" if idle is None or idle.needs is None else "=".join(idle.needs[:2]),
        measured=measured,
        set_with=set_with(parameter, catalogue),
        family=_family(parameter),
        siblings=_siblings(parameter, catalogue),
        elsewhere=_elsewhere(parameter.name, catalogue),
        synonym_of=info.synonym_of if info is not None else None,
        is_installed=catalogue.is_complete,
    )


def set_with(parameter: KnownParameter, catalogue: Catalogue) -> str:
    """The option of the launcher that sets a parameter."""
    name = parameter.name
    if parameter.layer in BELOW.values():
        mca = catalogue.family == "openmpi"
        return f"mpirun -x {name}=VALUE" if mca else f"mpirun -genv {name} VALUE"
    if catalogue.family != "openmpi":
        return f"mpirun -genv {name} VALUE"
    options = {LIBRARY: "--mca"} | {layer: f"--{layer}mca" for layer in ("prte", "pmix")}
    variables = {layer: prefix for prefix, layer in VARIABLE_LAYERS.items()}
    option, variable = options[parameter.layer], variables[parameter.layer]
    return f"mpirun {option} {name} VALUE, or the variable {variable}{name}"


def _component(info: ParamInfo | None) -> str:
    if info is None or not info.component or info.component == "base":
        return info.framework if info is not None else ""
    return f"{info.framework}/{info.component}"


def _first_sentence(text: str) -> str:
    return " ".join(text.split()).partition(". ")[0].rstrip(".")


def _values(info: ParamInfo | None) -> str:
    """The values of an enumeration; "" if there is none."""
    if info is None or not info.enum:
        return ""
    words = list(info.enum.values())
    if info.by_name:
        text = ", ".join(words[:_MOST_VALUES])
    else:
        text = enumerated_values(dict(sorted(info.enum.items())[:_MOST_VALUES]))
    return text if len(words) <= _MOST_VALUES else f"{text}, ... ({len(words)})"


def _family(parameter: KnownParameter) -> str:
    """The common beginning of the names that belong together."""
    parts = parameter.name.split("_")
    depth = 3 if parameter.name.isupper() or parameter.name.startswith("MPIR_CVAR") else 2
    if len(parts) <= depth:
        depth = max(len(parts) - 1, 1)
    return "_".join(parts[:depth]) + "_"


def _siblings(parameter: KnownParameter, catalogue: Catalogue) -> tuple[str, ...]:
    begin = _family(parameter)
    names = catalogue.layers.get(parameter.layer, {})
    return tuple(sorted(n for n in names if n.startswith(begin) and n != parameter.name))


def _elsewhere(name: str, catalogue: Catalogue) -> dict[str, str]:
    """What other libraries and versions call it."""
    titles = dict(zip(FAMILIES, ("Open MPI", "MPICH", "Intel MPI"), strict=True))
    others: dict[str, str] = {}
    spellings = (name, *new_names(name))
    for meaning in MEANINGS:
        if any(meaning.name(family) in spellings for family in FAMILIES):
            others |= {
                titles[f]: str(meaning.name(f))
                for f in FAMILIES
                if f != catalogue.family and meaning.name(f)
            }
    for spelling in spellings[1:]:
        other = catalogue.other_series(spelling)
        if other is not None and catalogue.find(spelling) is None:
            others[f"Open MPI {other[0].series}"] = spelling
            break
    return others
