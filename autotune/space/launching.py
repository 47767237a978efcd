"""What a setting puts on the launch: library parameters, placement, program words, processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from autotune.space.parameter import PLACEMENT, Parameter
from autotune.space.setting import Value, normalise_value
from autotune.space.words import Argument, usual_option

if TYPE_CHECKING:
    from autotune.space.space import Space

Groups = dict[str, dict[str, str]]


def launched(space: Space, setting: Mapping[str, Value]) -> Groups:
    """Target -> {native name: text}, with everything implied and derived.

    Under ``arg`` the names are templates and the texts words as a shell reads them, in the order in
    which they are given.  Raises :class:`UsageError` for a parameter that the space does not have.
    """
    launch: Groups = {}
    for name, value in setting.items():
        if name not in space:
            raise space.unknown(name)
        parameter = space[name]
        if parameter.target != "arg":
            launch.setdefault(parameter.target, {})[name] = str(parameter.normalise(value))
    for name in setting:
        for other, value in space[name].implies.items():
            # A value the setting itself gives is stronger than an implied one.
            launch.setdefault(_target_of(other, space), {}).setdefault(other, str(value))
    _derive(space, setting, launch)
    words = _words(space, setting)
    return launch | ({"arg": words} if words else {})


def _derive(space: Space, setting: Mapping[str, Value], launch: Groups) -> None:
    """Resources that follow from what is set; one that follows from defaults is no news."""
    for name in space.derived:
        if name in space.resources and space.follows(name, setting):
            value = space.value(name, setting)
            if value is not None:
                launch.setdefault("resource", {})[name] = str(normalise_value(value))


def _words(space: Space, setting: Mapping[str, Value]) -> dict[str, str]:
    given = [Argument(t) for n in setting if (t := _own_option(space, space[n], setting[n]))]
    for argument in space.arguments:
        if argument.when is None:
            if any(space.follows(name, setting) for name in argument.places):
                given.append(argument)
        elif space.truth(argument.when, setting):
            given.append(argument)
    return {a.template: a.text(lambda name: space.value(name, setting)) for a in given}


def _own_option(space: Space, parameter: Parameter, value: Value) -> str | None:
    """The parameter's own words, if any: a template without a place is given where it is true."""
    if parameter.target != "arg":
        return None
    if parameter.option is not None:
        is_flag = not Argument(parameter.option).places
        return None if is_flag and value in (0, "") else parameter.option
    return None if parameter.name in _mentioned(space) else usual_option(parameter.name)


def _mentioned(space: Space) -> set[str]:
    """Parameters in places of the space's arguments, themselves or in a derived value."""
    places = {name for argument in space.arguments for name in argument.places}
    behind = [expr.names for name, expr in space.derived.items() if name in places]
    return places.union(*behind)


def _target_of(name: str, space: Space) -> str:
    if name in space:
        return space[name].target
    return "placement" if name in PLACEMENT else "mca"
