"""Standings as figures and as tables of at most 80 columns."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from autotune.space import DEFAULT
from benchmarks.search.contestants import Standing
from benchmarks.search.landscapes import Case
from benchmarks.search.replayed_search import MARKS

DECISIVE = 15
"""Number of search runs at which shares by landscape are shown."""
COMPARED = (10, 15, 25, 45)
"""Numbers of search runs at which strategies are compared in pairs."""
NEAR = 0.97
"""Performance ratio from which on a setting counts as as good as the best."""
LATE = 25
"""Number of search runs at which searches near the best are counted by landscape."""
_NAME, _LEAD = 22, 28
"""Widths of a contestant's name and of a lead with its interval."""
SECONDS = (10, 20, 40, 80, 160, 320)
"""Machine seconds after which the shares are pictured."""
HALVES = 10
"""Number of seeds over which the references are averaged; each holds out other runs."""


def marks_of(runs: int) -> list[int]:
    """The numbers of search runs that have a column; the last one is that of a shorter search."""
    marks = [mark for mark in MARKS if mark <= runs]
    return marks or [runs]


def figures(standing: Standing, cases: Sequence[Case], runs: int) -> dict[str, Any]:
    """All reported figures of one contestant."""
    gaining = [c for case in cases if not case.null for c in standing.courses.get(case.name, [])]
    null = [c for case in cases if case.null for c in standing.courses.get(case.name, [])]
    marks = marks_of(runs)
    decisive, late = min(DECISIVE, runs), min(LATE, runs)
    ended = [c.ended for c in gaining if c.ended is not None]
    return {
        "share": {m: _spread([c.land.share(c.at(m)) for c in gaining]) for m in marks},
        "share_error": {m: _error([c.land.share(c.at(m)) for c in gaining]) for m in marks},
        "share_by_s": {
            s: [float(np.mean(shares)), _error(shares)]
            for s in SECONDS
            if (shares := [c.land.share(c.at_second(s)) for c in gaining])
        },
        "relative": {m: _relative(standing, cases, m) for m in marks},
        "by_landscape": {
            case.name: float(np.mean([c.land.share(c.at(decisive)) for c in courses]))
            for case in cases
            if not case.null and (courses := standing.courses.get(case.name))
        },
        "performance": {m: _spread([c.land.performance(c.at(m)) for c in gaining]) for m in marks},
        "near": {
            m: float(np.mean([c.land.performance(c.at(m)) >= NEAR for c in gaining]))
            if gaining
            else math.nan
            for m in marks
        },
        "near_by_landscape": {
            case.name: float(np.mean([c.land.performance(c.at(late)) >= NEAR for c in courses]))
            for case in cases
            if not case.null and (courses := standing.courses.get(case.name))
        },
        "false_before_proof": {m: _rate([c.at(m) != DEFAULT for c in null]) for m in marks},
        "false_after_proof": [standing.false_names, standing.proofs],
        "seconds_to_90": _middle([c.seconds_to(0.90) for c in gaining]),
        "seconds_to_95": _middle([c.seconds_to(0.95) for c in gaining]),
        "own_ms": standing.own_ms,
        "stopped_itself": len(ended) / len(gaining) if gaining else math.nan,
        "stopped_after": _middle([float(e) for e in ended]),
        "slow": standing.slow,
        "courses": len(gaining) + len(null),
    }


@dataclass(frozen=True)
class Apart:
    """Share of one strategy less that of another, as the mean over landscapes.

    ``here`` is its 95 % interval over searches on these landscapes. ``elsewhere`` is its 95 %
    interval over landscapes, as if these were a sample of others. A pair is one seed on one
    landscape, or one landscape.
    """

    mean: float
    here: tuple[float, float]
    elsewhere: tuple[float, float]

    @classmethod
    def of(cls, differences: Sequence[Sequence[float]]) -> Apart:
        """The mean and both intervals from the differences by seed, landscape by landscape."""
        means = [float(np.mean(seeds)) for seeds in differences]
        mean = float(np.mean(means)) if means else math.nan
        errors = [_standard_error(seeds) for seeds in differences]
        here = math.sqrt(sum(error**2 for error in errors)) / max(len(means), 1)
        return cls(
            mean,
            _around(mean, here, _freedom(errors, differences)),
            _around(mean, _standard_error(means), len(means) - 1),
        )

    def to_json(self) -> dict[str, Any]:
        return {"mean": self.mean, "here": self.here, "elsewhere": self.elsewhere}


