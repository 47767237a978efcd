"""The race: runs after a setting's first are made where they can change which settings are proven.

One lucky run must not make a finalist. The data of a setting are its ratios T / T_default, each
against the default runs around it. ``stats.racing`` says which setting's next run decides most and
which settings to prove.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from autotune.measurement.bench import Bench
from autotune.measurement.budget import BudgetSpent
from autotune.measurement.events import PhaseStarted
from autotune.measurement.run_history import DEFAULT_KEY, RACE, SEARCH, HistoryEntry, RunHistory
from autotune.space import DEFAULT, Setting
from autotune.stats import finalists, next_run, noise_of
from autotune.stats.effects import Level, level_effects
from autotune.study.trial_store import Trial, best_ratio

MOST_WITHOUT_EFFECT = 2
"""Number of finalists of which no parameter is seen to act: they are probably only lucky."""
NOISE_RUNS = 6
"""Smallest number of default runs from which the noise of one run is estimated."""


@dataclass(frozen=True)
class RaceEvidence:
    """Ratios per setting, in the order of the first trials, and the noise of one ratio."""

    settings: list[Setting]
    ratios: list[list[float]]
    noise: float

    def finalists(self, most: int, min_gain: float) -> list[Setting]:
        """The settings to prove, the most promising first; often none."""
        arms = self._arms(min_gain)
        indices = finalists(self._pool(arms), self.noise, most=most, min_gain=min_gain)
        settings = [self._best(arms[i]) for i in indices]
        has_effect = any(self.acting(setting, min_gain) for setting in settings)
        return settings if has_effect else settings[:MOST_WITHOUT_EFFECT]

    def next_setting(self, min_gain: float) -> Setting | None:
        """The setting whose next run decides most; None if none would change the choice."""
        arms = self._arms(min_gain)
        index = next_run(self._pool(arms), self.noise, min_gain=min_gain)
        return None if index is None else self._best(arms[index])

    def _arms(self, min_gain: float) -> list[list[int]]:
        """Indices of the settings, those together that differ only in what does nothing.

        Settings are pooled only if a part of them is seen to be faster and none of them failed.
        """
        arms: dict[object, list[int]] = {}
        for i, setting in enumerate(self.settings):
            levels = frozenset(level for level in setting.items() if level in self.effects)
            can_pool = self.acting(setting, min_gain) and math.inf not in self.ratios[i]
            arms.setdefault(levels if can_pool else i, []).append(i)
        return list(arms.values())

    def _pool(self, arms: list[list[int]]) -> list[list[float]]:
        return [[ratio for i in arm for ratio in self.ratios[i]] for arm in arms]

    def _best(self, arm: list[int]) -> Setting:
        """The setting of an arm whose own runs look best, each shrunk by one run like the arm's."""
        level = median([ratio for i in arm for ratio in self.ratios[i]])
        return self.settings[min(arm, key=lambda i: (median([*self.ratios[i], level]), i))]

    @cached_property
    def effects(self) -> dict[Level, float]:
        """What single levels do, as log ratios, by all settings together."""
        return level_effects(self.settings, self.ratios, self.noise)

    def idle(self, setting: Setting, min_gain: float) -> tuple[str, ...]:
        """Parameters of a setting that are not seen to make it faster; none if no part is seen to.

        An effect of half of ``min_gain`` counts.
        """
        acting = self.acting(setting, min_gain)
        return tuple(name for name in setting if name not in acting) if acting else ()

    def acting(self, setting: Setting, min_gain: float) -> set[str]:
        bar = -math.log1p(min_gain) / 2
        return {name for name, value in setting.items() if self._effect(name, value) <= bar}

    def _effect(self, name: str, value: Hashable) -> float:
        return self.effects.get((name, value), 0.0)

    def simplest_part(self, leader: Setting, min_gain: float) -> Setting:
        """The part of ``leader`` with the fewest parameters that looks about as fast.

        If the whole space was measured, there are settings with and without some of the leader's
        parameters. Their times show which of these act, without a further run. This is used only if
        the gain is well above the noise: a part must show half of the gain itself, and the effect
        of the left-out parameters must be resolved.
        """
        rows = zip(self.settings, self.ratios, strict=True)
        gains = {setting: _OwnGain(-math.log(median(r)), len(r)) for setting, r in rows}
        gains[DEFAULT] = _OwnGain(0.0, math.inf)
        gain = gains[leader].gain
        near = []
        for part in self.settings:
            if len(part) >= len(leader) or any(leader.get(k) != v for k, v in part.items()):
                continue
            left_out = {k: v for k, v in leader.items() if k not in part}
            effect, error = self._effect_of(left_out, gains)
            clear = error <= gain / 2 <= gains[part].gain
            if clear and effect < math.log1p(min_gain) + error:
                near.append((len(part), -gains[part].gain, part))
        return min(near, key=lambda item: item[:2])[2] if near else leader

    def _effect_of(
        self, values: Mapping[str, object], gains: Mapping[Setting, _OwnGain]
    ) -> tuple[float, float]:
        """What some values add to the gain, and the error of this effect.

        The effect is the median over all settings that were measured with and without the values.
        The leading setting was probably lucky; the others correct this.
        """
        pairs = [
            (one, other)
            for setting, one in gains.items()
            if all(setting.get(k) == v for k, v in values.items())
            and (other := gains.get(setting.without(*values))) is not None
            and max(one.gain, other.gain) > -math.inf
        ]
        if not pairs:
            return 0.0, math.inf  # Both failed, so nothing is known.
        effects = [one.gain - other.gain for one, other in pairs]
        spread = sum(1 / one.runs + 1 / other.runs for one, other in pairs)
        return median(effects), self.noise * math.sqrt(spread) / len(pairs)


