"""Evaluation of prediction on held-out programs, compared with methods without prediction.

It leaves out groups and judges each method; computes share and performance ratio of a setting on a
recorded program (docs/explanation/design.md); and includes the class-wide setting, chosen on all
other programs, as one of the methods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, PlainSerializer

from autotune.anova.classwide import BEST_SINGLE, direct_setting
from autotune.anova.shrinkage import SettingEffects
from autotune.anova.table import dataset_table
from autotune.datasets import load
from autotune.document import Document, Omitted
from autotune.json_types import Number
from autotune.prediction.composed import ComposedModel
from autotune.prediction.examples import Example, TrainingSet, means
from autotune.prediction.measured_cell import Floats, MeasuredCell
from autotune.prediction.predictor import KINDS
from autotune.prediction.program_effects import COMPOSITION, ProgramEffects
from autotune.prediction.scorer import model_values
from autotune.prediction.training import Group, Watch, by_program, silent, train
from autotune.space import Setting
from runner.types import finite

REPORT = "report"
GROUPS: dict[str, Group] = {
    "program": by_program,
    "cell": lambda e: e.key,
    "cluster": lambda e: e.cluster,
    "ranks": lambda e: e.ranks,
    "machine": lambda e: e.machine,
    "program+machine": lambda e: (e.app, e.machine),
    REPORT: lambda e: e.split,
}
"""How examples are grouped; one group is left out at a time. With cells, clusters, rank counts and
machines the same program may be in training and in the held-out group: this tests if a model
carries over to another cluster, rank count or machine. With program+machine nothing is learned from
the program or from the machine. With report the cells reserved for reporting are scored, and
everything is learned from the others."""
METHODS = (*KINDS, COMPOSITION)

ClassWide = Callable[[Sequence[Example]], Setting]


class HeldIntervals(Document):
    """Programs whose stated interval holds the measured gain, of those with an interval."""

    programs: int
    of: int


class MethodScores(Document):
    """The scores of a method on all cells."""

    method: str
    performance_ratio: Number
    worst_performance_ratio: Number
    share: Number | None
    share_lower: Omitted[Number] = None
    """Lower end of the one-sided 95 % interval of the mean share over programs; left out
    with fewer than three programs."""
    slower_than_default: int
    named_on_null_cells: int
    slower_as_stated: Number
    """How many cells the stated chances of being slower expect to be slower."""
    intervals_hold: HeldIntervals
    """Programs whose stated 95 % interval holds the measured gain, of those with one."""
    cells: tuple[PredictionScore, ...]


class EvaluationDocument(Document):
    """Scores of predictions on what was left out."""

    schema_: Literal["autotune-prediction-evaluation-1"] = Field(
        default="autotune-prediction-evaluation-1", alias="schema"
    )
    left_out: str
    sources: list[str] = Field(serialization_alias="from")
    data: str
    cells: int
    null_cells: int
    rows: list[MethodScores]


@dataclass(frozen=True)
class Evaluation:
    """The scores of all methods.  ``left_out`` is a key of GROUPS; ``rows`` has one row for each
    method, in the order of the table."""

    left_out: str
    rows: tuple[EvaluationRow, ...]
    data_hash: str
    sources: tuple[str, ...]
    cells: int
    null_cells: int

    @property
    def document(self) -> EvaluationDocument:
        """What ``--json`` writes."""
        return EvaluationDocument(
            left_out=self.left_out,
            sources=list(self.sources),
            data=self.data_hash,
            cells=self.cells,
            null_cells=self.null_cells,
            rows=[one.document for one in self.rows],
        )


def evaluate(
    data: TrainingSet,
    left_out: str = "program",
    kinds: Sequence[str] = tuple(KINDS),
    classwide: ClassWide | None = None,
    watch: Watch = silent,
) -> Evaluation:
    """Leave one group out at a time and score the setting that each method names for its cells.

    Every choice (options, caution, the best single setting) is made without the group. The kind
    COMPOSED judges the cells whose dataset has a calibration; the default counts for others.
    ``classwide`` chooses one setting for the given programs. Raises KeyError if ``left_out`` is not
    a key of GROUPS, ValueError for an unknown kind of model.
    """
    group = GROUPS[left_out]
    scores: dict[str, list[PredictionScore]] = {}
    groups = list(dict.fromkeys(group(e) for e in data.examples))
    if left_out == REPORT:
        groups = [REPORT]
    for number, out in enumerate(groups, 1):
        watch(f"{left_out} {number} of {len(groups)}: {out}")
        inside = kept_for(data.examples, left_out, out)
        outside = [e for e in data.examples if group(e) == out]
        for method, verdicts in _judge(inside, outside, data.defaults, kinds, classwide).items():
            scores.setdefault(method, []).extend(verdicts)
    examples = [e for e in data.examples if left_out != REPORT or e.split == REPORT]
    return Evaluation(
        left_out,
        tuple(row(method, verdicts) for method, verdicts in scores.items()),
        data.hash,
        data.sources,
        len(examples),
        sum(e.null for e in examples),
    )


def _judge(
    inside: Sequence[Example],
    outside: Sequence[Example],
    defaults: Mapping[str, Any],
    kinds: Sequence[str],
    classwide: ClassWide | None,
) -> dict[str, list[PredictionScore]]:
    scores = {
        "default": [score_prediction(e, 0) for e in outside],
        "random": [judge_random(e) for e in outside],
        BEST_SINGLE: [score_prediction(e, best_single(inside, e)) for e in outside],
    }
    if classwide is not None:
        class_setting = classwide(inside)
        scores["class-wide"] = [score_prediction(e, _place(e, class_setting)) for e in outside]
    for kind in kinds:
        if kind == COMPOSITION:
            scores[kind] = score_compositions(ComposedModel(ProgramEffects.fit(inside)), outside)
            continue
        predictor = train(kind, inside, defaults).predictor
        for e in outside:
            answer = predictor.name(model_values(e.features), e.settings)
            index = _place(e, answer.setting)
            statement = Statement(answer.harm or 0.0, index, answer.interval) if index else None
            scores.setdefault(kind, []).append(score_prediction(e, index, statement))
    return scores


def kept_for(examples: Sequence[Example], left_out: str, out: object) -> list[Example]:
    """The examples from which a group's answers are learned."""
    group = GROUPS[left_out]
    if left_out != "program+machine":
        return [e for e in examples if group(e) != out]
    apps, machines = zip(*[(e.app, e.machine) for e in examples if group(e) == out], strict=True)
    return [e for e in examples if e.app not in apps and e.machine not in machines]


