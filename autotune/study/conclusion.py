"""Conclusion of a study: its :class:`~autotune.study.result.Result` from the runs and the proof.

The last part has the warnings: what a reader of a result should know besides the figures, in plain
words.
"""

from __future__ import annotations

import statistics
from collections import Counter

from autotune.notes import Note
from autotune.space import DEFAULT, Setting
from autotune.stats import estimate, known_gain
from autotune.strategies import INACTIVE, UNUSED
from autotune.study.confirmation import Confirmation
from autotune.study.disturbance import carry_over_notes, position_note, search_note, spells_note
from autotune.study.objections import remarks
from autotune.study.parts import BestSeen, Rejections, RoundOutcome
from autotune.study.recommendation import Recommendation, StudyOutcome, disturbed
from autotune.study.result import Finalist, Result, Status
from autotune.study.run_history import RunHistory
from autotune.study.tails import slow_row
from autotune.study.trial_store import Trial
from autotune.study.tried_layouts import unseen_threads
from autotune.wording import LOOKS_BETTER


def count_runs(result: Result, history: RunHistory) -> None:
    """Fill in what is counted from the runs of the whole study, including earlier sessions."""
    values = history.default_values()
    result.search_runs = history.search_runs
    result.confirmation_runs = history.confirmation_runs
    result.runs_rejected = history.rejected
    result.rejections = rejection_rows(history)
    result.default = {
        "median_s": statistics.median(values) if values else None,
        "n": len(values),
    }


def best_seen(history: RunHistory, setting: Setting | None) -> BestSeen | None:
    """The best setting with the median of all its valid runs, significant or not."""
    if setting is None or setting == DEFAULT:
        return None
    entries = [e for e in history.entries if e.key == setting.key and e.timed]
    values = [e.record.value_s for e in entries if e.record.valid]
    if not values:
        return None
    return {
        "setting": setting.to_json(),
        "median_s": statistics.median(values),
        "n": len(values),
    }


NOISY_SPREAD = 0.25
"""Relative spread of the default from which noise is given as the reason of an open question."""


def judge_status(answer: StudyOutcome, history: RunHistory, guarded: bool = True) -> Status:
    """The status that the confirmation gives; without finalists nothing is faster than the default.

    Without the guard it proves nothing: other work may have slowed either side.
    """
    if not guarded:
        return "unguarded"
    proof = answer.proof
    if answer.chosen is not None:
        return "recommended"
    if answer.vetoed:
        return "contradicted"
    if proof is None and answer.budget_ended:
        return "inconclusive"
    if proof is None or not (proof.open or proof.winners):
        return "keep_default"
    spread = estimate(history.default_values()).spread
    return "too_noisy" if spread is not None and spread > NOISY_SPREAD else "inconclusive"


def finalist_rows(answer: StudyOutcome) -> list[Finalist]:
    """The finalists ordered by gain, with open ends as None."""
    if answer.proof is None:
        return []
    decisions = dict(answer.proof.decisions)
    if answer.recommendation is not None:
        decisions.setdefault(answer.recommendation.setting, answer.recommendation.decision)
    rows = []
    for setting, decision in decisions.items():
        seen = decision.comparison
        ends = (known_gain(seen.lo), known_gain(seen.hi))
        rows.append(
            Finalist(
                setting,
                decision.outcome,
                known_gain(seen.gain),
                ends if seen.interval else (None, None),
                None if seen.interval else ends,
                seen.n,
                decision.why,
            )
        )
    return sorted(rows, key=lambda row: -(row.gain if row.gain is not None else -1))


def name_recommendation(result: Result, made: Recommendation) -> None:
    """Fill in what is known of the recommended setting."""
    proof, fresh = made.decision.comparison, made.fresh
    gains = proof if fresh is None else fresh
    result.recommended = made.setting
    result.gain = known_gain(gains.gain)
    result.gain_ci = (known_gain(gains.lo), known_gain(gains.hi)) if gains.interval else None
    result.gain_pairs = 0 if fresh is None else fresh.n
    result.gain_proof = {
        "gain": known_gain(proof.gain),
        "ci95": (known_gain(proof.lo), known_gain(proof.hi)),
        "pairs": proof.n,
    }
    result.significant = proof.significant
    result.round = made.round.number
    result.pruning = made.pruning.row
    result.slow_launches = slow_row(made.slow)