@dataclass(frozen=True)
class _OwnGain:
    """Logarithm of T_default / T of one setting (-inf if it failed), and its number of runs."""

    gain: float
    runs: float


def with_favourite(hopeful: list[Setting], favourite: Setting | None) -> list[Setting]:
    """The settings that their own runs support, led by the strategy's favourite.

    If no setting is supported by its runs, the strategy's estimate alone adds none.
    """
    if favourite is None or not hopeful:
        return hopeful
    return list(dict.fromkeys([favourite, *hopeful]))


def race_evidence(entries: list[HistoryEntry], trials: list[Trial]) -> RaceEvidence:
    """The evidence of the search and the race, up to the last run of either.

    Later runs (of the proof, or of the default when a study is continued) must not change what was
    decided before them, so they are left out.
    """
    number_of = {t.number: t for t in trials if t.has_result and t.effective != DEFAULT}
    last = max((i for i, e in enumerate(entries) if e.kind in (SEARCH, RACE)), default=-1)
    history = RunHistory.of(
        e for e in entries[: last + 1] if e.counts and _is_evidence(e, number_of)
    )
    ratios: dict[Setting, list[float]] = {t.effective: [] for t in number_of.values()}
    noise: list[float] = []
    for entry in history.entries:
        if history.defaults_on(entry.record.place) < 2:
            continue  # The default on another place says nothing here.
        ratio = history.ratio(entry)
        if entry.key == DEFAULT_KEY and ratio is not None:
            noise.append(ratio)
        elif entry.trial is not None:
            # A run without its own figure counts as slower than any other.
            figure = ratio if ratio is not None and entry.record.valid else math.inf
            ratios[number_of[entry.trial].effective].append(figure)
    if len(noise) < 2:
        return RaceEvidence([], [], math.inf)
    for trial in number_of.values():
        if not ratios[trial.effective]:
            # Another study measured the setting; its figure counts as one run.
            ratios[trial.effective] = [trial.estimate or math.inf]
    return RaceEvidence(list(ratios), list(ratios.values()), noise_of(noise))


def _is_evidence(entry: HistoryEntry, trials: dict[int, Trial]) -> bool:
    if entry.key == DEFAULT_KEY:
        return entry.record.valid
    return entry.kind in (SEARCH, RACE) and entry.trial in trials


class Race:
    """The race of one search; only the run history decides, so it can be continued."""

    def __init__(self, bench: Bench, trials: list[Trial]) -> None:
        self.bench = bench
        self.trials = trials

    def run(self) -> RaceEvidence:
        """Measure until no run would change the choice, or the allowance is used."""
        bench = self.bench
        evidence = self._evidence()
        if not evidence.settings:
            evidence = self._first_own()
        began = False
        while self._left(evidence) > 0 and (setting := evidence.next_setting(bench.plan.min_gain)):
            if not bench.budget.affords(1 + bench.kept_runs):
                break
            try:
                if not began:
                    words = "racing the promising settings"
                    bench.watch(PhaseStarted(RACE, words, self._left(evidence)))
                    bench.ensure_defaults(NOISE_RUNS)
                    began = True
                self._measure(setting)
            except BudgetSpent:
                break
            evidence = self._evidence()
        return evidence

    def _evidence(self) -> RaceEvidence:
        return race_evidence(self.bench.history.entries, self.trials)

    def _first_own(self) -> RaceEvidence:
        """Run the best setting here, beside the default, if all settings are from other studies.

        Else there would be no evidence of this study's own.
        """
        bench = self.bench
        nothing = RaceEvidence([], [], math.inf)
        bar = 1 - bench.plan.min_gain
        good = [
            t for t in self.trials if t.reused and t.state == "ok" and (t.estimate or 1.0) < bar
        ]
        enough = bench.budget.affords(NOISE_RUNS + 1 + bench.kept_runs)
        if not good or not enough:
            return nothing
        best = min(good, key=lambda trial: (trial.estimate or 1.0, trial.number))
        try:
            words = "measuring settings that other studies found"
            bench.watch(PhaseStarted(RACE, words, NOISE_RUNS))
            bench.ensure_defaults(NOISE_RUNS)
            self._measure(best.effective)
        except BudgetSpent:
            return nothing
        return self._evidence()

    def _left(self, evidence: RaceEvidence) -> int:
        """Number of unused runs of the allowance; repetitions of the search count as used."""
        allowance = self.bench.plan.extra_runs(len(evidence.settings))
        return allowance - sum(len(ratios) - 1 for ratios in evidence.ratios)

    def _measure(self, setting: Setting) -> None:
        bench = self.bench
        trial = next(t for t in self.trials if t.effective == setting and t.has_result)
        bench.run_default_if_due()
        number = sum(e.trial == trial.number for e in bench.history.entries)
        limit_s = bench.limit_s(best_ratio(self.trials))
        bench.evaluator.run(setting, RACE, trial=trial.number, block=number, timeout_s=limit_s)
