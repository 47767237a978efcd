"""Selection: from many trials to a few finalists, by a race and the ablation of the leader.

One lucky run must not make a finalist, and a parameter that does nothing must not be recommended.
The proof follows both, on fresh data.

The last part is the race: runs after a setting's first are made where they can change which
settings are proven. The data of a setting are its ratios T / T_default, each against the default
runs around it. ``stats.racing`` says which setting's next run decides most and which settings to
prove.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median

from autotune.space import DEFAULT, Setting
from autotune.stats import finalists, next_run, noise_of
from autotune.stats.effects import Level, level_effects
from autotune.study.ablation import Ablation, AblationResult, Elimination
from autotune.study.budget import BudgetSpent
from autotune.study.events import PhaseStarted
from autotune.study.loop import SearchLoop
from autotune.study.run_history import DEFAULT_KEY, RACE, SEARCH, HistoryEntry, RunHistory
from autotune.study.trial_store import Trial


@dataclass
class Finalists:
    """The settings to be proven, the most promising first.

    ``slim``: those of which every parameter was seen to matter. ``whole``: the setting from which
    the first was taken, if that had more parameters.
    """

    settings: list[Setting] = field(default_factory=list)
    slim: list[Setting] = field(default_factory=list)
    whole: Setting | None = None


NOTHING_SEEN = "no parameter was seen to act before the proof"


class Selection:
    """Chooses the finalists of one round; ``phase`` names its blocks, so that it can be continued.

    ``refuted`` settings had their proof and failed it. ``standing`` is the winner of an earlier
    round: it is proven beside the new finalists, so that they are compared within the same blocks.
    ``ablated`` maps settings to the slim parts that earlier rounds proved.
    """

    def __init__(
        self,
        search: SearchLoop,
        seed: int,
        phase: str,
        refuted: Collection[Setting] = (),
        standing: Setting | None = None,
        ablated: Mapping[Setting, Setting] | None = None,
    ) -> None:
        self.search = search
        self.plan = search.plan
        self.phase = phase
        self.refuted = refuted
        self.standing = standing
        self.ablated = ablated or {}
        self._ablation = Ablation(search, seed)

    def choose(self) -> Finalists:
        """At most ``plan.finalists`` settings that may well be faster than the default."""
        min_gain = self.plan.min_gain
        known = Race(self.search).run()
        hopeful = known.finalists(self.plan.finalists, min_gain)
        hopeful = with_favourite(hopeful, self.search.favourite)
        hopeful = [s for s in hopeful if s not in self.refuted][: self.plan.finalists]
        if all(self.ablated.get(s, s) == self.standing for s in hopeful):
            return Finalists()
        self.search.defaults.start()
        leader = hopeful[0]
        start = self.ablated.get(leader) or self._part(known, leader)
        ablated = AblationResult(start, "" if leader in self.ablated else NOTHING_SEEN)
        if leader not in self.ablated and (start != leader or known.acting(leader, min_gain)):
            ablated = self._ablation.slim(
                start, self.phase, self._ablation.blocks_for(known.noise), self._proof_reserve
            )
        slim = ablated.setting if ablated.setting not in self.refuted else leader
        # A simpler setting with few runs is proven beside the setting that it replaces.
        # A setting that has the slim one as a part says no more than the leader.
        others = [self._part(known, s) for s in hopeful[1:] if not slim.items() <= s.items()]
        whole = [leader] if slim != leader and leader not in self.ablated else []
        settings = [s for s in [slim, *whole, *others] if s not in self.refuted]
        settings = list(dict.fromkeys(settings))[: self.plan.finalists]
        if settings == [self.standing]:
            return Finalists()
        if self.standing is not None and self.standing not in settings:
            settings = [*settings[: self.plan.finalists - 1], self.standing]
        settings = settings[: self._affordable(len(settings))]
        if whole and leader not in settings and start not in known.settings:
            # That the rest does nothing is the model's word alone.  Without a proof beside the
            # setting that was run, this one is proven.
            settings, slim = [leader], leader
        return Finalists(
            settings,
            [s for s in settings if len(s) == 1 or (ablated.complete and s == ablated.setting)],
            leader if slim != leader and slim == ablated.setting else None,
        )

    def _part(self, known: RaceEvidence, setting: Setting) -> Setting:
        """The part of a setting that is proven in its place; the setting itself if all may act."""
        if setting in self.ablated:
            return self.ablated[setting]
        part = known.simplest_like(setting, self.plan.min_gain)
        if part != setting:
            return part
        acting = known.acting(setting, self.plan.min_gain)
        # A parameter of which an acting one is a condition stays: without pml=ucx no UCX_* acts.
        strip = self.search.idle.strip
        idle = tuple(
            name
            for name in known.idle(setting, self.plan.min_gain)
            if acting <= strip(setting.without(name)).keys()
        )
        if not idle:
            return setting
        return Elimination(setting, [self.search.idle.space]).without(idle) or setting

    def _affordable(self, finalists: int) -> int:
        """As many finalists as the budget can prove, at least one."""
        budget = self.search.budget
        while finalists > 1 and not budget.affords(self.plan.proof_runs(finalists)):
            finalists -= 1
        return finalists

    @property
    def _proof_reserve(self) -> int:
        """Number of runs that the ablation must leave.

        They are the smallest proof and half of the reserve above it.
        """
        return (self.plan.proof_runs(1) + self.search.kept_runs) // 2


def with_favourite(hopeful: list[Setting], favourite: Setting | None) -> list[Setting]:
    """The settings that their own runs support, led by the strategy's favourite.

    If no setting is supported by its runs, the strategy's estimate alone adds none.
    """
    if favourite is None or not hopeful:
        return hopeful
    return list(dict.fromkeys([favourite, *hopeful]))


MOST_UNEXPLAINED = 2
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
        chosen = finalists(self._pooled(arms), self.noise, most=most, min_gain=min_gain)
        found = [self._best(arms[i]) for i in chosen]
        seen = any(self.acting(setting, min_gain) for setting in found)
        return found if seen else found[:MOST_UNEXPLAINED]

    def next_setting(self, min_gain: float) -> Setting | None:
        """The setting whose next run decides most; None if none would change the choice."""
        arms = self._arms(min_gain)
        index = next_run(self._pooled(arms), self.noise, min_gain=min_gain)
        return None if index is None else self._best(arms[index])

    def _arms(self, min_gain: float) -> list[list[int]]:
        """Indices of the settings, those together that differ only in what does nothing.

        Settings are pooled only if a part of them is seen to be faster and none of them failed.
        """
        found: dict[object, list[int]] = {}
        for i, setting in enumerate(self.settings):
            levels = frozenset(level for level in setting.items() if level in self.effects)
            pooled = self.acting(setting, min_gain) and math.inf not in self.ratios[i]
            found.setdefault(levels if pooled else i, []).append(i)
        return list(found.values())

    def _pooled(self, arms: list[list[int]]) -> list[list[float]]:
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

    def simplest_like(self, leader: Setting, min_gain: float) -> Setting:
        """The part of ``leader`` with the fewest parameters that looks about as fast.

        If the whole space was measured, there are settings with and without some of the leader's
        parameters. Their times show which of these act, without a further run. This is used only if
        the gain is well above the noise: a part must show half of the gain itself, and the effect
        of the left-out parameters must be resolved.
        """
        known = zip(self.settings, self.ratios, strict=True)
        seen = {setting: _Seen(-math.log(median(r)), len(r)) for setting, r in known}
        seen[DEFAULT] = _Seen(0.0, math.inf)
        gain = seen[leader].gain
        near = []
        for part in self.settings:
            if len(part) >= len(leader) or any(leader.get(k) != v for k, v in part.items()):
                continue
            left_out = {k: v for k, v in leader.items() if k not in part}
            effect, error = self._added(left_out, seen)
            clear = error <= gain / 2 <= seen[part].gain
            if clear and effect < math.log1p(min_gain) + error:
                near.append((len(part), -seen[part].gain, part))
        return min(near, key=lambda item: item[:2])[2] if near else leader

    def _added(
        self, values: Mapping[str, object], seen: Mapping[Setting, _Seen]
    ) -> tuple[float, float]:
        """What some values add to the gain, and the error of this effect.

        The effect is the median over all settings that were measured with and without the values.
        The leading setting was probably lucky; the others correct this.
        """
        pairs = [
            (one, other)
            for setting, one in seen.items()
            if all(setting.get(k) == v for k, v in values.items())
            and (other := seen.get(setting.without(*values))) is not None
            and max(one.gain, other.gain) > -math.inf
        ]
        if not pairs:
            return 0.0, math.inf  # Both failed, so nothing is known.
        effects = [one.gain - other.gain for one, other in pairs]
        spread = sum(1 / one.runs + 1 / other.runs for one, other in pairs)
        return median(effects), self.noise * math.sqrt(spread) / len(pairs)


@dataclass(frozen=True)
class _Seen:
    """Logarithm of T_default / T of one setting (-inf if it failed), and its number of runs."""

    gain: float
    runs: float


def race_evidence(entries: list[HistoryEntry], trials: list[Trial]) -> RaceEvidence:
    """The evidence of the search and the race, up to the last run of either.

    Later runs (of the proof, or of the default when a study is continued) must not change what was
    decided before them, so they are left out.
    """
    number_of = {t.number: t for t in trials if t.measured and t.effective != DEFAULT}
    last = max((i for i, e in enumerate(entries) if e.kind in (SEARCH, RACE)), default=-1)
    seen = RunHistory.of(e for e in entries[: last + 1] if e.counts and _known(e, number_of))
    found: dict[Setting, list[float]] = {t.effective: [] for t in number_of.values()}
    noise: list[float] = []
    for entry in seen.entries:
        if seen.defaults_on(entry.record.place) < 2:
            continue  # The default on another place says nothing here.
        ratio = seen.ratio(entry)
        if entry.key == DEFAULT_KEY and ratio is not None:
            noise.append(ratio)
        elif entry.trial is not None:
            # A run without its own figure counts as slower than any other.
            known = ratio if ratio is not None and entry.record.valid else math.inf
            found[number_of[entry.trial].effective].append(known)
    if len(noise) < 2:
        return RaceEvidence([], [], math.inf)
    for trial in number_of.values():
        if not found[trial.effective]:
            # Another study measured the setting; its figure counts as one run.
            found[trial.effective] = [trial.estimate or math.inf]
    return RaceEvidence(list(found), list(found.values()), noise_of(noise))


def _known(entry: HistoryEntry, trials: dict[int, Trial]) -> bool:
    if entry.key == DEFAULT_KEY:
        return entry.record.valid
    return entry.kind in (SEARCH, RACE) and entry.trial in trials


class Race:
    """The race of one search; only the run history decides, so it can be continued."""

    def __init__(self, search: SearchLoop) -> None:
        self.search = search
        self.evaluator = search.evaluator
        self.plan = search.plan

    def run(self) -> RaceEvidence:
        """Measure until no run would change the choice, or the allowance is used."""
        trials = self.search.trial_store.trials
        known = race_evidence(self.evaluator.history.entries, trials)
        if not known.settings:
            known = self._first_own(trials)
        began = False
        while self._left(known) > 0 and (setting := known.next_setting(self.plan.min_gain)):
            if not self.search.budget.affords(1 + self.search.kept_runs):
                break
            try:
                if not began:
                    self.search.watch(
                        PhaseStarted(RACE, "racing the promising settings", self._left(known))
                    )
                    self.search.defaults.start(NOISE_RUNS)
                    began = True
                self._measure(setting, trials)
            except BudgetSpent:
                break
            known = race_evidence(self.evaluator.history.entries, trials)
        return known

    def _first_own(self, trials: list[Trial]) -> RaceEvidence:
        """Run the best setting here, beside the default, if all settings are from other studies.

        Else there would be no evidence of this study's own.
        """
        nothing = RaceEvidence([], [], math.inf)
        bar = 1 - self.plan.min_gain
        good = [t for t in trials if t.reused and t.state == "ok" and (t.estimate or 1.0) < bar]
        enough = self.search.budget.affords(NOISE_RUNS + 1 + self.search.kept_runs)
        if not good or not enough:
            return nothing
        best = min(good, key=lambda trial: (trial.estimate or 1.0, trial.number))
        try:
            self.search.watch(
                PhaseStarted(RACE, "measuring settings that other studies found", NOISE_RUNS)
            )
            self.search.defaults.start(NOISE_RUNS)
            self._measure(best.effective, trials)
        except BudgetSpent:
            return nothing
        return race_evidence(self.evaluator.history.entries, trials)

    def _left(self, known: RaceEvidence) -> int:
        """Number of unused runs of the allowance; repetitions of the search count as used."""
        allowed = self.plan.extra_runs(len(known.settings))
        return allowed - sum(len(ratios) - 1 for ratios in known.ratios)

    def _measure(self, setting: Setting, trials: list[Trial]) -> None:
        trial = next(t for t in trials if t.effective == setting and t.measured)
        self.search.defaults.run_if_due()
        number = sum(e.trial == trial.number for e in self.evaluator.history.entries)
        self.evaluator.run(
            setting, RACE, trial=trial.number, block=number, timeout_s=self.search.limit_s
        )
