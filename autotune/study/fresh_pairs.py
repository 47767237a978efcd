"""Fresh pairs: what is measured after a decision, as in daily use, and may contradict it.

A proof runs the default between the runs of the settings, and it stops when the gain looks large.
So its gain is too high, and a setting that leaves the machine slower for the next run may win by
slowing the default. In fresh pairs each run follows a run of its own setting, as in daily use, and
their number is fixed before the first. Where they contradict the proof, nothing is recommended.

Slow launches and means are looked at too, which the median of a proof does not show. A setting
whose launches are slow more often than the default's, or that takes longer in the mean, is not
recommended. :func:`second_look` is what a comparison measures after its decision.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from dataclasses import dataclass

from autotune.measurement.budget import Budget
from autotune.measurement.events import PhaseStarted, Watcher
from autotune.measurement.run_history import DEFAULT_KEY, LEAD, SEARCH_KINDS, RunHistory
from autotune.notes import Note
from autotune.space import Setting
from autotune.stats import (
    Comparison,
    LookPlan,
    SlowLaunches,
    compare,
    known_gain,
    mean_difference,
    scatter,
    slow_launches,
)
from autotune.stats.slow_launches import SLOW_LEAST
from autotune.study.objections import Finding
from autotune.study.proof import Blocks, Confirmation, Pairs, measure_blocks
from autotune.study.search_result import SlowRates, slow_words
from autotune.wording import interval, percent, share

FRESH_BLOCKS = 12
"""Largest number of blocks of the fresh comparison; the number is fixed before its first block."""
FRESH_LEAST = 6
"""Smallest number: fewer have no 95 % interval."""
FRESH_ERROR = 1 / 3
"""Standard error of the fresh gain, as a share of the gain, for which the number is chosen."""
FRESH_RUNS = math.ceil(FRESH_BLOCKS * 3.5)
"""Runs in :data:`FRESH_BLOCKS` blocks: two of each setting, less every second block's lead."""
DOUBT_BLOCKS = 30
"""Number of blocks if the first show hardly a gain: chance alone does that to few real gains."""


def fresh_blocks(pairs: Pairs, gain: float) -> int:
    """Number of fresh blocks that estimate a gain well enough, from the scatter of its proof."""
    logs = [math.log(ratio) for ratio in pairs.ratios if math.isfinite(ratio)]
    if not logs or gain <= -1 or gain == 0:
        return FRESH_BLOCKS
    # The median of n blocks has a standard deviation of about 1.25 * scatter / sqrt(n).
    size = FRESH_ERROR * abs(math.log1p(gain))
    block_count = (1.25 * math.log1p(scatter(logs)) / size) ** 2
    return min(max(math.ceil(block_count), FRESH_LEAST), FRESH_BLOCKS)


def measure_fresh_gain(
    blocks: Blocks, count: int, min_gain: float, budget: Budget, faster: bool = True
) -> Comparison | None:
    """The gain of the blocks' first setting over ``count`` blocks.

    If the budget does not hold them, :data:`FRESH_LEAST` are measured; None if not even these.
    There are :data:`DOUBT_BLOCKS` where the first show hardly a gain. ``faster``: whether the proof
    showed the setting to be faster, or its reference.
    """
    live = [blocks.settings[0]]
    for number in dict.fromkeys((count, min(count, FRESH_LEAST))):
        if measure_blocks(blocks, number, live, budget, reach=True) < number:
            continue
        gain = _compare_first(blocks, number, min_gain)
        if _absent(gain, faster) and not _ruled_out(gain, faster):
            more = measure_blocks(blocks, DOUBT_BLOCKS, live, budget, reach=True)
            return _compare_first(blocks, more, min_gain) if more == DOUBT_BLOCKS else gain
        return gain
    return None