def score_compositions(model: ComposedModel, outside: Sequence[Example]) -> list[PredictionScore]:
    """The scores of the model's answers among each cell's recorded settings. Intervals are those of
    the setting with the best score, named or not."""
    scores = []
    for e in outside:
        composition = (
            None if e.calibration is None else model.composition(e.features, e.calibration)
        )
        judgements = (
            [] if composition is None else model.judge(composition, e.features, e.settings[1:])
        )
        choice = model.choose(judgements)
        subject = (
            choice if choice.setting else min(judgements, key=lambda one: one.log, default=None)
        )
        statement = None
        if subject is not None:
            interval = subject.interval(model.effects.of(e.features).dof)
            statement = Statement(subject.harm, _place(e, subject.setting), interval)
        scores.append(score_prediction(e, _place(e, choice.setting), statement))
    return scores


def best_single(inside: Sequence[Example], example: Example) -> int:
    """Index of the setting that was best on average over the other programs.

    Only settings run by at least half of them count: a mean over fewer programs is mostly luck.
    """
    average = means(inside)
    runs = Counter(key for e in inside for key in {s.key for s in e.settings})
    scores = [
        average[s.key] if 2 * runs[s.key] >= len(inside) and len(s) else 0.0
        for s in example.settings
    ]
    return min(range(len(scores)), key=scores.__getitem__)


def _place(example: MeasuredCell, setting: Setting) -> int:
    """Index of the setting; a setting not recorded for this cell counts as the default."""
    return example.settings.index(setting) if setting in example.settings else 0


@dataclass(frozen=True)
class Statement:
    """A model's statement on the setting with this index: its chance of being slower, and the 95 %
    interval of its gain."""

    harm: float
    index: int
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class PredictionScore:
    """The score of one setting on one cell.  ``performance`` is T_OPUB / T, on a null cell
    T_default / T; ``share`` is gain / gain(OPUB), None on a null cell; ``slower``: slower than the
    default by more than the noise; ``false``: another setting than the default was named on a null
    cell.  ``harm``: the stated chance of being slower, 0 for the default.  ``covered``: whether the
    stated 95 % interval holds the measured gain; None where none was stated."""

    cell: str
    app: str
    setting: str
    ratio: Annotated[float, PlainSerializer(finite, return_type=float | None)]
    performance: float
    share: float | None
    slower: bool
    false: bool
    harm: float = 0.0
    """Stated chance of being slower; 0 for the default."""
    covered: bool | None = None
    """Whether the stated interval holds the measured gain; null without one."""


