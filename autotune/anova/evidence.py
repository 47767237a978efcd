"""What the proof and the read-back of one study showed of single parameters.

A forest over the runs of a search sees which settings were fast, not which of their parameters made
them so.  The proof does: a proven setting whose parameters were each seen to matter.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from autotune.space import Setting
from autotune.store import Store, Study
from autotune.study.result import Result

_SHOWN = ("slim", "pruned")
"""States of pruning in which each parameter that is left was seen to matter."""


@dataclass(frozen=True)
class Evidence:
    """``proven``: parameters that the proof showed to matter.  ``taken_out`` of the proven setting,
    which is no slower without.  ``unused``: read back as inactive in every run that named them, so
    no run used them.  ``gain`` of the proven setting, as a fraction."""

    proven: tuple[str, ...] = ()
    taken_out: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    gain: float | None = None


def study_evidence(store: Store, study: Study) -> Evidence:
    """The evidence of a search; empty for a study without a proof.  WorkError for damage."""
    unused = _unused(store, study)
    if study.result is None or "recommended" not in study.result:
        return Evidence(unused=unused)
    result = Result.from_json(study.result)
    if result.status != "recommended" or not study.key.guarded:
        return Evidence(unused=unused)
    named, pruning = tuple(result.recommended), result.pruning or {}
    whole = tuple(Setting(pruning["whole"])) if pruning.get("whole") else ()
    without = () if pruning.get("non_inferior") is False else whole
    shown = len(named) == 1 or pruning.get("state") in _SHOWN
    return Evidence(
        proven=named if shown else (),
        taken_out=tuple(name for name in without if name not in named),
        unused=tuple(name for name in unused if name not in named),
        gain=result.gain,
    )


def _unused(store: Store, study: Study) -> tuple[str, ...]:
    states: dict[str, set[str]] = defaultdict(set)
    for run in store.runs(study.id):
        for name, seen in run.record.read_back.items() if run.record.valid else ():
            states[name].add(seen.state)
    return tuple(sorted(name for name, found in states.items() if found == {"inactive"}))
