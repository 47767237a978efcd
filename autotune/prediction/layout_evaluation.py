"""Evaluation of predicted layouts on programs left out, beside the default and single rules."""

from __future__ import annotations

from collections.abc import Sequence

from autotune.anova.classwide import BEST_SINGLE
from autotune.anova.layout_rules import rules_for
from autotune.prediction.evaluation import (
    REPORT,
    Evaluation,
    PredictionScore,
    Statement,
    judge_random,
    row,
    score_prediction,
)
from autotune.prediction.layout_examples import LayoutExample, LayoutTrainingSet
from autotune.prediction.layout_kinds import LAYOUT_KINDS
from autotune.prediction.layout_predictor import train_layouts
from autotune.prediction.training import Watch, silent
from autotune.space import DEFAULT, Setting

ONE_LAYOUT = "one layout"
"""Name of the row with one rule for all programs. It slows none of those that it was chosen on."""


def evaluate_layouts(
    data: LayoutTrainingSet,
    kinds: Sequence[str] = tuple(LAYOUT_KINDS),
    watch: Watch = silent,
    left_out: str = "program",
) -> Evaluation:
    """Leave one program out at a time and score the layout that each method names for its cells.

    With ``left_out`` REPORT only the cells for reporting are scored, and everything is learned from
    the other cells of other programs.
    """
    scores: dict[str, list[PredictionScore]] = {}
    scored = [e for e in data.examples if left_out != REPORT or e.split == REPORT]
    design = [e for e in data.examples if left_out != REPORT or e.split != REPORT]
    apps = list(dict.fromkeys(e.app for e in scored))
    for number, app in enumerate(apps, 1):
        watch(f"program {number} of {len(apps)}: {app}")
        inside = [e for e in design if e.app != app]
        outside = [e for e in scored if e.app == app]
        for method, verdicts in _judge(inside, outside, kinds).items():
            scores.setdefault(method, []).extend(verdicts)
    return Evaluation(
        left_out,
        tuple(row(method, verdicts) for method, verdicts in scores.items()),
        data.hash,
        data.sources,
        len(scored),
        sum(e.null for e in scored),
    )


def _judge(
    inside: Sequence[LayoutExample], outside: Sequence[LayoutExample], kinds: Sequence[str]
) -> dict[str, list[PredictionScore]]:
    best, safe = best_rules(inside)
    scores = {
        "default": [score_prediction(e, 0) for e in outside],
        "random": [judge_random(e) for e in outside],
        BEST_SINGLE: [score_prediction(e, e.choices.obey(best)) for e in outside],
        ONE_LAYOUT: [score_prediction(e, e.choices.obey(safe)) for e in outside],
    }
    for kind in kinds:
        predictor = train_layouts(kind, inside).predictor
        for e in outside:
            answer = predictor.name(e.settings, e.points, e.parts)
            index = e.settings.index(answer.setting)
            statement = Statement(answer.harm, index, answer.interval) if index else None
            scores.setdefault(kind, []).append(score_prediction(e, index, statement))
    return scores


def best_rules(examples: Sequence[LayoutExample]) -> tuple[Setting, Setting]:
    """The rule with the best mean log ratio over programs, and the best of those that slow no cell
    beyond noise; the default where none is better."""
    programs: dict[str, list[LayoutExample]] = {}
    for example in examples:
        programs.setdefault(example.app, []).append(example)
    rules = rules_for({app: [e.choices for e in cells] for app, cells in programs.items()})
    means = {DEFAULT: 0.0}
    harmless = {DEFAULT: 0.0}
    for rule in rules:
        indices = {e.key: e.choices.obey(rule) for e in examples}
        of_programs = [
            sum(float(e.logs[indices[e.key]]) for e in cells) / len(cells)
            for cells in programs.values()
        ]
        means[rule] = sum(of_programs) / len(of_programs)
        if not any(
            indices[e.key] and e.logs[indices[e.key]] > e.beyond_noise(indices[e.key])
            for e in examples
        ):
            harmless[rule] = means[rule]
    return min(means, key=means.__getitem__), min(harmless, key=harmless.__getitem__)
