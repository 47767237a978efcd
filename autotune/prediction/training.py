"""Training: a model is fitted, and checked on held-out programs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from autotune.prediction.confidence import Checks
from autotune.prediction.examples import Example
from autotune.prediction.predictor import Predictor, careful, find_kind
from autotune.prediction.scorer import SETS, Options, Scaler, Scorer, model_values
from autotune.space import Value

Group = Callable[[Example], Hashable]
Watch = Callable[[str], None]


def by_program(example: Example) -> Hashable:
    """The group that is left out together: all inputs and rank counts of a program."""
    return example.app


def silent(_: str) -> None:
    """A watcher that prints nothing."""


@dataclass(frozen=True)
class TrainingResult:
    """A predictor and its cost on held-out programs. ``cost`` is the mean log(T / T_default) of the
    settings named there, with a larger weight for slowed programs: lower is better, the default has
    0."""

    kind: str
    options: Options
    predictor: Predictor
    cost: float


def train(
    kind: str,
    examples: Sequence[Example],
    defaults: Mapping[str, Value] | None = None,
    group: Group = by_program,
    watch: Watch = silent,
) -> TrainingResult:
    """Fit a model of that kind; its options and its threshold are chosen by leaving programs out.

    ``group`` returns the group of an example; a group is left out together. With fewer than two
    groups the model is fitted, but a careful one always names the default. Raises ValueError for an
    unknown kind.
    """
    known_defaults = defaults or {}
    model = find_kind(kind)
    results = []
    for number, options in enumerate(model.grid, 1):
        watch(f"{kind}: options {number} of {len(model.grid)}")
        checks = cross_validate(model, options, examples, known_defaults, group)
        results.append((mean_cost(checks, careful(kind)), number, options, checks))
    cost, _, options, checks = min(results, key=lambda entry: entry[:2])
    scorer = model.fit(examples, options, known_defaults)
    return TrainingResult(
        kind, options, Predictor.build(scorer, examples, checks, careful(kind)), cost
    )


def cross_validate(
    model: type[Scorer],
    options: Options,
    examples: Sequence[Example],
    defaults: Mapping[str, Value],
    group: Group = by_program,
) -> Checks:
    """Predict each group in turn with a model of the other groups."""
    rows = []
    for number, left_out in enumerate(dict.fromkeys(group(e) for e in examples)):
        others = [e for e in examples if group(e) != left_out]
        if len(others) < 2:
            continue
        scorer = model.fit(others, options, defaults)
        scaler = Scaler.fit(others, SETS["placed"])
        points = np.array([scaler(model_values(e.features)) for e in others])
        for example in (e for e in examples if group(e) == left_out):
            scores = scorer.scores(model_values(example.features), example.settings)
            scores[0] = 0.0
            at = int(scores.argmin())
            distance = np.linalg.norm(points - scaler(model_values(example.features)), axis=1).min()
            slower = example.logs[at] > example.beyond_noise(at)
            null = float(example.null and at > 0)
            rows.append((scores[at], example.logs[at], distance, float(slower), null, number))
    columns = np.array(rows, dtype=np.float64).reshape(-1, 6).T if rows else np.zeros((6, 1))
    return Checks(*columns)


def mean_cost(checks: Checks, cautious: bool) -> float:
    """The mean cost of what a model names in the checks; a cautious one names only beyond its
    threshold."""
    if not cautious:
        return float(checks.actual.mean())
    is_named = -checks.predicted >= checks.threshold()
    return float((checks.costs * is_named).mean())
