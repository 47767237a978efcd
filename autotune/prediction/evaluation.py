"""How well settings are predicted for programs left out, beside what needs no prediction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autotune.prediction.examples import Example, TrainingSet, means
from autotune.prediction.kinds import KINDS
from autotune.prediction.scaling import described
from autotune.prediction.score import Row, Verdict, judge, judge_random, row
from autotune.prediction.training import Group, Watch, by_program, silent, train
from autotune.space import Setting

GROUPS: dict[str, Group] = {
    "program": by_program,
    "cluster": lambda e: e.cluster,
    "ranks": lambda e: e.ranks,
    "machine": lambda e: e.machine,
}
"""What is left out at a time.  Between clusters, rank counts and machines the same program may be
on both sides: the question there is whether what was learned carries over."""

ClassWide = Callable[[Sequence[Example]], Setting]


@dataclass(frozen=True)
class Evaluation:
    """``left_out`` is a key of GROUPS; one row a method, in the order of the table."""

    left_out: str
    rows: tuple[Row, ...]
    data_hash: str
    sources: tuple[str, ...]
    cells: int
    null_cells: int

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": "autotune-prediction-evaluation-1",
            "left_out": self.left_out,
            "from": list(self.sources),
            "data": self.data_hash,
            "cells": self.cells,
            "null_cells": self.null_cells,
            "rows": [r.to_json() for r in self.rows],
        }


def evaluate(
    data: TrainingSet,
    left_out: str = "program",
    kinds: Sequence[str] = tuple(KINDS),
    classwide: ClassWide | None = None,
    watch: Watch = silent,
) -> Evaluation:
    """Leave one group out at a time and judge what each method names for its cells.

    Everything that is chosen (options, caution, the best single setting) is chosen without the
    group.  ``classwide`` finds one setting for the programs it is given.
    """
    group = GROUPS[left_out]
    found: dict[str, list[Verdict]] = {}
    groups = list(dict.fromkeys(group(e) for e in data.examples))
    for number, out in enumerate(groups, 1):
        watch(f"{left_out} {number} of {len(groups)}: {out}")
        inside = [e for e in data.examples if group(e) != out]
        outside = [e for e in data.examples if group(e) == out]
        for method, verdicts in _judge(inside, outside, data.defaults, kinds, classwide).items():
            found.setdefault(method, []).extend(verdicts)
    return Evaluation(
        left_out,
        tuple(row(method, verdicts) for method, verdicts in found.items()),
        data.hash,
        data.sources,
        len(data.examples),
        sum(e.null for e in data.examples),
    )


def _judge(
    inside: Sequence[Example],
    outside: Sequence[Example],
    defaults: Mapping[str, Any],
    kinds: Sequence[str],
    classwide: ClassWide | None,
) -> dict[str, list[Verdict]]:
    found = {
        "default": [judge(e, 0) for e in outside],
        "random": [judge_random(e) for e in outside],
        "best single": [judge(e, best_single(inside, e)) for e in outside],
    }
    if classwide is not None:
        chosen = classwide(inside)
        found["class-wide"] = [judge(e, _place(e, chosen)) for e in outside]
    for kind in kinds:
        predictor = train(kind, inside, defaults).predictor
        found[kind] = [
            judge(e, _place(e, predictor.name(described(e.features), e.settings).setting))
            for e in outside
        ]
    return found


def best_single(inside: Sequence[Example], example: Example) -> int:
    """Index of the setting that was best on average over the other programs.

    Only settings that at least half of them ran count: an average over few is luck.
    """
    average = means(inside)
    runs = {k: sum(any(s.key == k for s in e.settings) for e in inside) for k in average}
    scores = [
        average[s.key] if 2 * runs.get(s.key, 0) >= len(inside) and len(s) else 0.0
        for s in example.settings
    ]
    return min(range(len(scores)), key=scores.__getitem__)


def _place(example: Example, setting: Setting) -> int:
    """Index of the setting; one that was not recorded for this cell counts as the default."""
    return example.settings.index(setting) if setting in example.settings else 0
