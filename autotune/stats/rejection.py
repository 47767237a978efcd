"""Does the guard reject the runs of one setting more often than those of the default?

Rejected runs are repeated, so a setting that makes other processes busy (helpers outside its own
tree, a daemon it wakes) would be judged by its undisturbed runs only.  The exact one-sided test of
Fisher; a setting that is rejected *less* often merely runs for a shorter time.
"""

from __future__ import annotations

from scipy import stats

ALPHA = 0.01


def depends_on_setting(
    rejected: int, runs: int, default_rejected: int, default_runs: int, *, alpha: float = ALPHA
) -> bool:
    """Whether ``rejected`` of ``runs`` attempts is more than chance beside the default's.

    Attempts of both must be interleaved in time.  ``alpha``: chance of saying so where the
    setting has nothing to do with it.  Raises ``ValueError`` on more rejections than runs.
    """
    if not (0 <= rejected <= runs and 0 <= default_rejected <= default_runs):
        raise ValueError("rejections must lie between 0 and the number of runs")
    total = runs + default_runs
    chance = stats.hypergeom.sf(rejected - 1, total, rejected + default_rejected, runs)
    return bool(rejected > 0 and chance <= alpha)
