"""The settings of a calibration: each level of a space alone, and each collective's algorithms.

A conditional level is combined with a value that activates it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from autotune.collectives.tournament import OPERATIONS, table_candidates
from autotune.dialects import dialect
from autotune.errors import UsageError
from autotune.space import DEFAULT, Parameter, Setting, Space
from autotune.space.parameter import operation_of
from autotune.targets.target import Target

_OTHER_TARGETS = ("placement", "resource", "arg", "file", "library")
"""Parameters of these kinds change the partners of ranks, or the program: its response to them does
not follow from the response of its operations."""
_WAITING = ("mpi_yield_when_idle",)
"""A parameter for how a rank waits: its effect depends on the other work for the processor."""
_OTHER = "another"
"""A value that is none of a parameter's levels."""


def is_composable(parameter: Parameter) -> bool:
    """True if the effect of a parameter follows from that on the operations of a program."""
    return parameter.target not in _OTHER_TARGETS and parameter.name not in _WAITING


def level_settings(space: Space) -> list[Setting]:
    """Every level of the parameters that do not belong to one collective, each with the fewest
    other values that activate it."""
    parameters = [p for p in space if is_composable(p) and not operation_of(p.name)]
    singles = [Setting({p.name: v}) for p in parameters for v in p.choices if v is not None]
    settings = (acting_setting(single, singles, space) for single in singles)
    return list(dict.fromkeys(setting for setting in settings if setting is not None))


def acting_setting(setting: Setting, helpers: Sequence[Setting], space: Space) -> Setting | None:
    """The setting, combined with one of ``helpers`` if it is otherwise inactive or not allowed;
    None if it is never active."""
    for helper in (DEFAULT, *helpers):
        if any(name in setting for name in helper):
            continue
        joint = setting.with_values(helper)
        if space.is_canonical(joint) and _acts(joint, space):
            return joint
    return None


def _acts(setting: Setting, space: Space) -> bool:
    """True if no condition is false while its named parameters with unknown values have none of
    their levels: unset is the library's own choice, which a search would not name."""
    for name in setting:
        when = space[name].when
        if when is None:
            continue
        unknown = {n: _OTHER for n in when.names if n in space and space.value(n, setting) is None}
        if space.truth(when, setting.with_values(unknown)) is False:
            return False
    return True


def algorithm_settings(target: Target, space: Space, operation: str) -> list[Setting]:
    """Every algorithm of a collective that the space allows, with further values that matter."""
    own = [p for p in space if operation_of(p.name) == operation]
    singles = [Setting({p.name: v}) for p in own for v in p.choices if v is not None]
    if operation in OPERATIONS:
        try:
            words = dialect(target.library.family)
            candidates = table_candidates(words.space(target.library, operation, space.facts))
            singles = [s for s in candidates if all(name in space for name in s)] or singles
        except UsageError:
            pass  # This library has no rules for the collective: only single levels remain.
    helpers = [s for s in level_settings(space) if len(s) == 1]
    settings = (acting_setting(single, helpers, space) for single in singles)
    return list(dict.fromkeys(setting for setting in settings if setting is not None))


def pack_launches(parts: Mapping[str, Sequence[Setting]], space: Space) -> list[dict[str, Setting]]:
    """The settings of different collectives packed into few launches: operation -> its setting.

    Algorithms of different collectives do not interact, so one launch measures several.
    """
    bins: list[dict[str, Setting]] = []
    for operation, settings in parts.items():
        free = [one for one in bins if operation not in one]
        for setting in settings:
            place = next((one for one in free if _fits(one, setting, space)), None)
            if place is None:
                bins.append({operation: setting})
                continue
            place[operation] = setting
            free.remove(place)
    return bins


def join_settings(settings: Sequence[Setting]) -> Setting:
    """All the settings as one."""
    whole = DEFAULT
    for setting in settings:
        whole = whole.with_values(setting)
    return whole


def _fits(pack: Mapping[str, Setting], setting: Setting, space: Space) -> bool:
    others = join_settings(list(pack.values()))
    if any(others[name] != value for name, value in setting.items() if name in others):
        return False
    return space.is_valid(others.with_values(setting))
