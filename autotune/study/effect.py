"""Which parameters of a setting do anything here, as read-back tells."""

from __future__ import annotations

from collections.abc import Sequence

from autotune.space import Setting
from runner.types import ReadBack, RunRecord

NOT_OPENED = "its component was not opened"


def inactive_in(record: RunRecord, setting: Setting) -> frozenset[str]:
    """Parameters of ``setting`` that a run of it read back as inactive; none where the run says
    nothing, since it did not come to its end."""
    if not record.valid:
        return frozenset()
    back = record.read_back
    return frozenset(n for n in setting if n in back and back[n].state == "inactive")


def idle_words(name: str, back: ReadBack) -> str:
    """Why a parameter does nothing here, as a sentence; "" where it is not known to."""
    if back.state != "inactive":
        return ""
    return f"{name}={back.requested} has no effect here: {back.source or NOT_OPENED}"


def idle_difference(
    first: Setting,
    second: Setting,
    first_runs: Sequence[RunRecord],
    second_runs: Sequence[RunRecord],
) -> list[str]:
    """Why two settings are one here, parameter by parameter; none where they may differ.

    Every parameter in which they differ must have been read back as idle in a valid run of the
    setting that names it.
    """
    apart = [n for n in {**first, **second} if first.get(n) != second.get(n)]
    sides = ((first, first_runs), (second, second_runs))
    words = []
    for name in sorted(apart):
        for setting, runs in sides:
            if name not in setting:
                continue
            seen = [r.read_back.get(name) for r in runs if r.valid]
            said = [idle_words(name, back) if back else "" for back in seen]
            if not said or not all(said):
                return []
            words.append(said[0])
    return words
