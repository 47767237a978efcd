"""Ablation: taking parameters out of a setting until each that is left matters.

The first part is the ablation of one study. Group elimination on interleaved blocks finds the
smallest setting that is not seen to be slower. Before this slim setting is recommended, it is
measured beside the whole one on fresh blocks. It replaces the whole setting if its own gain is
proven, and the blocks say by how much it may be slower.

The second part says which smaller settings there are, and which one the setting becomes. It does
not measure whether a parameter matters: a study does this on one program, a class-wide proof on
several.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autotune.space import DEFAULT, Setting, Space
from autotune.study.budget import BudgetSpent
from autotune.study.confirmation import Blocks, ReferenceFailed
from autotune.study.events import PhaseStarted
from autotune.study.loop import SearchLoop
from autotune.study.pairs import MISSED_SHARE, Pairs, is_missed

SINGLES = 4
"""Up to so many parameters are taken out one by one; more are first taken out in groups."""
MAX_ROUNDS = 4
LEAST_BLOCKS = 4
SURE_BLOCKS = 6
"""So many blocks, all slower, show that a parameter matters (by chance in 1.6 % of cases)."""

SPENT = "the budget does not hold the runs of the ablation (taking parameters out)"
FAILED = "the whole setting failed in the ablation (taking parameters out)"
ROUNDS_USED = f"{MAX_ROUNDS} rounds of the ablation (taking parameters out) were not enough"


@dataclass(frozen=True)
class AblationResult:
    """The smallest setting found.

    ``why`` says why parameters without effect may be left; "" if each was seen to matter.
    """

    setting: Setting
    why: str = ""

    @property
    def complete(self) -> bool:
        """Whether each parameter that is left was seen to matter."""
        return not self.why


class Ablation:
    """Takes parameters out of the settings of one search."""

    def __init__(self, search: SearchLoop, seed: int) -> None:
        self.evaluator = search.evaluator
        self.search = search
        self.plan = search.plan
        self.seed = seed

    def blocks_for(self, noise: float) -> int:
        """Number of blocks that distinguish ``min_gain`` from nothing at this noise."""
        step = math.log1p(max(self.plan.min_gain, 0.005)) / 2
        # The median ratio of n blocks has a standard deviation of about 1.25 * sqrt(2 / n) * noise.
        needed = math.ceil((2 * 1.25 * math.sqrt(2) * noise / step) ** 2)
        return min(max(needed, LEAST_BLOCKS), self.plan.prune_blocks)

    def slim(self, setting: Setting, phase: str, count: int, reserve: int) -> AblationResult:
        """The smallest setting that is as fast, by group elimination; ``count`` blocks a round."""
        pieces = 1
        for number in range(MAX_ROUNDS):
            left = Elimination(setting, [self.search.idle.space])
            taken = groups(tuple(setting), pieces, SINGLES)
            without = {g: smaller for g in taken if (smaller := left.without(g)) is not None}
            rivals = list(dict.fromkeys(without.values()))
            runs = count * (len(rivals) + 1)
            name = f"{phase}:{number}"
            if not rivals:
                return AblationResult(setting)
            if not (self._begun(name) or self.search.budget.affords(runs + reserve)):
                return AblationResult(setting, SPENT)
            self.search.watch(PhaseStarted("prune", "ablation: taking parameters out", runs))
            limit = self.search.limit_s
            blocks = Blocks(self.evaluator, name, rivals, self.seed, limit, setting, limit)
            try:
                self._compare(blocks, count)
            except BudgetSpent:
                return AblationResult(setting, SPENT)
            except ReferenceFailed:
                return AblationResult(setting, FAILED)
            idle = {
                group: pairs.median_ratio()
                for group, rival in without.items()
                if not is_missed(pairs := blocks.pairs(rival, first=count), self.plan.min_gain)
            }
            left.take_out(idle)
            if all(len(group) == 1 for group in taken):
                return AblationResult(left.setting)
            pieces = pieces * 2 if left.setting == setting else 1
            setting = left.setting
        return AblationResult(setting, "" if len(setting) == 1 else ROUNDS_USED)

    def _compare(self, blocks: Blocks, count: int) -> None:
        """Measure at most ``count`` blocks; a setting whose outcome is certain is not run again."""
        for number in range(count):
            live = [
                smaller
                for smaller in blocks.settings
                if not certain(blocks.pairs(smaller, first=number), count, self.plan.min_gain)
            ]
            if not live:
                return
            blocks.ensure_block(number, live)

    def _begun(self, phase: str) -> bool:
        """Whether a phase has stored runs; it is then repeated, whatever budget is left."""
        return bool(self.evaluator.history.blocks(phase))


def certain(without: Pairs, count: int, min_gain: float) -> bool:
    """Whether the pairs so far decide what ``count`` pairs would say.

    Too many blocks were not slower, which no further block can change, or the first
    :data:`SURE_BLOCKS` were all slower.
    """
    slower = sum(ratio > 1 for ratio in without.ratios)
    blocks = len(without.ratios)
    if blocks - slower > count - math.ceil(MISSED_SHARE * count):
        return True
    return slower == blocks >= SURE_BLOCKS and is_missed(without, min_gain)


Group = tuple[str, ...]
"""Names of parameters that are taken out together."""


class Elimination:
    """``setting`` is what is left of it; ``spaces`` are those of the programs that use it."""

    def __init__(self, setting: Setting, spaces: Sequence[Space]) -> None:
        self.setting = setting
        self.spaces = tuple(spaces)

    def without(self, group: Group) -> Setting | None:
        """The setting without a group of parameters; None if that must not be measured.

        Parameters that mean nothing without the group in any of the spaces are taken out too. The
        empty setting is the default, with which the proof compares in any case; a setting that
        breaks a rule of a space is not launched.
        """
        smaller = self.setting.without(*group)
        acting = {name for space in self.spaces for name in space.canonical(smaller)}
        smaller = smaller.without(*(name for name in smaller if name not in acting))
        if smaller in (DEFAULT, self.setting):
            return None
        broken = any(space.violations(smaller, grid=False) for space in self.spaces)
        return None if broken else smaller

    def take_out(self, idle: Mapping[Group, float]) -> None:
        """Take groups without effect out together; the group whose absence costs most stays."""
        for group in sorted(idle, key=lambda group: idle[group]):
            self.setting = self.without(group) or self.setting


def groups(names: Group, pieces: int, singles: int) -> list[Group]:
    """Single parameters if they are few, else about ``singles * pieces`` groups."""
    if len(names) <= singles * pieces:
        return [(name,) for name in names]
    size = -(-len(names) // (singles * pieces))
    return [names[i : i + size] for i in range(0, len(names), size)]
