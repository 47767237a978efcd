"""Warnings: what a reader of a result should know besides the figures, in plain words.

Disturbances are what a run owes to its place, or to the runs before it. A comparison of blocks is
right in spite of them, or its limit is known; each is said where it shows, because it tells how to
measure better (docs/explanation/statistics.md).
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise

from autotune.measurement.run_history import DEFAULT_KEY, SEARCH, HistoryEntry, RunHistory
from autotune.notes import Note
from autotune.space import Setting
from autotune.stats import estimate
from autotune.stats.ranks import neighbours_z, rank_sum_z
from autotune.strategies import INACTIVE, UNUSED, equal_layouts
from autotune.study.objections import remarks
from autotune.study.procedure import StudyOutcome
from autotune.study.proof import Blocks, Confirmation
from autotune.study.recommendation import disturbing_settings
from autotune.study.search_result import Rejections
from autotune.study.trial_store import Trial
from autotune.wording import share

REJECTED_SHARE = 0.2
_MANY = 4
"""Smallest number of unused parameters of one component that is printed in their place."""


def study_warnings(history: RunHistory, trials: list[Trial], answer: StudyOutcome) -> list[Note]:
    """A few warnings, the most important first."""
    proof = answer.proof
    notes = _default_warnings(history)
    for recommendation in (answer.recommendation, *answer.with_objections):
        if recommendation is not None:
            notes += [
                _on_setting(recommendation.setting, note)
                for note in remarks(recommendation.findings)
            ]
    if proof is not None:
        for setting, decision in proof.decisions.items():
            notes += [_on_setting(setting, note) for note in decision.comparison.warnings]
        notes += proof_warnings(proof)
        if proof.cut_short:
            words = "the budget was spent before the last test of the confirmation"
            notes.append(Note("budget.spent", words))
    carry_over = search_note(history)
    notes += [] if carry_over is None else [carry_over]
    notes += _failures(trials) + _rejections(history) + _inactive(trials)
    notes += unseen_threads(history)
    return list(dict.fromkeys(notes))


def _on_setting(setting: Setting, note: Note) -> Note:
    """The note, said of a setting."""
    words = f"{setting.key}: {note.words}"
    return Note(note.code, words, {"setting": setting.to_json(), **note.data})


def _default_warnings(history: RunHistory) -> list[Note]:
    """Warnings on the times of the default."""
    records = history.default_records()
    if not records:
        return []
    walls = [record.wall_s for record in records]
    return list(estimate([record.value_s for record in records], walls=walls).warnings)


def sharing_warnings(ranks: int, cores: int) -> list[Note]:
    """A warning if ranks share cores; a control group's quota of n CPUs counts as n cores."""
    if ranks <= cores:
        return []
    have = "1 core" if cores == 1 else f"{cores} cores"
    words = f"{ranks} ranks take turns on {have}: waiting for a turn is measured too, and a setting"
    words += " that gains here may not gain with a core for each rank"
    return [Note("ranks.shared_cores", words, {"ranks": ranks, "cores": cores})]


def proof_warnings(proof: Confirmation) -> list[Note]:
    """Warnings on the machine in a proof: drift, disturbances, failures, and rejections."""
    notes = []
    if proof.repeats:
        notes.append(
            Note(
                "machine.drift",
                f"the speed of the machine changed: {proof.repeats} blocks were measured a "
                "second time",
                {"repeated": proof.repeats},
            )
        )
    if proof.unsteady:
        notes.append(
            Note(
                "machine.unsteady",
                f"the speed of the machine changed all the time ({proof.unsteady} blocks "
                "differ from their median); only runs of the same block were compared",
                {"blocks": proof.unsteady},
            )
        )
    for setting in proof.settings:
        both = position_note(proof.blocks, setting), spells_note(proof.blocks, setting)
        notes += [note for note in both if note is not None]
    notes += _failed_launches(proof)
    keys = [proof.blocks.reference.key, *(setting.key for setting in proof.settings)]
    notes += carry_over_notes(proof.blocks.evaluator.history, keys)
    for setting in disturbing_settings(proof):
        notes.append(
            Note(
                "setting.rejected_often",
                f"{setting.key} is not recommended: its runs are rejected for foreign load "
                "more often than those of the reference, so its valid runs are a biased sample",
                {"setting": setting.to_json()},
            )
        )
    return notes


def _failed_launches(proof: Confirmation) -> list[Note]:
    """How often the reference and the settings of a proof failed, if one of them did."""
    sides = [proof.blocks.reference, *proof.settings]
    counts = {side.key: proof.blocks.failures(side) for side in sides}
    if not any(failures for failures, _ in counts.values()):
        return []
    each = [f"{key} in {failures} of {of}" for key, (failures, of) in counts.items() if of]
    data = {"settings": [{"setting": k, "failed": f, "runs": n} for k, (f, n) in counts.items()]}
    return [Note("runs.failed", f"launches failed: {', '.join(each)}", data)]


