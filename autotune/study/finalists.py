"""From many trials to a few finalists: race the front, then slim the leader.

One lucky run must not become a finalist, and a parameter that does nothing must not become a
recommendation.  The proof comes after both, on fresh data.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from autotune.space import Setting
from autotune.study.ablation import Ablation, Slimmed
from autotune.study.race import Race
from autotune.study.search import Search


@dataclass
class Finalists:
    """The settings to be proven, best guess first.

    ``slim``: those of which every parameter was seen to matter; ``whole``: what the first was taken
    from, where that had more parameters.
    """

    settings: list[Setting] = field(default_factory=list)
    slim: list[Setting] = field(default_factory=list)
    whole: Setting | None = None


class Selection:
    """Chooses the finalists of one round; ``phase`` names its blocks, so it can be continued.

    ``refuted`` settings had their proof and failed it; ``standing`` is the winner of an earlier
    round: it is proven beside the new ones, so that they are compared within the same blocks.
    ``slimmed`` are settings of which earlier rounds proved a slim part.
    """

    def __init__(
        self,
        search: Search,
        seed: int,
        phase: str,
        refuted: Collection[Setting] = (),
        standing: Setting | None = None,
        slimmed: Mapping[Setting, Setting] | None = None,
    ) -> None:
        self.search = search
        self.plan = search.plan
        self.phase = phase
        self.refuted = refuted
        self.standing = standing
        self.slimmed = slimmed or {}
        self._ablation = Ablation(search, seed)

    def choose(self) -> Finalists:
        """At most ``plan.finalists`` settings that may well be faster than the default."""
        known = Race(self.search).run()
        hopeful = known.finalists(self.plan.finalists, self.plan.min_gain)
        hopeful = with_favourite(hopeful, self.search.favourite)
        hopeful = [s for s in hopeful if s not in self.refuted][: self.plan.finalists]
        if all(self.slimmed.get(s, s) == self.standing for s in hopeful):
            return Finalists()
        self.search.defaults.start()
        leader = hopeful[0]
        start = self.slimmed.get(leader) or known.simplest_like(leader, self.plan.min_gain)
        slimmed = Slimmed(start)
        if leader not in self.slimmed:
            slimmed = self._ablation.slim(
                start, self.phase, self._ablation.blocks_for(known.noise), self._proof_reserve
            )
        slim = slimmed.setting if slimmed.setting not in self.refuted else leader
        # A simpler setting that few runs speak for is proven beside the one it stands for.
        most = len(hopeful) if start == leader else min(len(hopeful) + 1, self.plan.finalists)
        settings = list(dict.fromkeys([slim, *(self.slimmed.get(s, s) for s in hopeful)]))[:most]
        if settings == [self.standing]:
            return Finalists()
        if self.standing is not None and self.standing not in settings:
            settings = [*settings[: self.plan.finalists - 1], self.standing]
        settings = settings[: self._affordable(len(settings))]
        return Finalists(
            settings,
            [s for s in settings if len(s) == 1 or (slimmed.complete and s == slimmed.setting)],
            leader if slim != leader and slim == slimmed.setting else None,
        )

    def _affordable(self, finalists: int) -> int:
        """As many finalists as the budget can prove, at least one."""
        budget = self.search.budget
        while finalists > 1 and not budget.affords(self.plan.proof_runs(finalists)):
            finalists -= 1
        return finalists

    @property
    def _proof_reserve(self) -> int:
        """Runs that taking parameters out leaves: the smallest proof and half of what was kept
        beyond it."""
        return (self.plan.proof_runs(1) + self.search.kept_runs) // 2


def with_favourite(hopeful: list[Setting], favourite: Setting | None) -> list[Setting]:
    """What each setting's own runs speak for, led by what the strategy believes in.

    Where nothing is worth a proof by the runs, the strategy's belief alone is none either.
    """
    if favourite is None or not hopeful:
        return hopeful
    return list(dict.fromkeys([favourite, *hopeful]))
