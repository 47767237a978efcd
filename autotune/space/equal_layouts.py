"""Equal layouts: values of some parameters under which the same ranks run on the same CPUs.

Mapping, binding and ranking have many values and few effects. Values that put every rank on the
same CPUs are one setting of a search. Which they are depends on the ranks, threads and workers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from autotune.errors import UsageError
from autotune.space.parameter import PLACEMENT
from autotune.space.setting import Setting
from autotune.space.space import Space

MOST_PLACEMENTS = 256
"""With more placements than this under the same resources, no launcher is asked about them."""


def placement_names(space: Space, others: Iterable[str] = ()) -> frozenset[str]:
    """The parameters of a space that decide where ranks run: those of the placement, those that
    imply one, and ``others``, which the library has beside it."""
    policies = set(PLACEMENT)
    return frozenset(
        p.name
        for p in space
        if p.target == "placement" or p.name in others or not policies.isdisjoint(p.implied_names)
    )


def resource_names(space: Space) -> frozenset[str]:
    """The parameters of a space on which its resources depend."""
    names: set[str] = set()
    for name in space.resources:
        names |= space.derived[name].names if name in space.derived else {name}
    return frozenset(names)


def placements(space: Space, names: Iterable[str], resources: Setting) -> list[Setting]:
    """All placements that are settings of the space beside ``resources``: the simplest first.

    Empty if there are more than :data:`MOST_PLACEMENTS` combinations.
    """
    parameters = [p for p in space if p.name in set(names)]
    if math.prod(len(p.choices) for p in parameters) > MOST_PLACEMENTS:
        return []
    placements = []
    for combination in itertools.product(*(p.choices for p in parameters)):
        pairs = zip(parameters, combination, strict=True)
        placement = Setting({p.name: value for p, value in pairs if value is not None})
        whole = resources.with_values(placement)
        if space.canonical(whole) == whole and not space.broken_rules(whole):
            placements.append(placement)
    return sorted(placements, key=len)


@dataclass(frozen=True)
class EqualLayouts:
    """Placements with equal layouts beside some resources.

    ``names`` are the parameters of the placements. Each group has at least two placements, the
    simplest first.
    """

    names: frozenset[str]
    resources: Setting
    groups: tuple[tuple[Setting, ...], ...]

    @classmethod
    def of(
        cls, names: frozenset[str], resources: Setting, layouts: Mapping[Setting, object]
    ) -> Self:
        """The groups among placements with these layouts; None is a layout that is not known."""
        groups: dict[object, list[Setting]] = {}
        for placement, layout in layouts.items():
            if layout is not None:
                groups.setdefault(layout, []).append(placement)
        equal = (tuple(group) for group in groups.values() if len(group) > 1)
        return cls(names, resources, tuple(equal))

    def to_json(self) -> dict[str, object]:
        """This as an attribute of a trial."""
        return {
            "parameters": sorted(self.names),
            "resources": self.resources.to_json(),
            "groups": [[one.to_json() for one in group] for group in self.groups],
        }

    @classmethod
    def from_json(cls, data: object) -> Self | None:
        """The content of an attribute that others may have written; None if it is none."""
        try:
            names, resources, groups = (
                data[key]  # type: ignore[index]
                for key in ("parameters", "resources", "groups")
            )
            return cls(
                frozenset(map(str, names)),
                Setting(resources),
                tuple(tuple(Setting(one) for one in group) for group in groups),
            )
        except (KeyError, TypeError, ValueError, AttributeError, UsageError):
            return None


class KnownLayouts:
    """The equal layouts that a search knows of, by resources."""

    def __init__(self, space: Space) -> None:
        self._resource_names = resource_names(space)
        self._known: dict[Setting, list[EqualLayouts]] = {}

    def __len__(self) -> int:
        """Number of facts; it grows with every new one."""
        return sum(map(len, self._known.values()))

    def resources_of(self, setting: Setting) -> Setting:
        """The part of a setting on which its resources depend."""
        return setting.without(*(n for n in setting if n not in self._resource_names))

    def learn(self, equal: EqualLayouts) -> bool:
        """Record equal layouts; returns True if they are new."""
        layouts = self._known.setdefault(equal.resources, [])
        if equal in layouts or not equal.groups:
            return False
        layouts.append(equal)
        return True

    def simplest(self, setting: Setting, space: Space) -> Setting:
        """A canonical setting of ``space`` with the simplest placement whose layout is equal.

        A placement that breaks a rule beside the other values, or changes which of them act, does
        not count.
        """
        if not self._known:
            return setting
        for equal in self._known.get(self.resources_of(setting), ()):
            rest = setting.without(*equal.names)
            own = setting.without(*rest)
            for group in equal.groups:
                if own not in group:
                    continue
                for placement in group[: group.index(own)]:
                    other = rest.with_values(placement)
                    if space.canonical(other) == other and not space.broken_rules(other):
                        return other
        return setting