def pairs(
    standings: Sequence[Standing], cases: Sequence[Case], runs: int
) -> dict[str, dict[int, Apart]]:
    """The first strategy's lead over each other after each number of runs in :data:`COMPARED`.

    Counted are landscapes and seeds that both searched.
    """
    first, found = standings[0], {}
    for other in standings[1:]:
        shared = [c.name for c in cases if not c.null and c.name in other.courses]
        found[other.name] = {
            mark: Apart.of(
                [
                    [
                        mine.land.share(mine.at(mark)) - its.land.share(its.at(mark))
                        for mine, its in zip(first.courses[n], other.courses[n], strict=False)
                    ]
                    for n in shared
                ]
            )
            for mark in ([m for m in COMPARED if m <= runs] or [runs])
        }
    return found


def _relative(standing: Standing, cases: Sequence[Case], mark: int) -> float:
    """Mean over landscapes of the mean share, each divided by the oracle's mean share there."""
    found = []
    for case in cases:
        courses = standing.courses.get(case.name)
        if courses and not case.null:
            own = np.mean([c.land.share(c.at(mark)) for c in courses])
            found.append(own / np.mean([c.land.oracle for c in courses]))
    return float(np.mean(found)) if found else math.nan


def printed(
    known: dict[str, dict[str, Any]],
    apart: dict[str, dict[int, Apart]],
    first: str,
    references: str,
) -> str:
    """The tables as text; shares and performance ratios in per cent."""
    marks = list(next(iter(known.values()))["share"])
    places = list(next(iter(known.values()))["by_landscape"])
    lines = [references, *_leads(apart, first)]
    lines += ["", "* more than 20 ms a trial: 10 seeds, 50 runs"]

    def table(title: str, cell: Callable[[dict[str, Any], int], str], width: int = 11) -> None:
        fit = (80 - _NAME) // width
        lines.extend(["", title])
        for some in (marks[i : i + fit] for i in range(0, len(marks), fit)):
            lines.append(f"{'':{_NAME}}" + "".join(f"{mark:>{width}}" for mark in some))
            for name, row in known.items():
                marked = f"{name}{'*' if row['slow'] else ''}"
                cells = [cell(row, m) if m in row["share"] else "-" for m in some]
                lines.append(f"{marked:{_NAME}}" + "".join(f"{c:>{width}}" for c in cells))

    table("mean share of OPUB's gain after n search runs", lambda r, m: _percent(r["share"][m][0]))
    table("the same, of the share of the oracle", lambda r, m: _percent(r["relative"][m]))
    table("share: median (quartiles)", lambda r, m: _quartiles(r["share"][m]), 16)
    table("performance ratio: median (quartiles)", lambda r, m: _quartiles(r["performance"][m]), 16)
    table(f"searches within {1 - NEAR:.0%} of the best", lambda r, m: _percent(r["near"][m]))
    table(
        "null landscapes: would be named before the proof",
        lambda r, m: _percent(r["false_before_proof"][m]),
    )
    lines += ["", f"{'':{_NAME}} false      s to    s to   own ms   stopped"]
    lines += [f"{'':{_NAME}} proven     90 %    95 %  a trial   itself after"]
    for name, row in known.items():
        false, proofs = row["false_after_proof"]
        lines.append(
            f"{name:{_NAME}} {f'{false}/{proofs}':>6} {_seconds(row['seconds_to_90']):>9} "
            f"{_seconds(row['seconds_to_95']):>7} {row['own_ms']:8.2f} "
            f"{_percent(row['stopped_itself']):>7} {_seconds(row['stopped_after']):>6}"
        )
    decisive, late = min(DECISIVE, marks[-1]), min(LATE, marks[-1])
    for title, key in (
        (f"mean share at {decisive} runs by landscape", "by_landscape"),
        (f"searches within {1 - NEAR:.0%} of the best at {late} runs", "near_by_landscape"),
    ):
        lines += ["", title]
        for place in places:
            lines.append(f"{place}:")
            shares = [
                f"{name} {_percent(row[key][place])}"
                for name, row in known.items()
                if place in row[key]
            ]
            lines += textwrap.wrap(
                ", ".join(shares), 78, initial_indent="  ", subsequent_indent="  "
            )
    if any(decisive in seen for seen in apart.values()):
        lines += ["", f"the same lead at {decisive} runs on these landscapes (pairs of searches)"]
    for name, seen in apart.items():
        if decisive in seen:
            at = seen[decisive]
            lines.append(f"{name:{_NAME}} {100 * at.mean:+6.1f}   {_verdict(at.here)}")
    return "\n".join(lines)


