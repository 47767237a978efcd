"""Tails: slow launches and means, which the median of a proof does not show.

A setting whose launches are slow more often than the default's, or that takes longer in the mean,
is not recommended: each is an objection (:mod:`autotune.study.objections`).
"""

from __future__ import annotations

import dataclasses
import statistics

from autotune.notes import Note
from autotune.space import Setting
from autotune.stats import (
    SlowLaunches,
    mean_difference,
    slow_launches,
)
from autotune.stats.slow_launches import SLOW_LEAST
from autotune.study.objections import Finding
from autotune.study.pairs import Pairs
from autotune.study.parts import SlowRates
from autotune.study.result import slow_words
from autotune.study.run_history import DEFAULT_KEY, LEAD, SEARCH_KINDS, RunHistory
from autotune.wording import share

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


def doubtful(seen: SlowLaunches, pairs: Pairs) -> bool:
    """Whether more pairs must tell whether the setting costs more in some launches."""
    return seen.slow + seen.default_slow > 1 or mean_in_doubt(pairs)


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