def fresh_findings(
    setting: Setting, proven_gain: float, fresh: Comparison | None, faster: bool = True
) -> list[Finding]:
    """The objection to a proven gain that fresh pairs contradict.

    They do if they show none or less than half of one worth naming, or if they rule one out.
    """
    if fresh is None or not (_absent(fresh, faster) or _ruled_out(fresh, faster)):
        return []
    ends = (known_gain(fresh.lo), known_gain(fresh.hi)) if fresh.interval else None
    words = (
        f"the proof showed {percent(proven_gain)}, but {fresh.n} fresh pairs, in which each run "
        f"follows a run of the same setting, show {percent(fresh.gain)} ({interval(ends)}): a run "
        "of the faster side makes the machine slower for the next run, or the gain is gone"
    )
    data = {
        "setting": setting.to_json(),
        "gain_proof": known_gain(proven_gain),
        "gain": known_gain(fresh.gain),
        "gain_ci95": None if ends is None else list(ends),
        "pairs": fresh.n,
    }
    return [Finding(Note("result.fresh_contradicts", words, data), stops=True)]


def _compare_first(blocks: Blocks, count: int, min_gain: float) -> Comparison:
    """The comparison of the first setting with the reference over the first ``count`` blocks."""
    pairs = blocks.pairs(blocks.settings[0], first=count)
    return compare(
        pairs.reference,
        pairs.candidate,
        min_gain=min_gain,
        censored_candidate=pairs.censored,
        resolution=0.0 if pairs.clock else None,
    )


def _absent(fresh: Comparison, faster: bool) -> bool:
    """Whether the side that won shows less than half of the smallest gain worth naming.

    The half is the middle between no gain and that one: a figure below it speaks for no gain.
    """
    half = fresh.min_gain / 2
    return fresh.gain <= half if faster else fresh.gain >= 1 / (1 + half) - 1


def _ruled_out(fresh: Comparison, faster: bool) -> bool:
    """Whether a gain worth naming of the side that won is ruled out."""
    if not fresh.interval:
        return False
    if faster:
        return fresh.hi < fresh.min_gain
    return fresh.lo > 1 / (1 + fresh.min_gain) - 1


TAIL_BLOCKS = 60
"""Blocks after a proof, the fresh ones included, if some launches may cost more than the median
says.

For a fifth of slow launches against none, 60 blocks show the difference in 87 % of the cases.
"""


def slow_findings(slow: SlowLaunches) -> list[Finding]:
    """The objection to a setting whose slow launches come more often than the default's."""
    if slow.verdict != "more frequent":
        return []
    row = slow_row(slow)
    return [Finding(Note("result.slow_launches", slow_words(row), {**row}), stops=True)]


def slow_row(slow: SlowLaunches) -> SlowRates:
    """The rates of slow launches as JSON."""
    return SlowRates(
        slow=slow.slow,
        launches=slow.launches,
        default_slow=slow.default_slow,
        default_launches=slow.default_launches,
        verdict=slow.verdict,
        alpha=slow.alpha,
        rarer_from=slow.rarer_from,
        more_from=slow.more_from,
        threshold=slow.threshold,
    )


def slow_of(
    history: RunHistory, setting: Setting, *, alpha: float, begin: str = ""
) -> SlowLaunches:
    """Slow launches of a setting and of the default in the interleaved blocks that have both.

    ``begin``: only blocks of phases whose names begin with this text. Launches of the search never
    count: the setting was chosen because it was fast in them. And if slow launches come in spells,
    the default's launches of another hour say nothing. Leads do not count: they follow another
    setting.
    """
    counts, threshold = [0, 0, 0, 0], history.slow_from
    for phase in history.phases:
        parts = phase.split(":")
        if parts[0] in SEARCH_KINDS or parts[-1] == LEAD or not phase.startswith(begin):
            continue
        for block in history.blocks(phase).values():
            one, default = block.get(setting.key), block.get(DEFAULT_KEY)
            if one is None or default is None:
                continue
            ratio, default_ratio = history.ratio(one), history.ratio(default)
            if ratio is None or default_ratio is None:
                continue
            slow, default_slow = ratio > threshold, default_ratio > threshold
            for place, value in enumerate((slow, True, default_slow, True)):
                counts[place] += value
    return slow_launches(*counts, alpha=alpha, threshold=threshold)