def _leads(apart: dict[str, dict[int, Apart]], first: str) -> list[str]:
    """The lead of the first strategy with the interval over landscapes; ``>``: beyond doubt."""
    marks = list(next(iter(apart.values()), {}))
    if not marks:
        return []
    lines = ["", f"share of {first} less that of the other after n search runs, in points"]
    lines.append("(95 % interval over landscapes; > ahead, < behind)")
    for some in (marks[i : i + 2] for i in range(0, len(marks), 2)):
        lines.append(f"{'':{_NAME}}" + "".join(f"{mark:>{_LEAD}}" for mark in some))
        for name, seen in apart.items():
            cells = [_lead(seen[mark]) for mark in some]
            lines.append(f"{name:{_NAME}}" + "".join(f"{c:>{_LEAD}}" for c in cells))
    return lines


def _lead(seen: Apart) -> str:
    low, high = (100 * bound for bound in seen.elsewhere)
    mark = ">" if low > 0 else "<" if high < 0 else " "
    return f"{100 * seen.mean:+.1f} ({low:+.1f}..{high:+.1f}) {mark}"


def references(cases: Sequence[Case]) -> str:
    """The scores of the default and of the best single change."""
    gaining = [case for case in cases if not case.null]
    designed = sum(case.split == "design" for case in gaining)
    lands = [case.land(seed) for case in gaining for seed in range(HALVES)]
    if not lands:
        return "null landscapes only: the right answer is the default everywhere"
    default = np.mean([100 * land.best for land in lands])
    single = np.mean([100 * (1 / land.single - 1) / (1 / land.best - 1) for land in lands])
    alone = np.mean([100 * land.best / land.single for land in lands])
    seen = float(np.mean([100 * land.oracle for land in lands]))
    exact = all(math.isnan(land.seen) for land in lands)
    known = "" if exact else f";\noracle (knows all runs that can be drawn): share {seen:.0f}"
    return (
        f"{len(gaining)} landscapes with a gain ({designed} of the split design), "
        f"{len(cases) - len(gaining)} null.\n"
        f"default: share 0, performance ratio {default:.0f} (per cent, means);\n"
        f"best single change: share {single:.0f}, ratio {alone:.0f}{known}"
    )


def _verdict(interval: tuple[float, float]) -> str:
    low, high = interval
    verdict = "ahead" if low > 0 else "behind" if high < 0 else "tie"
    return f"{100 * low:+.1f} to {100 * high:+.1f}  {verdict}"


def _standard_error(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.inf


def _freedom(errors: Sequence[float], samples: Sequence[Sequence[float]]) -> float:
    """Degrees of freedom of a mean of means with different variances (Welch and Satterthwaite)."""
    parts = [e**4 / (len(s) - 1) for e, s in zip(errors, samples, strict=True) if len(s) > 1]
    return sum(e**2 for e in errors) ** 2 / sum(parts) if sum(parts) > 0 else 1.0


def _around(mean: float, error: float, freedom: float) -> tuple[float, float]:
    """A 95 % interval; infinite if the error is unknown."""
    if not math.isfinite(error):
        return -math.inf, math.inf
    reach = float(stats.t.ppf(0.975, freedom)) * error
    return mean - reach, mean + reach


def _spread(values: Sequence[float]) -> list[float]:
    """Mean, lower quartile, median, upper quartile."""
    if not values:
        return [math.nan] * 4
    return [float(np.mean(values)), *(float(np.quantile(values, q)) for q in (0.25, 0.5, 0.75))]


def _error(values: Sequence[float]) -> float:
    """The standard error of the mean."""
    return float(np.std(values)) / math.sqrt(len(values)) if values else math.nan


def _middle(values: Sequence[float]) -> float:
    """The median; infinite if half of the values are, nan if there are none."""
    ordered = sorted(values)
    return ordered[len(ordered) // 2] if ordered else math.nan


def _rate(values: Sequence[bool]) -> float:
    return sum(values) / len(values) if values else math.nan


def _percent(value: float) -> str:
    return "-" if math.isnan(value) else f"{100 * value:.0f}"


def _quartiles(spread: Sequence[float]) -> str:
    if math.isnan(spread[0]):
        return "-"
    _, low, middle, high = (f"{100 * v:.0f}" for v in spread)
    return f"{middle} ({low}-{high})"


def _seconds(value: float) -> str:
    return f"{value:.0f}" if math.isfinite(value) else "-"
