"""Fresh pairs: a gain that was shown, measured once more as in daily use.

A proof runs the default between the runs of the settings, and it stops when the gain looks large.
So its gain is too high, and a setting that leaves the machine slower for the next run may win by
slowing the default. In fresh pairs each run follows a run of its own setting, as in daily use, and
their number is fixed before the first. Where they contradict the proof, nothing is recommended.
"""

from __future__ import annotations

import math

from autotune.notes import Note
from autotune.space import Setting
from autotune.stats import Comparison, compare, known_gain, scatter
from autotune.study.budget import Budget
from autotune.study.confirmation import Blocks, measure_blocks
from autotune.study.objections import Finding
from autotune.study.pairs import Pairs
from autotune.wording import interval, percent

FRESH_BLOCKS = 12
"""Largest number of blocks of the fresh comparison; the number is fixed before its first block."""
FRESH_LEAST = 6
"""Smallest number: fewer have no 95 % interval."""
FRESH_ERROR = 1 / 3
"""Standard error of the fresh gain, as a share of the gain, for which the number is chosen."""
FRESH_RUNS = math.ceil(FRESH_BLOCKS * 3.5)
"""Runs of so many blocks: two of each setting, less the lead of every second block."""
DOUBT_BLOCKS = 30
"""Number of blocks if the first show no gain: chance alone does that to few real gains."""


def fresh_blocks(pairs: Pairs, gain: float) -> int:
    """Number of fresh blocks that estimate a gain well enough, from the scatter of its proof."""
    logs = [math.log(ratio) for ratio in pairs.ratios if math.isfinite(ratio)]
    if not logs or gain <= -1 or gain == 0:
        return FRESH_BLOCKS
    # The median of n blocks has a standard deviation of about 1.25 * scatter / sqrt(n).
    size = FRESH_ERROR * abs(math.log1p(gain))
    needed = (1.25 * math.log1p(scatter(logs)) / size) ** 2
    return min(max(math.ceil(needed), FRESH_LEAST), FRESH_BLOCKS)


def look_again(
    blocks: Blocks, count: int, min_gain: float, budget: Budget, faster: bool = True
) -> Comparison | None:
    """The gain of the blocks' first setting over ``count`` blocks.

    If the budget does not hold them, :data:`FRESH_LEAST` are measured; None if not even these.
    There are :data:`DOUBT_BLOCKS` where the first show no gain. ``faster``: whether the proof
    showed the setting to be faster, or its reference.
    """
    live = [blocks.settings[0]]
    for number in dict.fromkeys((count, min(count, FRESH_LEAST))):
        if measure_blocks(blocks, number, live, budget, reach=True) < number:
            continue
        gain = _compared(blocks, number, min_gain)
        if _absent(gain, faster) and not _ruled_out(gain, faster):
            more = measure_blocks(blocks, DOUBT_BLOCKS, live, budget, reach=True)
            return _compared(blocks, more, min_gain) if more == DOUBT_BLOCKS else gain
        return gain
    return None


def fresh_findings(
    setting: Setting, proven_gain: float, fresh: Comparison | None, faster: bool = True
) -> list[Finding]:
    """The objection to a proven gain that fresh pairs contradict.

    They do if they show no gain, or if they rule out one worth naming.
    """
    if fresh is None or not (_absent(fresh, faster) or _ruled_out(fresh, faster)):
        return []
    ends = (known_gain(fresh.lo), known_gain(fresh.hi)) if fresh.interval else None
    words = (
        f"the proof showed {percent(proven_gain)}, and {fresh.n} fresh pairs, in which each run "
        f"follows a run of its own setting, show {percent(fresh.gain)} ({interval(ends)}): a run "
        "of the faster side leaves the machine slower for the next one, or the gain has passed"
    )
    data = {
        "setting": setting.to_json(),
        "gain_proof": known_gain(proven_gain),
        "gain": known_gain(fresh.gain),
        "gain_ci95": None if ends is None else list(ends),
        "pairs": fresh.n,
    }
    return [Finding(Note("result.fresh_contradicts", words, data), stops=True)]


def _compared(blocks: Blocks, count: int, min_gain: float) -> Comparison:
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
    """Whether the side that won shows no gain at all."""
    return fresh.gain <= 0 if faster else fresh.gain >= 0


def _ruled_out(fresh: Comparison, faster: bool) -> bool:
    """Whether a gain worth naming of the side that won is ruled out."""
    if not fresh.interval:
        return False
    if faster:
        return fresh.hi < fresh.min_gain
    return fresh.lo > 1 / (1 + fresh.min_gain) - 1
