"""Summary of screening: what the cheap runs of a study cost and saved, as JSON and in words.

Readers of a stored result import this module; :mod:`autotune.study.screening` does the screening.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from typing_extensions import TypedDict

from autotune.errors import UsageError, WorkError
from autotune.json_types import Number
from autotune.store import Store, StudyRecord
from autotune.store.model import PRUNED
from autotune.wording import count, percent, seconds

if TYPE_CHECKING:
    from autotune.measurement.run_history import RunHistory
    from autotune.study.trial_store import Trial

LINK = "fidelity"
"""The document of a study that names the study with its cheap runs."""
OFF = "fidelity-off"
"""The document of a study in which screening has ended."""


class ScreeningSummary(TypedDict):
    """What screening did; seconds are machine seconds."""

    form: str
    study: str
    runs: int
    machine_s: Number
    screened_out: int
    both: int
    correlation: Number | None
    off: str | None
    spared_s: Number
    """The time of one full run of the default for each setting that was kept from full runs."""
    saved_s: Number
    """That less the time of all cheap runs."""


def why_off(off: dict[str, Any]) -> str:
    """Why screening was switched off, from the stored document :data:`OFF`."""
    figure = f"rank correlation {off['correlation']:.2f} over {count(off['settings'], 'setting')}"
    if off["missed_gain"] is None:
        return f"{figure}; {off['needed']:.2f} is needed"
    gain = percent(off["missed_gain"])
    return f"a setting without gain in cheap runs has {gain} in full runs ({figure})"


def summary(
    form: str,
    study: str,
    cheap: RunHistory,
    full: RunHistory,
    trials: Sequence[Trial],
    off: dict[str, Any] | None,
) -> ScreeningSummary:
    """What screening did."""
    from autotune.study.trial_store import agreement, both_forms

    run = {t.effective for t in trials if t.has_result}
    out = {t.effective for t in trials if t.state == PRUNED} - run
    walls = [record.wall_s for record in full.default_records()]
    spared_s = len(out) * statistics.median(walls) if walls else 0.0
    pairs = both_forms(trials)
    return {
        "form": form,
        "study": study[:12],
        "runs": len(cheap.entries),
        "machine_s": round(cheap.launched_s, 3),
        "screened_out": len(out),
        "both": len(pairs) if off is None else off["settings"],
        "correlation": agreement(pairs) if off is None else off["correlation"],
        "off": None if off is None else why_off(off),
        "spared_s": round(spared_s, 3),
        "saved_s": round(spared_s - cheap.launched_s, 3),
    }


def stored_summary(store: Store, study: StudyRecord) -> ScreeningSummary | None:
    """The summary of a stored study; None if it was made without cheap runs.

    Raises WorkError if what is stored of them is damaged.
    """
    link = store.stored_document(study.id, LINK)
    if link is None:
        return None
    # Most studies have no cheap runs, and their readers need no statistics.
    from autotune.measurement.run_history import history_of
    from autotune.study.trial_store import trial_of

    try:
        cheap = store.find_study(str(link["study"]))
        summary_row = summary(
            str(link["form"]),
            cheap.hash,
            history_of(store, cheap.id),
            history_of(store, study.id),
            [trial_of(trial) for trial in store.trials(study.id)],
            store.stored_document(study.id, OFF),
        )
        screening_words(summary_row)
    except (LookupError, TypeError, ValueError, ArithmeticError, UsageError) as problem:
        raise WorkError(
            f"what study {study.hash[:12]} stored of its cheap runs is damaged ({problem!r:.200}): "
            "somebody else wrote to the results database. Restore a copy from before, or use "
            "another database (--store)",
            code="study.damaged",
        ) from None
    return summary_row


def screening_words(screening: ScreeningSummary) -> str:
    """The summary in a few sentences."""
    out, saved_s = screening["screened_out"], screening["saved_s"]
    runs = count(screening["runs"], "cheap run")
    words = (
        f"{runs} ({screening['form']}) took {seconds(screening['machine_s'])} of machine time "
        "(study "
    )
    words += f"{screening['study']}). They screened out "
    words += "no setting" if out == 0 else count(out, "setting")
    if out:
        words += f", whose full runs would have taken about {seconds(screening['spared_s'])}"
    words += f": {seconds(abs(saved_s))} {'saved' if saved_s >= 0 else 'lost'}."
    if screening["correlation"] is None:
        return words
    if screening["off"] is not None:
        return f"{words} Screening was switched off: {screening['off']}."
    figure = f"{screening['correlation']:.2f} over {count(screening['both'], 'setting')}"
    return f"{words} Rank correlation of cheap and full runs: {figure}."
