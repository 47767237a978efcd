"""Settings with equal effects: inactive parameters, each with its conditions, and equal layouts.

Which components are opened depends on the placement of the ranks, their number, the program's
options, and the competing components. A parameter that is inactive under one of these conditions
may be active under another. With one rank per node no shared memory is opened; with two it is.

Placements with equal layouts (:mod:`autotune.space.equal_layouts`) are one placement.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from autotune.space.equal_layouts import EqualLayouts, KnownLayouts, resource_names
from autotune.space.parameter import Parameter
from autotune.space.setting import Setting, Value
from autotune.space.space import Space

_CHOOSES = re.compile(
    # Open MPI frameworks whose values name components, parameters that rank or limit components,
    # and the switch that enables forced algorithms.
    r"btl|pml|mtl|bml|coll|osc|smsc|io|fs|fbtl|fcoll|sharedfp|op|topo|rcache|mpool|accelerator"
    r"|.*_(priority|include|exclude|tls|devices|disqualify|use_dynamic_rules)"
    r"|.*_single_copy_mechanism"
)

_TRANSPORT_VARIABLE = re.compile(r"(UCX|FI|OMP)_")
_CHOOSES_TRANSPORT = re.compile(r"UCX_(TLS|NET_DEVICES|SHM_DEVICES)|FI_PROVIDER")
"""Among the variables of UCX, libfabric and OpenMP, only these choose what is opened."""


def decides(parameter: Parameter) -> bool:
    """True if a value of this parameter can decide which components are opened."""
    name = parameter.name
    if parameter.target == "env" and _TRANSPORT_VARIABLE.match(name):
        return _CHOOSES_TRANSPORT.fullmatch(name) is not None
    return parameter.target != "mca" or _CHOOSES.fullmatch(name) is not None


class InactiveParameters:
    """The known inactive parameters in the settings of one space, and the known equal layouts.

    Only optional parameters can be inactive.
    """

    def __init__(self, space: Space) -> None:
        self.space = space
        self._deciding = {p.name for p in space if decides(p)} | resource_names(space)
        self.layouts = KnownLayouts(space)
        self._everywhere: set[str] = set()
        self._under: dict[str, set[Setting]] = {}
        self._idle_by_condition: dict[Setting, set[str]] = {}
        """The inverse map, for parameters that decide nothing."""

    def learn(self, names: Iterable[str], setting: Setting) -> frozenset[str]:
        """Record that ``names`` had no effect in a valid run of ``setting``; returns the new
        ones."""
        idle = self._optional(names)
        under = self._conditions(self.strip(setting).without(*idle))
        fresh = {n for n in idle - self._everywhere if under not in self._under.get(n, ())}
        for name in fresh:
            self._under.setdefault(name, set()).add(under)
            if name not in self._deciding:
                self._idle_by_condition.setdefault(under, set()).add(name)
        return frozenset(fresh)

    def learn_everywhere(self, names: Iterable[str]) -> frozenset[str]:
        """Record that ``names`` never have an effect; returns the new ones."""
        fresh = self._optional(names) - self._everywhere
        self._everywhere |= fresh
        return frozenset(fresh)

    def learn_default(self, name: str, value: Value) -> bool:
        """Record the value of an unset parameter; returns True if this is new.

        A setting with this value then equals the one without it, and conditions on the unset
        parameter are decided.
        """
        if name not in self.space or not self.space[name].unset:
            return False
        if self.space.value(name, {}) == value:
            return False
        before, self.space = self.space, self.space.with_default(name, value)
        return self.space is not before

    def learn_layouts(self, equal: EqualLayouts) -> bool:
        """Record placements with equal layouts; returns True if they are new."""
        return self.layouts.learn(equal)

    def strip(self, setting: Setting) -> Setting:
        """The canonical setting without its inactive parameters, with the simplest of the
        placements that have its layout; equal settings have equal effects."""
        setting = self.layouts.simplest(self.space.canonical(setting), self.space)
        while idle := self.doing_nothing(setting).intersection(setting):
            smaller = self.space.canonical(setting.without(*idle))
            setting = self.layouts.simplest(smaller, self.space)
        return setting

    def doing_nothing(self, setting: Setting) -> set[str]:
        """All parameters known to be inactive together with the other values of ``setting``."""
        if not self._under:
            return set(self._everywhere)
        conditions = self._conditions(setting)
        deciding = {
            name
            for name in self._deciding.intersection(self._under)
            if conditions.without(name) in self._under[name]
        }
        return self._everywhere | self._idle_by_condition.get(conditions, set()) | deciding

    @property
    def everywhere(self) -> frozenset[str]:
        """Names of the parameters that are inactive under all conditions."""
        return frozenset(self._everywhere)

    @property
    def under(self) -> dict[str, tuple[str, ...]]:
        """Names of inactive parameters by their conditions (keys of settings); sorted."""
        names_by_condition: dict[str, set[str]] = {}
        for name, conditions in self._under.items():
            for one in conditions:
                names_by_condition.setdefault(one.key, set()).add(name)
        return {key: tuple(sorted(names_by_condition[key])) for key in sorted(names_by_condition)}

    def __len__(self) -> int:
        """Number of recorded facts; it grows with every new one."""
        return len(self._everywhere) + sum(map(len, self._under.values())) + len(self.layouts)

    def _optional(self, names: Iterable[str]) -> set[str]:
        return {name for name in names if name in self.space and self.space[name].unset}

    def _conditions(self, setting: Setting) -> Setting:
        return setting.without(*(name for name in setting if name not in self._deciding))