def rejection_rows(history: RunHistory) -> list[Rejections]:
    """The settings with rejected runs; the most rejections first."""
    counts = history.rejections()
    rows = [
        Rejections(setting=key, runs=runs, rejected=rejections)
        for key, (rejections, runs) in counts.items()
        if rejections
    ]
    return sorted(rows, key=lambda row: (-row["rejected"], row["setting"]))


def _failures(trials: list[Trial]) -> list[Note]:
    failures = [t for t in trials if t.state == "failed"]
    if not failures:
        return []
    reason, count = Counter(t.reason for t in failures).most_common(1)[0]
    words = f"{len(failures)} settings failed; most frequent reason ({count}): {reason}"
    data = {"settings": len(failures), "reason": reason, "count": count}
    return [Note("settings.failed", words, data)]


def _rejections(history: RunHistory) -> list[Note]:
    if not history.rejected:
        return []
    share = history.rejected / len(history.entries)
    if share < REJECTED_SHARE:
        return []
    words = f"{share * 100:.0f} % of all runs were rejected because other processes were busy"
    data = {"rejected": history.rejected, "runs": len(history.entries)}
    return [Note("runs.rejected", words, data)]


def _inactive(trials: list[Trial]) -> list[Note]:
    unused_names, idle = _names(trials, UNUSED), _names(trials, INACTIVE)
    notes = []
    if unused_names:
        words = f"not used by this program or its transport, so not tuned: {_group(unused_names)}"
        notes.append(Note("parameters.unused", words, {"parameters": sorted(unused_names)}))
    if names := sorted(idle - unused_names):
        words = (
            "had no effect, so not tried again with the same placement, resources and "
            f"components: {', '.join(names)}"
        )
        notes.append(Note("parameters.no_effect", words, {"parameters": names}))
    equal = [e for t in trials for e in equal_layouts(t.attrs)]
    if count := sum(len(group) - 1 for e in equal for group in e.groups):
        words = (
            "placements that put every rank on the same CPUs as a simpler one, so not tried "
            f"apart from it: {count}"
        )
        parameters = sorted({name for e in equal for name in e.names})
        data = {"placements": count, "parameters": parameters}
        notes.append(Note("placements.equal", words, data))
    return notes


def _group(names: set[str]) -> str:
    """Names in order; those of one component as one, with their number: coll_tuned_* (18)."""
    groups: dict[str, list[str]] = {}
    for name in sorted(names):
        groups.setdefault("_".join(name.split("_")[:2]), []).append(name)
    return ", ".join(
        ", ".join(group) if len(group) < _MANY else f"{start}_* ({len(group)})"
        for start, group in groups.items()
    )


def _names(trials: list[Trial], attribute: str) -> set[str]:
    """Names of the parameters that the trials have under an attribute."""
    lists = [trial.attrs.get(attribute) for trial in trials]
    return {str(name) for names in lists if isinstance(names, list) for name in names}


def unseen_threads(history: RunHistory) -> list[Note]:
    """The warning that no run with several threads was seen to have them; empty if one was."""
    read_backs = [entry.record.read_back.get("threads") for entry in history.entries]
    states = {back.state for back in read_backs if back is not None}
    if states != {"not observable"}:
        return []
    words = (
        "no OpenMP run-time reported its threads in any run: without OpenMP the program leaves the "
        "cores of a layout with threads idle"
    )
    return [Note("threads.not_seen", words)]


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
    delay = math.expm1((statistics.median(second) - statistics.median(first)) / 2)
    if abs(delay) < LEAST:
        return None
    words = (
        f"the second run of a pair takes {share(abs(delay))} "
        f"{'longer' if delay > 0 else 'less'} than the first, whichever setting it has: gains "
        "below that are hard to see. A pause or a longer run helps"
    )
    return Note("runs.position", words, {"setting": setting.to_json(), "longer": delay})


def spells_note(blocks: Blocks, setting: Setting) -> Note | None:
    """The note that the ratios of neighbouring blocks are alike: the setting has spells of its own.

    Spells of the machine do not count: they meet both runs of a block.
    """
    logs = [log for log, _ in _logs(blocks, setting)]
    if len(logs) < SPELL_BLOCKS or (z := neighbours_z(logs)) < PROBABLE:
        return None
    words = (
        f"{setting.key} or the reference has fast and slow spells that last over several blocks, "
        "so the blocks are not independent and the interval is too narrow: measure again at "
        "another time (--remeasure)"
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
