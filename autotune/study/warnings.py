"""What a reader of a result should know besides the figures, in plain words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from autotune.stats import SLOW, estimate
from autotune.strategies import INACTIVE, UNUSED
from autotune.study.confirm import Confirmation
from autotune.study.ledger import Ledger
from autotune.study.recommendation import Answer, disturbed
from autotune.study.trial import Trial

REJECTED_SHARE = 0.2


def study_warnings(ledger: Ledger, trials: list[Trial], answer: Answer) -> list[str]:
    """At most a handful of sentences, the most important first."""
    proof = answer.proof
    words = [
        f"{made.setting.key} is faster, but not recommended: {slow_words(asdict(made.slow))}"
        for made in answer.vetoed
    ]
    words += list(estimate(ledger.default_values()).warnings) if ledger.default_values() else []
    if proof is not None:
        for setting, decision in proof.decisions.items():
            words += [f"{setting.key}: {said}" for said in decision.comparison.warnings]
        words += proof_warnings(proof)
        if proof.cut_short:
            words.append("the budget was spent before the last test of the confirmation")
    words += _failures(trials) + _rejections(ledger) + _inactive(trials)
    return list(dict.fromkeys(words))


def proof_warnings(proof: Confirmation) -> list[str]:
    """What the machine did to a proof: drift, and rejections that depend on the setting."""
    words = []
    if proof.repeated:
        words.append(
            f"the speed of the machine changed: {proof.repeated} blocks were measured a second time"
        )
    if proof.unsteady:
        words.append(
            f"the speed of the machine changed all the time ({proof.unsteady} blocks "
            "differ from their median); only runs of the same block were compared"
        )
    for setting in disturbed(proof):
        words.append(
            f"{setting.key} is not recommended: its runs are rejected for foreign load "
            "more often than those of the reference, so its valid runs are a biased sample"
        )
    return words


def slow_words(seen: Mapping[str, Any]) -> str:
    """The rates of slow launches (:class:`SlowLaunches` as a dictionary) in one sentence."""
    said = (
        f"{seen['slow']} of {seen['launches']} launches took more than {SLOW:g} times "
        f"as long as usual, {seen['default_slow']} of {seen['default_launches']} with "
        "the default"
    )
    if seen["verdict"] != "no difference shown":
        return f"{said}: {seen['verdict']}"
    ends = []
    if seen["rarer_from"] is not None and seen["default_slow"]:
        ends.append(f"{100 * seen['rarer_from']:.0f} % or less")
    if seen["more_from"] is not None:
        ends.append(f"{100 * seen['more_from']:.0f} % or more")
    if not ends:
        return f"{said}: too few launches to show a difference"
    return f"{said}: no difference shown (a rate of {' or '.join(ends)} would be one)"


def rejection_rows(ledger: Ledger) -> list[dict[str, Any]]:
    """``{setting, runs, rejected}`` of every setting with a rejected run, the most first."""
    counts = ledger.rejections()
    rows = [
        {"setting": key, "runs": runs, "rejected": rejected}
        for key, (rejected, runs) in counts.items()
        if rejected
    ]
    return sorted(rows, key=lambda row: (-row["rejected"], row["setting"]))


def _failures(trials: list[Trial]) -> list[str]:
    failed = [t for t in trials if t.state == "failed"]
    if not failed:
        return []
    reason, count = Counter(t.reason for t in failed).most_common(1)[0]
    return [f"{len(failed)} settings failed; most frequent reason ({count}): {reason}"]


def _rejections(ledger: Ledger) -> list[str]:
    if not ledger.rejected:
        return []
    share = ledger.rejected / len(ledger.entries)
    if share < REJECTED_SHARE:
        return []
    return [f"{share * 100:.0f} % of all runs were rejected because other processes were busy"]


def _inactive(trials: list[Trial]) -> list[str]:
    unused, idle = _names(trials, UNUSED), _names(trials, INACTIVE)
    words = []
    if unused:
        words.append(f"not used by this program, so not tuned: {', '.join(sorted(unused))}")
    if idle - unused:
        words.append(
            "had no effect, so not tried again with the same placement, resources and "
            "components: " + ", ".join(sorted(idle - unused))
        )
    return words


def _names(trials: list[Trial], attribute: str) -> set[str]:
    """Names of parameters that the trials have under an attribute."""
    found = [trial.attrs.get(attribute) for trial in trials]
    return {str(name) for names in found if isinstance(names, list) for name in names}
