"""The search phase: ask, measure, tell, until the strategy, the trials or the budget end."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import Protocol

from autotune.errors import WorkError
from autotune.space import DEFAULT, Setting, Space
from autotune.strategies import Observation, Strategy
from autotune.study.bench import Bench
from autotune.study.events import PhaseStarted, TrialEnded, Watcher, silent
from autotune.study.ledger import DEFAULT_KEY, DEFAULT_PHASE, SEARCH, WARMUP, Entry
from autotune.study.plan import SearchPlan
from runner.types import RunRecord

NOTHING_LEFT = "the strategy has nothing left to try"


@dataclass
class Trial:
    """A setting and what became of it; ``estimate`` is T / T_default, None where it has none.

    ``effective`` is the setting without parameters whose component was not opened.
    """

    number: int
    setting: Setting
    effective: Setting
    state: str = "running"
    estimate: float | None = None
    reason: str = ""
    attrs: dict[str, object] = field(default_factory=dict)
    reused: bool = False
    elsewhere: bool = False
    """Being measured by another process."""

    def observation(self) -> Observation:
        return Observation(self.number, self.setting, self.estimate, self.state, self.attrs)


class TrialBook(Protocol):
    """Where trials are kept."""

    trials: list[Trial]

    def open(self, setting: Setting, attrs: dict[str, object], origin: str) -> Trial: ...

    def close(self, trial: Trial) -> None: ...

    def known(self, setting: Setting) -> float | None:
        """The ratio that an earlier study measured for this setting under the same conditions."""
        ...


class Search:
    """Runs the search phase on a bench.  ``best`` is read while it goes on."""

    def __init__(
        self,
        bench: Bench,
        book: TrialBook,
        strategy: Strategy,
        space: Space,
        plan: SearchPlan,
        watch: Watcher = silent,
    ) -> None:
        self.bench = bench
        self.book = book
        self.strategy = strategy
        self.space = space
        self.plan = plan
        self.watch = watch
        self.ended_by = ""
        self._inactive: set[str] = set()
        self._warm = False

    @property
    def best(self) -> Trial | None:
        """The trial with the smallest ratio so far, the default excluded."""
        done = [t for t in self.book.trials if t.state == "ok" and t.effective != DEFAULT]
        return min(done, key=lambda t: (t.estimate or 1.0, t.number), default=None)

    def run(self) -> None:
        """Measure until an end is reached; ``ended_by`` says which one in words.

        Raises WorkError where the default itself does not run.
        """
        done = [t for t in self.book.trials if t.state != "running"]
        self.strategy.restore([t.observation() for t in done])
        running = [t for t in self.book.trials if t.state == "running"]
        for trial in running:
            self.strategy.add_running(trial.observation())
        open_trials = [t for t in running if not t.elsewhere]
        self.watch(PhaseStarted("search", "searching", self.plan.trials))
        while True:
            if open_trials:
                trial = open_trials.pop(0)
            else:
                if self._budget_spent():
                    return
                proposal = self.strategy.ask()
                if proposal is None:
                    self.ended_by = NOTHING_LEFT
                    return
                trial = self.book.open(proposal.setting, dict(proposal.attrs), "search")
            self._measure(trial)
            self.strategy.tell(trial.observation())

    def start_defaults(self) -> None:
        """Warm up once per process and make sure that enough default runs exist to compare with."""
        if self._warm:
            return
        self._warm = True
        self._default(WARMUP)
        missing = self.plan.first_defaults - len(self.bench.ledger.default_values())
        for _ in range(max(missing, 1)):
            self._default(DEFAULT_PHASE)

    def _default(self, phase: str) -> Entry:
        entry = self.bench.run(DEFAULT, phase)
        if not entry.record.valid:
            raise WorkError(_default_fails(entry.record))
        return entry

    def _budget_spent(self) -> bool:
        plan = self.plan
        if plan.trials is not None and len(self.book.trials) >= plan.trials:
            self.ended_by = f"{plan.trials} trials done"
            return True
        if not self.affords(self.reserve_s):
            self.ended_by = "the time budget is spent, its reserve for the proof kept"
            return True
        return False

    def cost_s(self, runs: int) -> float:
        """Machine seconds that so many runs about as long as the default take."""
        walls = [record.wall_s for record in self.bench.ledger.default_records()]
        return statistics.median(walls) * runs if walls else 0.0

    @property
    def reserve_s(self) -> float:
        """Machine seconds kept back: re-measuring the front and proving one finalist."""
        plan = self.plan
        select = (plan.selected + 1) * plan.select_blocks
        return self.cost_s(select) + self.proof_s(1)

    def proof_s(self, finalists: int) -> float:
        """Machine seconds of the smallest proof of so many finalists."""
        return self.cost_s(self.plan.reserve_blocks * (finalists + 1))

    def affords(self, seconds: float) -> bool:
        """Whether the budget, if there is one, still has so many seconds."""
        budget = self.plan.budget_s
        return budget is None or self.bench.ledger.launched_s + seconds <= budget

    @property
    def limit_s(self) -> float | None:
        """Wall seconds after which a candidate is stopped; None before the default was measured."""
        records = self.bench.ledger.default_records()
        if not records:
            return None
        return (
            self.plan.limit_factor * statistics.median(r.wall_s for r in records)
            + self.plan.limit_slack_s
        )

    def _measure(self, trial: Trial) -> None:
        trial.effective = self.space.canonical(trial.setting.without(*self._inactive))
        known = self._known(trial)
        if known is not None:
            trial.estimate, trial.state, trial.reused = known[0], known[1], True
        else:
            self.start_defaults()
            self._run_until_decided(trial)
        self.book.close(trial)
        best = self.best
        self.watch(
            TrialEnded(
                trial.number,
                trial.setting,
                trial.state,
                trial.estimate,
                best.estimate if best else None,
                best.effective if best else None,
                trial.reused,
            )
        )

    def _known(self, trial: Trial) -> tuple[float | None, str] | None:
        """What is known of the effective setting without running it."""
        if trial.effective == DEFAULT:
            return 1.0, "ok"
        for other in self.book.trials:
            if (
                other is not trial
                and other.state != "running"
                and other.effective == trial.effective
            ):
                return other.estimate, other.state
        ratio = self.book.known(trial.effective)
        return None if ratio is None else (ratio, "ok")

    def _run_until_decided(self, trial: Trial) -> None:
        """One run; more while the setting looks better than the best: a winner must not be luck."""
        ratios: list[float] = []
        while len(ratios) < self.plan.promising_runs:
            self._default_if_due()
            entry = self.bench.run(
                trial.effective,
                SEARCH,
                trial=trial.number,
                block=len(ratios),
                timeout_s=self.limit_s,
            )
            self._learn_inactive(entry.record, trial)
            ratio = self.bench.ledger.ratio(entry)
            if not entry.record.valid or ratio is None:
                trial.state = "censored" if entry.censored and ratio is not None else "failed"
                trial.estimate = ratio if trial.state == "censored" else None
                trial.reason = entry.record.reason
                return
            ratios.append(ratio)
            trial.estimate = statistics.median(ratios)
            best = self.best
            bar = min(best.estimate or 1.0 if best else 1.0, 1 - self.plan.min_gain)
            if trial.estimate >= bar:
                break
        trial.state = "ok"

    def _default_if_due(self) -> None:
        since = 0
        for entry in reversed(self.bench.ledger.entries):
            if entry.key == DEFAULT_KEY and entry.counts:
                break
            since += entry.counts
        if since >= self.plan.default_every:
            self._default(DEFAULT_PHASE)

    def _learn_inactive(self, record: RunRecord, trial: Trial) -> None:
        """A parameter whose component is never opened is never launched again in this study."""
        idle = {n for n, r in record.read_back.items() if r.state == "inactive"}
        if idle:
            self._inactive |= idle
            trial.effective = self.space.canonical(trial.effective.without(*idle))
            trial.attrs["inactive"] = sorted(idle)


def _default_fails(record: RunRecord) -> str:
    tail = record.stderr_tail.strip().splitlines()[-5:]
    shown = "\n".join(f"  | {line}" for line in tail)
    return (
        f"the program does not run with the default setting: {record.state}: {record.reason}.\n"
        "Nothing can be compared with it.  The command was:\n"
        f"  {' '.join(record.command)}\n" + (f"Its last words:\n{shown}" if shown else "")
    ).rstrip()
