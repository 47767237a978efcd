"""The test of each parameter as a factor: if it matters, and which level is certainly best."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from autotune.anova.mixed import MixedTest, mixed_tests, with_ranks
from autotune.anova.oneway import MIN_LEVEL, OneWay, Values, one_way
from autotune.anova.table import UNSET
from autotune.document import Document
from autotune.json_types import Ends, Number, ParameterValue
from autotune.space import Setting, Value
from runner.types import finite

Model = Literal["oneway", "blocks", "mixed", "rank"]
MODELS: tuple[Model, ...] = ("oneway", "blocks", "mixed", "rank")
Correction = Literal["none", "holm", "fdr_bh", "bonferroni"]
CORRECTIONS: tuple[Correction, ...] = ("none", "holm", "fdr_bh", "bonferroni")


@dataclass(frozen=True)
class FactorOptions:
    """How factors are judged.

    ``model``: "oneway" as in the thesis; "blocks" with the cell (program, size, ranks) as a block;
    "mixed" with the setting as a random effect in addition; "rank" the same on ranks within the
    blocks. ``level``: confidence, 0.999 in the thesis. ``against_default``: a level is recommended
    only if its mean is certainly above the unset parameter's, too.
    """

    model: Model = "mixed"
    level: float = 0.999
    correction: Correction = "holm"
    min_level: int = MIN_LEVEL
    against_default: bool = True

    @property
    def alpha(self) -> float:
        return 1.0 - self.level


THESIS = FactorOptions(model="oneway", correction="none", against_default=False)
"""As in the thesis: one-way, 99.9 %, the level with the highest mean (Pellegrini 1.10.2)."""


@dataclass(frozen=True)
class LevelMean:
    """Mean response of a level with the ends of its 95 % interval; NaN where not judged."""

    level: str
    n: int
    mean: float
    lo: float
    hi: float

    @property
    def has_mean(self) -> bool:
        return math.isfinite(self.mean)


class LevelRow(Document):
    """The mean of a level with its interval."""

    level: str
    n: int
    mean: Number | None
    ci95: Ends | None


class FactorRow(Document):
    """The verdict on a parameter."""

    name: str
    f: Number | None
    p: Number
    p_corrected: Number
    df: tuple[int, int]
    """Degrees of freedom, of the parameter and of the error."""
    eta2: Number
    omega2: Number
    significant: bool
    chosen: ParameterValue | None
    best_level: str
    why: str
    levels: list[LevelRow]


@dataclass(frozen=True)
class Factor:
    """One parameter. ``chosen`` is the level to set, None for a dash in the table; ``why`` is the
    reason for the dash."""

    name: str
    f: float
    p: float
    p_corrected: float
    df: int
    df_error: int
    eta2: float
    omega2: float
    significant: bool
    levels: tuple[LevelMean, ...]
    chosen: Value | None
    best: str
    why: str

    @property
    def row(self) -> FactorRow:
        """The part of a document."""
        return FactorRow(
            name=self.name,
            f=finite(self.f),
            p=self.p,
            p_corrected=self.p_corrected,
            df=(self.df, self.df_error),
            eta2=self.eta2,
            omega2=self.omega2,
            significant=self.significant,
            chosen=self.chosen,
            best_level=self.best,
            why=self.why,
            levels=[
                LevelRow(
                    level=m.level, n=m.n, mean=finite(m.mean), ci95=(finite(m.lo), finite(m.hi))
                )
                for m in self.levels
            ],
        )


def judge_factors(values: Values, options: FactorOptions = THESIS) -> list[Factor]:
    """Judge every parameter of the table, in the order of its columns."""
    names = values.table.names
    tests: dict[str, MixedTest] = {}
    if options.model in ("mixed", "rank"):
        tests = mixed_tests(values, names, options.alpha, options.min_level)
    if options.model == "rank":
        # The p values come from ranks; the levels are compared by the response itself.
        by_rank = mixed_tests(with_ranks(values), names, options.alpha, options.min_level)
        tests = {n: replace(tests[n], f=by_rank[n].f, p=by_rank[n].p) for n in names}
    factor_tests = [_judge_one(values, name, options, tests.get(name)) for name in names]
    return _decide(values, factor_tests, options)


def chosen_setting(factors: Sequence[Factor]) -> Setting:
    """The setting of all chosen levels."""
    return Setting({f.name: f.chosen for f in factors if f.chosen is not None})


@dataclass(frozen=True)
class _FactorTest:
    name: str
    result: OneWay
    p: float
    f: float
    df_error: int


def _judge_one(
    values: Values, name: str, options: FactorOptions, test: MixedTest | None
) -> _FactorTest:
    table = values.table
    blocks = None if options.model == "oneway" else table.blocks
    result = one_way(
        table.codes(name), values.y, len(table.levels[name]), blocks, min_level=options.min_level
    )
    if test is None or not result.testable or test.df < 1 or test.df_error < 1:
        p = 1.0 if test is not None else result.p
        return _FactorTest(name, result, p, result.f, result.df_error)
    mixed_result = replace(result, means=test.means, errors=test.errors)
    return _FactorTest(name, mixed_result, test.p, test.f, test.df_error)


def _decide(
    values: Values, factor_tests: Sequence[_FactorTest], options: FactorOptions
) -> list[Factor]:
    ps = [item.p if item.result.testable else math.nan for item in factor_tests]
    final_ps = corrected_ps(ps, options.correction)
    return [
        _factor(values, item, p, options) for item, p in zip(factor_tests, final_ps, strict=True)
    ]


def corrected_ps(ps: Sequence[float], method: Correction) -> list[float]:
    """p values corrected for the number of tests; NaN (not testable) does not count as a test."""
    testable = [i for i, p in enumerate(ps) if not math.isnan(p)]
    final_ps = [1.0] * len(ps)
    for i, p in zip(
        testable, _correct_ps(np.array([ps[i] for i in testable]), method), strict=True
    ):
        final_ps[i] = float(p)
    return final_ps


def _correct_ps(ps: NDArray[np.float64], method: Correction) -> NDArray[np.float64]:
    """Like statsmodels' ``multipletests``, which collects garbage for up to half a second per
    call."""
    if method == "none":
        return ps
    count = len(ps)
    if method == "bonferroni":
        return np.minimum(ps * count, 1.0)
    order = np.argsort(ps)
    rank = np.arange(1, count + 1)
    if method == "holm":
        step_ps = np.maximum.accumulate(ps[order] * (count + 1 - rank))
    else:
        step_ps = np.minimum.accumulate((ps[order] / (rank / count))[::-1])[::-1]
    final_ps = np.empty(count)
    final_ps[order] = np.minimum(step_ps, 1.0)
    return final_ps


def _factor(values: Values, item: _FactorTest, p: float, options: FactorOptions) -> Factor:
    result, texts = item.result, list(values.table.levels[item.name])
    means = _level_means(item, texts)
    blank = Factor(
        item.name,
        item.f,
        item.p,
        p,
        result.df,
        item.df_error,
        result.eta2,
        result.omega2,
        False,
        means,
        None,
        "",
        "",
    )
    if not result.testable:
        few = f"fewer than two levels have {options.min_level} observations"
        return replace(blank, why=few)
    best = int(np.nanargmax(result.means))
    blank = replace(blank, best=texts[best])
    if p >= options.alpha:
        return replace(blank, why="no significant effect")
    blank = replace(blank, significant=True)
    if texts[best] == UNSET:
        return replace(blank, why="matters; its default level is the best")
    if options.against_default and (doubt := _doubt(item, best, texts, options)):
        return replace(blank, why=doubt)
    return replace(blank, chosen=values.table.levels[item.name][texts[best]])


def _doubt(item: _FactorTest, best: int, texts: Sequence[str], options: FactorOptions) -> str:
    """Why the best level is not certainly better than the unset parameter; "" if it is.

    The p value of the best of k levels is corrected for k comparisons (Bonferroni).
    """
    from scipy import stats

    means, unset = item.result.means, texts.index(UNSET)
    if not math.isfinite(means[unset]):
        return ""
    levels = max(int(np.isfinite(means).sum()) - 1, 1)
    error = math.hypot(item.result.errors[best], item.result.errors[unset])
    t = float(stats.t.isf(0.025 / levels, max(item.df_error, 1)))
    if means[best] - means[unset] > t * error:
        return ""
    return f"{texts[best]} is the best level, but not certainly better than the default"


def _level_means(item: _FactorTest, texts: Sequence[str]) -> tuple[LevelMean, ...]:
    from scipy import stats

    result = item.result
    t = float(stats.t.isf(0.025, max(item.df_error, 1)))
    ends = zip(texts, result.counts, result.means, result.errors, strict=True)
    return tuple(
        LevelMean(text, int(n), float(mean), float(mean - t * error), float(mean + t * error))
        for text, n, mean, error in ends
        if n
    )
