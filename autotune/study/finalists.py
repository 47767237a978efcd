"""From many trials to a few finalists: race the front, then take out what does nothing.

One lucky run must not become a finalist, and a parameter that does nothing must not become a
recommendation.  The proof comes after both, on fresh data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import takewhile

from autotune.space import DEFAULT, Setting
from autotune.study.blocks import Blocks, Pairs
from autotune.study.budget import Budget
from autotune.study.events import PhaseStarted
from autotune.study.ledger import CONFIRM, Ledger
from autotune.study.race import Race
from autotune.study.search import Search

SINGLES = 4
"""Up to this many parameters are taken out one by one; more are taken out in groups first."""
MAX_ROUNDS = 4
LEAST_BLOCKS = 4
MISSED_SHARE = 0.85
"""7 of 8 blocks: by chance in 3.5 % of the cases."""


@dataclass
class Finalists:
    """The settings to be confirmed, best guess first."""

    settings: list[Setting] = field(default_factory=list)


class Selection:
    """Chooses finalists of one search; ``round`` names its phases, so that it can be continued."""

    def __init__(self, search: Search, seed: int, round_name: str) -> None:
        self.search = search
        self.bench = search.bench
        self.space = search.space
        self.plan = search.plan
        self.watch = search.watch
        self.seed = seed
        self.round = round_name

    def choose(self) -> Finalists:
        """At most ``plan.finalists`` settings that may well be faster than the default."""
        known = Race(self.search).run()
        hopeful = known.finalists(self.plan.finalists, self.plan.min_gain)
        hopeful = with_favourite(hopeful, self.search.favourite)[: self.plan.finalists]
        if not hopeful:
            return Finalists()
        self.search.defaults.start()
        leader = hopeful[0]
        start = known.simplest_like(leader, self.plan.min_gain)
        slim = self._prune(start, self._prune_blocks(known.noise))
        # A simpler setting that few runs speak for is proven beside the one it stands for.
        most = len(hopeful) if start == leader else min(len(hopeful) + 1, self.plan.finalists)
        settings = list(dict.fromkeys([slim, *hopeful]))[:most]
        return Finalists(settings[: self._affordable(len(settings))])

    def _prune_blocks(self, noise: float) -> int:
        """Blocks that tell ``min_gain`` from nothing at this noise: few where it is small."""
        step = math.log1p(max(self.plan.min_gain, 0.005)) / 2
        # The median ratio of n blocks has about the standard deviation 1.25 * sqrt(2 / n) * noise.
        needed = math.ceil((2 * 1.25 * math.sqrt(2) * noise / step) ** 2)
        return min(max(needed, LEAST_BLOCKS), self.plan.prune_blocks)

    def _prune(self, setting: Setting, count: int) -> Setting:
        """The smallest setting that is as fast, by group elimination on interleaved blocks."""
        pieces = 1
        for number in range(MAX_ROUNDS):
            groups = _groups(tuple(setting), pieces)
            without = {g: self._without(setting, g) for g in groups}
            rivals = [s for s in dict.fromkeys(without.values()) if s not in (DEFAULT, setting)]
            runs = count * (len(rivals) + 2)
            phase = f"prune:{self.round}:{number}"
            if not rivals or not (self._begun(phase) or self._leaves_proof(runs)):
                return setting
            self.watch(PhaseStarted("prune", "taking parameters out", runs))
            blocks = Blocks(
                self.bench,
                phase,
                [setting, *rivals],
                self.seed,
                self.search.limit_s,
            )
            blocks.ensure(count)
            idle = {
                group: pairs.median_ratio()
                for group, rival in without.items()
                if rival in rivals
                and not is_missed(
                    pairs := blocks.pairs(rival, setting, first=count), self.plan.min_gain
                )
            }
            smaller = self._drop(setting, idle)
            if smaller == setting and all(len(g) == 1 for g in groups):
                return setting
            pieces = pieces * 2 if smaller == setting else 1
            setting = smaller
        return setting

    def _affordable(self, finalists: int) -> int:
        """As many finalists as the budget could prove before the proof began, at least one."""
        proof = f"{CONFIRM}:{self.round}"
        before = takewhile(lambda entry: entry.phase != proof, self.bench.ledger.entries)
        budget = Budget(Ledger.of(before), self.plan.budget_s, self.plan.max_runs)
        while finalists > 1 and not budget.affords(self.plan.proof_runs(finalists)):
            finalists -= 1
        return finalists

    def _leaves_proof(self, runs: int) -> bool:
        """Whether the budget holds so many runs and, after them, the smallest proof and half of
        what was kept beyond it."""
        left_over = (self.plan.proof_runs(1) + self.search.kept_runs) // 2
        return self.search.budget.affords(runs + left_over)

    def _begun(self, phase: str) -> bool:
        """Whether a phase is stored already: it is gone through again, whatever it left over."""
        return bool(self.bench.ledger.blocks(phase))

    def _without(self, setting: Setting, group: tuple[str, ...]) -> Setting:
        return self.space.canonical(setting.without(*group))

    def _drop(self, setting: Setting, idle: dict[tuple[str, ...], float]) -> Setting:
        """Take the idle groups out together, but never everything: the worst to miss stays."""
        for group in sorted(idle, key=lambda group: idle[group]):
            smaller = self._without(setting, group)
            if smaller == DEFAULT or not self.space.is_valid(smaller):
                continue
            setting = smaller
        return setting


def _groups(names: tuple[str, ...], pieces: int) -> list[tuple[str, ...]]:
    """Single parameters where they are few, else about ``SINGLES * pieces`` groups."""
    if len(names) <= SINGLES * pieces:
        return [(name,) for name in names]
    size = -(-len(names) // (SINGLES * pieces))
    return [names[i : i + size] for i in range(0, len(names), size)]


def with_favourite(hopeful: list[Setting], favourite: Setting | None) -> list[Setting]:
    """What each setting's own runs speak for, led by what the strategy believes in.

    Where nothing is worth a proof by the runs, the strategy's belief alone is none either.
    """
    if favourite is None or not hopeful:
        return hopeful
    return list(dict.fromkeys([favourite, *hopeful]))


def is_missed(without: Pairs, min_gain: float) -> bool:
    """Whether a setting is worse than the one it is paired with: by something, and nearly always.

    The burden of proof lies on what the smaller setting leaves out: it stays only if it acts.
    """
    worse = without.median_ratio() > 1 + min_gain / 2
    return worse and without.slower_share() >= MISSED_SHARE
