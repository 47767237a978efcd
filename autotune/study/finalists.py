"""From many trials to a few finalists: re-measure the front, then take out what does nothing.

One lucky run must not become a finalist, and a parameter that does nothing must not become a
recommendation.  Both are decided on interleaved blocks; the proof comes after, on fresh data.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from autotune.space import DEFAULT, Setting
from autotune.study.blocks import Blocks, Pairs
from autotune.study.events import PhaseStarted
from autotune.study.search import Search, Trial

SINGLES = 4
"""Up to this many parameters are taken out one by one; more are taken out in groups first."""
MAX_ROUNDS = 4
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

    def choose(self, trials: list[Trial]) -> Finalists:
        """At most ``plan.finalists`` settings that look faster than the default; often none."""
        front = self._front(trials)
        if not front:
            return Finalists()
        self.search.start_defaults()
        ranked = self._remeasure(front)
        hopeful = [s for s, ratio in ranked if ratio <= 1 - self.plan.min_gain / 2]
        if not hopeful:
            return Finalists()
        most = self._affordable(min(len(hopeful), self.plan.finalists))
        chosen = Finalists(hopeful[:most])
        slim = self._prune(hopeful[0])
        if slim not in chosen.settings:
            chosen.settings = [slim, *chosen.settings][: max(most, 1)]
        return chosen

    def _front(self, trials: list[Trial]) -> list[Setting]:
        best: dict[Setting, float] = {}
        for trial in trials:
            if trial.state == "ok" and trial.estimate is not None and trial.effective != DEFAULT:
                best[trial.effective] = min(trial.estimate, best.get(trial.effective, 9.0))
        faster = sorted((ratio, s.key, s) for s, ratio in best.items() if ratio < 1)
        return [s for _, _, s in faster[: self.plan.selected]]

    def _remeasure(self, front: list[Setting]) -> list[tuple[Setting, float]]:
        count = self.plan.select_blocks
        self.watch(PhaseStarted("select", "measuring the best again", count * (len(front) + 1)))
        blocks = Blocks(self.bench, f"select:{self.round}", front, self.seed, self.search.limit_s)
        blocks.ensure(count)
        # Only the new runs count: the old ones were chosen for being good.
        ranked = [(s, blocks.pairs(s).median_ratio()) for s in front]
        return sorted(ranked, key=lambda item: (item[1], item[0].key))

    def _prune(self, setting: Setting) -> Setting:
        """The smallest setting that is as fast, by group elimination on interleaved blocks."""
        pieces = 1
        for number in range(MAX_ROUNDS):
            groups = _groups(tuple(setting), pieces)
            without = {g: self._without(setting, g) for g in groups}
            rivals = [s for s in dict.fromkeys(without.values()) if s not in (DEFAULT, setting)]
            runs = self.plan.prune_blocks * (len(rivals) + 2)
            if not rivals or not self._leaves_proof(runs):
                return setting
            self.watch(PhaseStarted("prune", "taking parameters out", runs))
            blocks = Blocks(
                self.bench,
                f"prune:{self.round}:{number}",
                [setting, *rivals],
                self.seed,
                self.search.limit_s,
            )
            blocks.ensure(self.plan.prune_blocks)
            idle = {
                group: pairs.median_ratio()
                for group, rival in without.items()
                if rival in rivals
                and not is_missed(pairs := blocks.pairs(rival, setting), self.plan.min_gain)
            }
            smaller = self._drop(setting, idle)
            if smaller == setting and all(len(g) == 1 for g in groups):
                return setting
            pieces = pieces * 2 if smaller == setting else 1
            setting = smaller
        return setting

    def _affordable(self, finalists: int) -> int:
        """As many finalists as the budget can prove, at least one."""
        while finalists > 1 and not self.search.affords(self.search.proof_s(finalists)):
            finalists -= 1
        return finalists

    def _leaves_proof(self, runs: int) -> bool:
        """Whether the budget holds so many runs and the proof of one finalist after them.

        A phase that is stored already costs nothing and is always gone through again.
        """
        cost = self.search.cost_s(runs) + self.search.proof_s(1)
        return self.search.affords(cost) or self._begun("prune")

    def _begun(self, kind: str) -> bool:
        prefix = f"{kind}:{self.round}:"
        return any(e.phase.startswith(prefix) for e in self.bench.ledger.entries)

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


def is_missed(without: Pairs, min_gain: float) -> bool:
    """Whether a setting is worse than the one it is paired with: by something, and nearly always.

    The burden of proof lies on what the smaller setting leaves out: it stays only if it acts.
    """
    worse = without.median_ratio() > 1 + min_gain / 2
    return worse and without.slower_share() >= MISSED_SHARE
