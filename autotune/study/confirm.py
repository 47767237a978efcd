"""The proof: finalists against the default on fresh interleaved blocks, looked at as planned."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from autotune.space import Setting
from autotune.stats import Decision, Plan, settle
from autotune.study.bench import Bench
from autotune.study.blocks import Blocks
from autotune.study.events import PhaseStarted, Watcher, silent
from autotune.study.ledger import CONFIRM


@dataclass
class Confirmation:
    """Decisions per finalist, in the order given; ``cut_short`` where a budget ended the looks."""

    blocks: Blocks
    settings: list[Setting]
    decisions: dict[Setting, Decision] = field(default_factory=dict)
    cut_short: bool = False

    @property
    def winners(self) -> list[Setting]:
        """Proven finalists, the greatest gain first."""
        won = [s for s in self.settings if self.decisions[s].outcome == "better"]
        return sorted(won, key=lambda s: -self.decisions[s].comparison.gain)

    @property
    def open(self) -> list[Setting]:
        """Finalists about which nothing is proven either way."""
        outcomes = ("continue", "undecided")
        return [s for s in self.settings if self.decisions[s].outcome in outcomes]


def confirm(
    bench: Bench,
    settings: Sequence[Setting],
    *,
    plan: Plan,
    seed: int,
    round_name: str,
    limit_s: float | None,
    budget_s: float | None = None,
    watch: Watcher = silent,
) -> Confirmation:
    """Run blocks until every finalist is decided, the last look is past, or ``budget_s`` is spent.

    A decided finalist is not run again; the others go on against the default.  Blocks that the
    ledger already holds are not measured again.
    """
    blocks = Blocks(bench, f"{CONFIRM}:{round_name}", settings, seed, limit_s)
    return confirm_blocks(blocks, plan, budget_s, watch)


def confirm_blocks(
    blocks: Blocks, plan: Plan, budget_s: float | None = None, watch: Watcher = silent
) -> Confirmation:
    """As :func:`confirm`, for the settings of ``blocks`` against their reference."""
    result = Confirmation(blocks, list(blocks.settings))
    ledger = blocks.bench.ledger
    began = ledger.launched_s
    live = list(blocks.settings)
    most = plan.looks[-1] * (len(live) + 1)
    watch(PhaseStarted("confirm", f"proving against {blocks.reference.key}", most))
    for look in plan.looks:
        done = 0
        for number in range(look):
            if budget_s is not None and ledger.launched_s - began >= budget_s:
                result.cut_short = True
                break
            blocks.ensure_block(number, live)
            done += 1
        for setting in live:
            result.decisions[setting] = decide(plan, blocks, setting, done)
        _settle(result)
        live = [s for s in live if not result.decisions[s].stop]
        if not live or result.cut_short:
            break
    return result


def _settle(result: Confirmation) -> None:
    """Stop finalists that trail a winner: more blocks could not make them the answer."""
    settled = settle([result.decisions[s] for s in result.settings])
    result.decisions = dict(zip(result.settings, settled, strict=True))


def decide(plan: Plan, blocks: Blocks, setting: Setting, count: int) -> Decision:
    """What the first ``count`` blocks say of one setting against their reference."""
    pairs = blocks.pairs(setting, first=count)
    return plan.decide(
        pairs.reference,
        pairs.candidate,
        censored_candidate=pairs.censored,
        # Wall time is a clock; a program's own figure may be rounded, which is detected.
        resolution=0.0 if pairs.clock else None,
    )


def finite(value: float) -> float | None:
    """A number for JSON: None where the interval has no end on that side."""
    return value if math.isfinite(value) and value > -1 else None
