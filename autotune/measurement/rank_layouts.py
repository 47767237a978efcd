"""Which placements of a search are equal: by the launcher's own plan, else by the CPUs of runs.

The launcher is asked once for each placement that the space allows under some resources, before the
first proposal. If it does not say where ranks would run, placements are compared by the CPUs that
the ranks of valid runs were seen on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from autotune.space import DEFAULT, Setting, Space
from autotune.space.equal_layouts import (
    EqualLayouts,
    placement_names,
    placements,
    resource_names,
)
from autotune.space.library_choice import MPI
from autotune.targets.target import Target
from runner.launch import Runner
from runner.mpi.discover import adapter
from runner.mpi.rank_layout import RankLayout
from runner.threads import binds_threads
from runner.types import LaunchSpec, RunRecord

AskLayouts = Callable[[Sequence[LaunchSpec]], list[RankLayout | None]]
"""Where the ranks of each launch would run; None where that is not known."""


class PlacementWatch:
    """Compares the placements of one space under one target.

    ``ask`` is :meth:`runner.launch.Runner.rank_layouts`, or a model of it.
    """

    def __init__(self, space: Space, target: Target, ask: AskLayouts) -> None:
        self._space = space
        self._target = target
        self._ask = ask
        others = filter(adapter(target.library).places_ranks, space.names)
        # With several libraries a placement means something else under each of them.
        self.names = frozenset() if MPI in space else placement_names(space, others)
        self._resource_names = resource_names(space)
        self._asked: set[Setting] = set()
        self._unanswered: set[Setting] = set()
        self._masks: dict[Setting, dict[Setting, tuple[str, ...]]] = {}

    @classmethod
    def on(cls, runner: Runner, target: Target, space: Space) -> PlacementWatch:
        """The watch that asks the launcher of ``runner``."""
        return cls(space, target, runner.rank_layouts)

    def resources_of(self, setting: Setting) -> Setting:
        """The part of a setting on which its resources depend."""
        return setting.without(*(n for n in setting if n not in self._resource_names))

    def know(self, equal: EqualLayouts) -> None:
        """Record an answer of the launcher that a trial has: it is not asked again."""
        if equal.names == self.names:
            self._asked.add(equal.resources)

    def asked(self, setting: Setting = DEFAULT) -> EqualLayouts | None:
        """The launcher's answer under the resources of ``setting``.

        None if it was given before, or if there is nothing to ask.
        """
        resources = self.resources_of(setting)
        if not self.names or resources in self._asked:
            return None
        self._asked.add(resources)
        each = placements(self._space, self.names, resources)
        if len(each) < 2:
            return None
        specs = [self._target.spec(self._space, resources.with_values(one)) for one in each]
        layouts = dict(zip(each, self._ask(specs), strict=True))
        if all(layout is None for layout in layouts.values()):
            self._unanswered.add(resources)
            return None
        return EqualLayouts.of(self.names, resources, layouts)

    def seen(self, setting: Setting, record: RunRecord) -> EqualLayouts | None:
        """What a run of ``setting`` shows, where the launcher said nothing.

        None if no other placement was seen with the CPUs of its ranks.
        """
        resources = self.resources_of(setting)
        spec = self._target.spec(self._space, setting)
        is_complete = record.valid and len(record.bindings) == spec.ranks
        if resources not in self._unanswered or not is_complete or binds_threads(spec):
            return None
        placement = setting.without(*(n for n in setting if n not in self.names))
        masks = self._masks.setdefault(resources, {})
        masks.setdefault(placement, tuple(record.bindings))
        simplest_first = {one: masks[one] for one in sorted(masks, key=lambda s: (len(s), s.key))}
        equal = EqualLayouts.of(self.names, resources, simplest_first)
        own = tuple(group for group in equal.groups if placement in group)
        return EqualLayouts(self.names, resources, own) if own else None