def score_prediction(
    example: MeasuredCell, index: int, statement: Statement | None = None
) -> PredictionScore:
    """The score of naming the setting with this index for this cell."""
    ratio = float(example.ratios[index])
    holds_gain = None
    if statement is not None and statement.interval is not None:
        low, high = statement.interval
        holds_gain = low <= 1 / float(example.measured_ratios[statement.index]) - 1 <= high
    return PredictionScore(
        cell=example.key,
        app=example.app,
        setting=example.settings[index].key,
        ratio=ratio,
        performance=example.opub / ratio,
        share=_share(example, 1 / ratio - 1),
        slower=index > 0 and bool(example.logs[index] > example.beyond_noise(index)),
        false=example.null and index > 0,
        harm=statement.harm if statement is not None and index > 0 else 0.0,
        covered=holds_gain,
    )


def judge_random(example: MeasuredCell) -> PredictionScore:
    """The mean score of a random setting; it counts as slower if most settings are."""
    speeds: Floats = 1 / example.ratios[1:]
    slower = [score_prediction(example, i).slower for i in range(1, len(example.settings))]
    mean = float(speeds.mean())
    return PredictionScore(
        cell=example.key,
        app=example.app,
        setting="any",
        ratio=1 / mean if mean > 0 else float("inf"),
        performance=example.opub * mean,
        share=_share(example, mean - 1),
        slower=2 * sum(slower) > len(slower),
        false=example.null,
    )


@dataclass(frozen=True)
class EvaluationRow:
    """The scores of one method over all cells. Its figures are means of the performance ratio, and
    of the share over cells with a possible gain."""

    method: str
    verdicts: tuple[PredictionScore, ...]

    @property
    def performance(self) -> float:
        return float(np.mean([v.performance for v in self.verdicts]))

    @property
    def worst(self) -> float:
        return min(v.performance for v in self.verdicts)

    @property
    def share(self) -> float | None:
        shares = [v.share for v in self.verdicts if v.share is not None]
        return float(np.mean(shares)) if shares else None

    @property
    def share_lower(self) -> float | None:
        """The lower end of the one-sided 95 % interval of the mean share over programs (Student's
        t); None with fewer than three programs."""
        from scipy import stats

        by_app: dict[str, list[float]] = {}
        for v in self.verdicts:
            if v.share is not None:
                by_app.setdefault(v.app, []).append(v.share)
        means = np.array([np.mean(shares) for shares in by_app.values()])
        if len(means) < 3:
            return None
        error = float(means.std(ddof=1)) / np.sqrt(len(means))
        return float(means.mean() - stats.t.ppf(0.95, len(means) - 1) * error)

    @property
    def slower(self) -> int:
        return sum(v.slower for v in self.verdicts)

    @property
    def false(self) -> int:
        return sum(v.false for v in self.verdicts)

    @property
    def harm(self) -> float:
        """The number of slower cells expected from the stated chances."""
        return sum(v.harm for v in self.verdicts)

    @property
    def interval_hits(self) -> tuple[int, int]:
        """The number of programs whose stated interval holds the measured gain, and the number with
        one: each program's first cell with an interval counts."""
        first: dict[str, bool] = {}
        for v in self.verdicts:
            if v.covered is not None:
                first.setdefault(v.app, v.covered)
        return sum(first.values()), len(first)

    @property
    def document(self) -> MethodScores:
        """The part of an evaluation's document."""
        programs, those = self.interval_hits
        return MethodScores(
            method=self.method,
            performance_ratio=self.performance,
            worst_performance_ratio=self.worst,
            share=self.share,
            share_lower=self.share_lower,
            slower_than_default=self.slower,
            named_on_null_cells=self.false,
            slower_as_stated=self.harm,
            intervals_hold=HeldIntervals(programs=programs, of=those),
            cells=self.verdicts,
        )


def row(method: str, verdicts: Sequence[PredictionScore]) -> EvaluationRow:
    """The row of a method from its scores on all cells."""
    return EvaluationRow(method, tuple(verdicts))


def _share(example: MeasuredCell, gain: float) -> float | None:
    return None if example.null else gain / (1 / example.opub - 1)


def class_wide(places: Sequence[str | Path]) -> ClassWide | None:
    """A function that chooses the measured setting with the best mean share that slows none of the
    given programs.

    None if there is more than one dataset, or if no setting was run on every cell: then there is no
    common list of settings. Raises UsageError for an unreadable dataset.
    """
    if len(places) != 1:
        return None
    table = dataset_table(load(places[0]))
    effects = SettingEffects(table)
    if not effects.everywhere:
        return None

    def choose(examples: Sequence[Example]) -> Setting:
        keys = {example.key for example in examples}
        part = table.where(lambda place: place.key in keys)
        return direct_setting(part, effects.on(part))

    return choose