def doubtful(slow: SlowLaunches, pairs: Pairs) -> bool:
    """Whether more pairs must tell whether the setting costs more in some launches."""
    return slow.slow + slow.default_slow > 1 or mean_in_doubt(pairs)


def mean_in_doubt(pairs: Pairs) -> bool:
    """Whether a faster setting is no faster in the mean of its pairs."""
    means = mean_difference(pairs.reference, pairs.candidate)
    return means is not None and means.ratio >= 0


def mean_findings(setting: Setting, pairs: Pairs) -> list[Finding]:
    """The objection to a setting that takes longer in the mean of the ``pairs``."""
    means = mean_difference(pairs.reference, pairs.candidate)
    if means is None or not means.slower:
        return []
    words = (
        f"it is faster in most launches and slower in the mean: {share(means.ratio)} more over "
        f"{means.pairs} pairs"
    )
    data = dataclasses.asdict(means) | {"setting": setting.to_json()}
    ratios = [c / d for d, c in zip(pairs.reference, pairs.candidate, strict=True)]
    slow = [ratio for ratio in ratios if ratio > SLOW_LEAST]
    if slow:
        data |= {"slow": len(slow), "slow_times": statistics.fmean(slow)}
        one_in = max(round(means.pairs / len(slow)), 1)
        words += f"; 1 launch in {one_in} takes {data['slow_times']:.2g} times as long"
    return [Finding(Note("result.slower_in_mean", words, data), stops=True)]


@dataclass(frozen=True)
class SecondLook:
    """What follows the decision that one side is faster: fresh pairs, and its mean."""

    fresh: Comparison | None = None
    findings: tuple[Finding, ...] = ()


def second_look(
    blocks: Blocks,
    plan: LookPlan,
    proof: Confirmation,
    budget: Budget,
    watch: Watcher,
    least: float | None = None,
) -> SecondLook:
    """Fresh pairs, and more where the mean is in doubt, if a side was decided to be faster.

    ``least`` is the smallest gain that is worth naming; None: that of the plan. A setting may be
    decided to be slower by less, unless the plan is symmetric.
    """
    second = blocks.settings[0]
    decision = proof.decisions[second]
    comparison = decision.comparison
    if decision.outcome not in ("better", "worse") or plan.margin is not None or proof.cut_short:
        return SecondLook()
    faster = decision.outcome == "better"
    least = plan.min_gain if least is None else least
    if not faster and not plan.symmetric:
        least = 0.0
    fresh_blocks_of, tail = later_blocks(blocks)
    proof_pairs = blocks.pairs(second, first=comparison.n)
    count = fresh_blocks(proof_pairs, comparison.gain)
    words = "measuring fresh pairs: each run follows a run of the same side"
    watch(PhaseStarted("confirm", words, fresh_blocks_of.runs(count, 1)))
    fresh = measure_fresh_gain(fresh_blocks_of, count, least, budget, faster)
    side = second if faster else blocks.reference
    findings = fresh_findings(side, comparison.gain, fresh, faster)
    if findings:
        return SecondLook(fresh, tuple(findings))

    def every() -> Pairs:
        pairs = proof_pairs + fresh_blocks_of.pairs(second) + tail.pairs(second)
        return pairs if faster else pairs.reverse()

    if mean_in_doubt(every()):
        pairs = 0 if fresh is None else fresh.n
        measure_blocks(tail, TAIL_BLOCKS - pairs, [second], budget, reach=True)
    return SecondLook(fresh, tuple(mean_findings(side, every())))


def later_blocks(blocks: Blocks) -> tuple[Blocks, Blocks]:
    """The blocks after a decision: fresh pairs with leads, and pairs for the mean."""
    fresh, tail = (
        Blocks(
            blocks.evaluator,
            f"{blocks.phase}:{name}",
            blocks.settings,
            blocks.seed,
            blocks.limit_s,
            blocks.reference,
            leads=name == "fresh",
            symmetric=blocks.symmetric,
        )
        for name in ("fresh", "tail")
    )
    return fresh, tail
