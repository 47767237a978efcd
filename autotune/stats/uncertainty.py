"""Warnings on figures that are less certain than they look (as in pyperf).

Most concern the times of runs and comparisons. :func:`depends_on_setting` tests if the guard
rejects a setting's runs more often than the default's. Rejected runs are repeated. So a setting
that makes other processes busy (helpers outside its tree, a daemon that it wakes) would be judged
only by its undisturbed runs. The test is Fisher's exact test, one-sided, because a setting that is
rejected *less* often merely runs for a shorter time.
"""

from __future__ import annotations

import numpy as np

from autotune.notes import Note
from autotune.stats.exact import Floats, hypergeometric, middle
from autotune.stats.log_ratios import LogRatios

SPREAD = 0.10  # robust cv from which a median of runs is called unstable
COARSE = 0.01  # step of the metric, as a share of the median, from which it is called coarse
_OUTLIER = 5.0  # in robust standard deviations
_MODES_MIN = 8  # with fewer runs two groups may be chance
_MODES_DISTANCE = 6.0  # distance of the groups in their own standard deviations
_MODES_SHIFT = 0.03  # and as a share of the median: smaller steps do not matter


def mad_spread(values: Floats) -> float:
    """Robust standard deviation: 1.4826 times the median absolute deviation; 0 for no values."""
    if values.size == 0:
        return 0.0
    return 1.4826 * middle(np.abs(values - middle(values)))


def run_warnings(
    values: Floats, walls: Floats, *, resolution: float, min_time: float
) -> list[Note]:
    """Warnings on complete run times in seconds, shape (n,), n >= 1.

    ``walls``: the wall times of the same runs. They equal the values, unless the program prints its
    own figure, perhaps the time of one operation of many.
    """
    median, wall = float(np.median(values)), float(np.median(walls))
    notes = []
    if wall < min_time:
        notes.append(
            Note(
                "metric.short",
                f"the run is too short ({wall:.3g} s, below {min_time:g} s): start-up and "
                "the precision of the clock dominate; use a longer input",
                {"wall_s": wall, "least_s": min_time},
            )
        )
    if resolution > COARSE * median:
        notes.append(
            Note(
                "metric.coarse",
                f"the metric has a resolution of {resolution:g} s, "
                f"{_share(resolution, median)} of the run: smaller differences cannot be seen; "
                "use a longer input or the wall time",
                {"resolution_s": resolution, "median_s": median},
            )
        )
    if values.size < 3 or median <= 0:
        return notes
    spread = mad_spread(values)
    modes = _two_groups(values)
    if modes is not None:
        notes.append(
            Note(
                "runs.two_groups",
                f"the runs form two groups, near {modes[0]:.4g} s and {modes[1]:.4g} s: "
                "something changes between runs (placement, clock frequency, another process)",
                {"means_s": list(modes)},
            )
        )
    elif spread > SPREAD * median:
        notes.append(
            Note(
                "runs.scatter",
                f"the runs scatter by {spread / median:.0%} around the median: small gains "
                "cannot be told from noise",
                {"spread": spread / median},
            )
        )
    if modes is None:
        far = np.abs(values - median) > max(_OUTLIER * spread, 0.02 * median, 1.5 * resolution)
        if far.any():
            worst = float(values[np.argmax(np.abs(values - median))])
            notes.append(
                Note(
                    "runs.outliers",
                    f"outliers: {int(far.sum())} of {values.size} runs (the farthest took "
                    f"{worst / median:.2g}x the median)",
                    {"outliers": int(far.sum()), "runs": values.size, "farthest": worst / median},
                )
            )
    return notes


def comparison_warnings(ratios: LogRatios, interval: bool, min_gain: float) -> tuple[Note, ...]:
    """Warnings on the blocks of a comparison."""
    notes = []
    if not interval:
        notes.append(
            Note("blocks.few", f"too few blocks ({ratios.n}) for an interval", {"blocks": ratios.n})
        )
    if ratios.coarseness > min_gain / 2:
        notes.append(
            Note(
                "metric.coarse",
                f"the metric is too coarse: its resolution of {ratios.resolution:g} s is "
                f"{ratios.coarseness:.1%} of the run, and smaller differences count as ties; "
                "use a longer input or the wall time",
                {"resolution_s": ratios.resolution, "share": ratios.coarseness},
            )
        )
    if 2 * ratios.ties > ratios.n:
        notes.append(
            Note(
                "blocks.ties",
                f"{ratios.ties} of {ratios.n} blocks are ties",
                {"ties": ratios.ties, "blocks": ratios.n},
            )
        )
    for cut, who in (
        (ratios.value_low == -np.inf, "setting"),
        (ratios.value_high == np.inf, "default"),
    ):
        if cut.any():
            notes.append(
                Note(
                    "blocks.cut",
                    f"the {who} was ended by the time limit in {int(cut.sum())} of {ratios.n} "
                    "blocks",
                    {"side": who, "cut": int(cut.sum()), "blocks": ratios.n},
                )
            )
    whole = ratios.value_low[np.isfinite(ratios.value_low) & np.isfinite(ratios.value_high)]
    spread = mad_spread(whole)
    if whole.size >= 3 and spread > SPREAD:
        ratio = float(np.expm1(spread))
        words = f"the ratio scatters by {ratio:.0%} from block to block"
        notes.append(Note("blocks.scatter", words, {"spread": ratio}))
    return tuple(notes)


def _two_groups(values: Floats) -> tuple[float, float] | None:
    """Means of two clearly separate groups, each with at least a quarter of the runs."""
    n = values.size
    if n < _MODES_MIN:
        return None
    ascending = np.sort(values)
    least = max(3, n // 4)
    cut = least + int(np.argmax(np.diff(ascending)[least - 1 : n - least]))
    left, right = ascending[:cut], ascending[cut:]
    distance = float(right.mean() - left.mean())
    within = float(np.sqrt((left.var(ddof=1) + right.var(ddof=1)) / 2))
    far = distance > _MODES_DISTANCE * within and distance > _MODES_SHIFT * float(np.median(values))
    return (float(left.mean()), float(right.mean())) if far else None


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.1%}" if whole > 0 else "more than all"


ALPHA = 0.01


def depends_on_setting(
    rejections: int, runs: int, default_rejections: int, default_runs: int, *, alpha: float = ALPHA
) -> bool:
    """True if ``rejections`` of ``runs`` attempts are more than the default's by more than chance.

    The attempts of both must be interleaved in time. ``alpha``: chance of True if the setting makes
    no difference. Raises ``ValueError`` for more rejections than runs.
    """
    if not (0 <= rejections <= runs and 0 <= default_rejections <= default_runs):
        raise ValueError("rejections must lie between 0 and the number of runs")
    total = runs + default_runs
    chance = hypergeometric(total, rejections + default_rejections, runs)[rejections:].sum()
    return bool(rejections > 0 and chance <= alpha)
