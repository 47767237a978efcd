"""Disturbances: what a run owes to its place, or to the runs before it.

A comparison of blocks is right in spite of them, or its limit is known; each is said where it
shows, because it tells how to measure better (docs/explanation/statistics.md).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator
from itertools import pairwise

from autotune.notes import Note
from autotune.space import Setting
from autotune.stats.ranks import neighbours_z, rank_sum_z
from autotune.study.confirmation import Blocks
from autotune.study.run_history import DEFAULT_KEY, SEARCH, HistoryEntry, RunHistory
from autotune.wording import share

CERTAIN = 3.09
"""Normal deviate of a one-sided error probability of 0.1 %."""
PROBABLE = 2.58
"""That of 0.5 %, for spells, of which few blocks show little."""
FEWEST = 6
"""Smallest number of runs, or of blocks, on each side of a difference that is said."""
SPELL_BLOCKS = 12
"""Smallest number of blocks in which spells of a setting can be seen."""
LEAST = 0.01
"""Smallest difference, as a share of the time, that is worth saying."""


def carry_over_notes(history: RunHistory, keys: Iterable[str]) -> Iterator[Note]:
    """Which settings run longer behind a run of another setting than behind one of their own."""
    logs: dict[str, _Sides] = {key: ([], []) for key in keys}
    for before, entry, log in _followers(history):
        if entry.key in logs:
            logs[entry.key][before.key != entry.key].append(log)
    for key, sides in logs.items():
        who = "the default" if key == DEFAULT_KEY else key
        behind = "a run of another setting than after one of their own"
        note = _carry_over(key, f"runs of {who}", behind, sides)
        if note is not None:
            yield note


def search_note(history: RunHistory) -> Note | None:
    """Whether the search's runs take longer behind a run of a setting than behind the default.

    Most settings ran once, so all are taken together: which of them followed the default is a
    matter of the order.
    """
    sides: _Sides = ([], [])
    for before, entry, log in _followers(history):
        if entry.kind == SEARCH and entry.key != DEFAULT_KEY:
            sides[before.key != DEFAULT_KEY].append(log)
    behind = "a run of a setting than after the default"
    return _carry_over("", "runs of the search", behind, sides)


_Sides = tuple[list[float], list[float]]
"""Logarithms of ratios behind a run that cannot disturb, and behind one that may."""


def _followers(history: RunHistory) -> Iterator[tuple[HistoryEntry, HistoryEntry, float]]:
    """The run before, the run, and the logarithm of its ratio to the default, for valid runs."""
    for before, entry in pairwise(history.entries):
        if entry.counts and entry.record.valid and before.record.place == entry.record.place:
            ratio = history.ratio(entry)
            if ratio:
                yield before, entry, math.log(ratio)


def _carry_over(key: str, who: str, behind: str, sides: _Sides) -> Note | None:
    clean, other = sides
    if min(len(clean), len(other)) < FEWEST or abs(rank_sum_z(clean, other)) < CERTAIN:
        return None
    longer = math.expm1(statistics.median(other) - statistics.median(clean))
    if abs(longer) < LEAST:
        return None
    words = (
        f"{who} take {share(abs(longer))} {'longer' if longer > 0 else 'less'} right after "
        f"{behind}: runs disturb the next one (heat, memory, page cache, a helper that stays)"
    )
    data = {"setting": key, "longer": longer, "after_own": len(clean), "after_other": len(other)}
    return Note("runs.carry_over", words, data)


def position_note(blocks: Blocks, setting: Setting) -> Note | None:
    """The note that the second run of a pair takes longer or less than the first, whichever it is.

    Such an effect favours no setting, because the order is random, but it hides gains.
    """
    first: list[float] = []
    second: list[float] = []
    for log, behind in _logs(blocks, setting):
        (second if behind else first).append(log)
    if min(len(first), len(second)) < FEWEST or abs(rank_sum_z(first, second)) < CERTAIN:
        return None
    later = math.expm1((statistics.median(second) - statistics.median(first)) / 2)
    if abs(later) < LEAST:
        return None
    words = (
        f"the second run of a pair takes {share(abs(later))} "
        f"{'longer' if later > 0 else 'less'} than the first, whichever setting it has: gains "
        "below that are hard to see. A pause or a longer run helps"
    )
    return Note("runs.position", words, {"setting": setting.to_json(), "longer": later})


def spells_note(blocks: Blocks, setting: Setting) -> Note | None:
    """The note that the ratios of neighbouring blocks are alike: the setting has spells of its own.

    Spells of the machine do not count: they meet both runs of a block.
    """
    logs = [log for log, _ in _logs(blocks, setting)]
    if len(logs) < SPELL_BLOCKS or (z := neighbours_z(logs)) < PROBABLE:
        return None
    words = (
        f"{setting.key} or the reference has fast and slow spells of its own that last over "
        "several blocks, so the blocks are not independent and the interval is too narrow: "
        "measure again at another time (--remeasure)"
    )
    return Note("runs.spells", words, {"setting": setting.to_json(), "z": round(z, 2)})


def _logs(blocks: Blocks, setting: Setting) -> Iterator[tuple[float, bool]]:
    """log(T / T_reference) of each block in order, and whether the setting ran after it."""
    for number in sorted(blocks.evaluator.history.blocks(blocks.phase)):
        block = blocks.block(number)
        one, reference = block.get(setting.key), block.get(blocks.reference.key)
        if one is None or reference is None or not (one.record.valid and reference.record.valid):
            continue
        log = math.log(one.record.value_s / reference.record.value_s)
        yield log, one.position > reference.position