def contradictions(answer: StudyOutcome) -> list[Note]:
    """The objections to proven settings; the data of each has its setting."""
    return [
        Note(
            note.code,
            f"{made.setting.key} is faster, but not recommended: {note.words}",
            {**note.data, "setting": made.setting.to_json()},
        )
        for made in answer.vetoed
        for note in made.objections
    ]


def round_rows(answer: StudyOutcome, guarded: bool = True) -> list[RoundOutcome]:
    """Every round of the study: its share of alpha and its outcome."""
    won = "proven" if guarded else LOOKS_BETTER
    return [
        RoundOutcome(
            round=made.number,
            alpha=made.plan.alpha,
            trials=made.trials,
            finalists=len(made.settings),
            outcome=won if proof.winners else "open" if proof.open else "nothing better",
        )
        for made, proof in answer.proofs
    ]


REJECTED_SHARE = 0.2
_MANY = 4
"""From so many on, unused parameters of one component are counted, not listed."""


def study_warnings(history: RunHistory, trials: list[Trial], answer: StudyOutcome) -> list[Note]:
    """A few warnings, the most important first."""
    proof = answer.proof
    notes = _default_warnings(history)
    for made in (answer.recommendation, *answer.vetoed):
        if made is not None:
            notes += [_on_setting(made.setting, note) for note in remarks(made.findings)]
    if proof is not None:
        for setting, decision in proof.decisions.items():
            notes += [_on_setting(setting, note) for note in decision.comparison.warnings]
        notes += proof_warnings(proof)
        if proof.cut_short:
            words = "the budget was spent before the last test of the confirmation"
            notes.append(Note("budget.spent", words))
    carried = search_note(history)
    notes += [] if carried is None else [carried]
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
    """A warning if ranks share cores; a quota of a control group counts as so many cores."""
    if ranks <= cores:
        return []
    have = "1 core" if cores == 1 else f"{cores} cores"
    words = f"{ranks} ranks take turns on {have}: waiting for a turn is measured too, and a setting"
    words += " that gains here may not gain with a core for each rank"
    return [Note("ranks.shared_cores", words, {"ranks": ranks, "cores": cores})]


def proof_warnings(proof: Confirmation) -> list[Note]:
    """Warnings on the machine in a proof: drift, disturbances, failures, and rejections."""
    notes = []
    if proof.repeated:
        notes.append(
            Note(
                "machine.drift",
                f"the speed of the machine changed: {proof.repeated} blocks were measured a "
                "second time",
                {"repeated": proof.repeated},
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
    for setting in disturbed(proof):
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
    if not any(failed for failed, _ in counts.values()):
        return []
    each = [f"{key} in {failed} of {of}" for key, (failed, of) in counts.items() if of]
    data = {"settings": [{"setting": k, "failed": f, "runs": n} for k, (f, n) in counts.items()]}
    return [Note("runs.failed", f"launches failed: {', '.join(each)}", data)]


def rejection_rows(history: RunHistory) -> list[Rejections]:
    """The settings with rejected runs; the most rejections first."""
    counts = history.rejections()
    rows = [
        Rejections(setting=key, runs=runs, rejected=rejected)
        for key, (rejected, runs) in counts.items()
        if rejected
    ]
    return sorted(rows, key=lambda row: (-row["rejected"], row["setting"]))


def _failures(trials: list[Trial]) -> list[Note]:
    failed = [t for t in trials if t.state == "failed"]
    if not failed:
        return []
    reason, count = Counter(t.reason for t in failed).most_common(1)[0]
    words = f"{len(failed)} settings failed; most frequent reason ({count}): {reason}"
    data = {"settings": len(failed), "reason": reason, "count": count}
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
    unused, idle = _names(trials, UNUSED), _names(trials, INACTIVE)
    notes = []
    if unused:
        words = f"not used by this program or its transport, so not tuned: {_grouped(unused)}"
        notes.append(Note("parameters.unused", words, {"parameters": sorted(unused)}))
    if names := sorted(idle - unused):
        words = (
            "had no effect, so not tried again with the same placement, resources and "
            f"components: {', '.join(names)}"
        )
        notes.append(Note("parameters.no_effect", words, {"parameters": names}))
    return notes


def _grouped(names: set[str]) -> str:
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
    found = [trial.attrs.get(attribute) for trial in trials]
    return {str(name) for names in found if isinstance(names, list) for name in names}
