"""Prediction in the form of Pellegrini 4.6, beside today's models on the same cells.

    python -m benchmarks.thesis.prediction [DATASET] [--picture FILE.svg] [--json FILE]

DATASET (grid-thesis-testbed) has all settings of four parameters on eight kernels with two classes,
and the features of one traced run of each. The models of the thesis are k-NN (k = 3, the mean of
the values that were best for the three nearest) and the network 19-16-10-4 (tanh, logistic, tanh).
Each program is left out in turn, as in the thesis; then each cell, so that the other class of the
program is known.

*OPUB* here is that of the thesis: the fastest measured setting of the cell, by the same runs that
judge the prediction. *performance*: T_OPUB / T; *of the gain*: gain / gain(OPUB); *improvement*:
T_default / T - 1; means over the cells. *slower*: cells slower than their default beyond noise.
*performance (halves)* and *share (halves)* are those of ``autotune evaluate predict``, whose OPUB
is chosen by one half of the runs and valued by the other, and which has no gain on null cells.

*own runs* is no prediction: it chooses by two of the three passes over the cell itself, and is
judged by the third. What it misses is noise, which no model can predict.

``mlp-thesis`` depends on its first weights: with ``--seeds N`` it is trained with N of them, and
the mean and the range are printed.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from autotune.files import write_text
from autotune.prediction import GROUPS, KINDS, Example, TrainingSet, evaluate, training_set
from autotune.prediction.evaluation import EvaluationRow, kept_for
from autotune.prediction.neighbours import ThesisNeighbours
from autotune.prediction.network import ThesisNetwork
from autotune.prediction.scorer import model_values
from autotune.report.figures import Mark, bars
from autotune.wording import share
from benchmarks.common import options, positive, report, run_benchmark, table
from benchmarks.thesis.parameters import PLAN
from benchmarks.thesis.source import printed

WAYS = ("program", "cell")
RANDOM = "random"
OWN = "own runs"
LEAST_GAIN = 0.02
"""A share of a smaller gain would be mostly noise."""
BARS = {RANDOM: "RAND", ThesisNeighbours.kind: "k-NN", ThesisNetwork.kind: "network"}
"""What Figure 4.7 shows of each program."""


@dataclass(frozen=True)
class CellScore:
    """What a method reaches on one cell, as the thesis counts it.

    ``performance`` is T_OPUB / T; ``gain`` is T_default / T - 1; ``of_gain`` is ``gain`` over that
    of OPUB, None where OPUB is not 2 % faster than the default.
    """

    app: str
    performance: float
    gain: float
    of_gain: float | None


def cell_score(example: Example, speed: float) -> CellScore:
    """The score of a speed T_default / T on a cell."""
    best = 1 / float(example.measured_ratios.min())
    gain = speed - 1
    of_gain = gain / (best - 1) if best - 1 >= LEAST_GAIN else None
    return CellScore(example.app, speed / best, gain, of_gain)


def named_score(example: Example, index: int) -> CellScore:
    """The score of the setting with this index."""
    return cell_score(example, 1 / float(example.measured_ratios[index]))


def random_score(example: Example) -> CellScore:
    """The expected score of a random setting (the thesis draws five)."""
    return cell_score(example, float(np.mean(1 / example.measured_ratios[1:])))


def own_runs_score(example: Example) -> CellScore | None:
    """The score of the setting that all passes over the cell but one show to be the fastest, in
    that one; mean over the passes.  None with fewer than two passes."""
    passes = min((len(runs) for runs in example.runs[1:] if runs), default=0)
    whole = [i for i, runs in enumerate(example.runs) if i and len(runs) >= passes]
    if passes < 2 or not whole:
        return None
    speeds = []
    for last in range(passes):
        known = {
            i: statistics.median(
                ratio for at, ratio in enumerate(example.runs[i][:passes]) if at != last
            )
            for i in whole
        }
        choice = min(known, key=known.__getitem__)
        speeds.append(1 / example.runs[choice][last] if known[choice] < 1 else 1.0)
    return cell_score(example, statistics.fmean(speeds))


@dataclass(frozen=True)
class MethodLine:
    """A method's scores on all cells; ``halves`` is its row of ``autotune evaluate predict``, None
    without one."""

    method: str
    scores: tuple[CellScore, ...]
    halves: EvaluationRow | None

    @property
    def performance(self) -> float:
        return statistics.fmean(one.performance for one in self.scores)

    def of(self, app: str) -> float:
        """The mean performance on the cells of a program."""
        return statistics.fmean(one.performance for one in self.scores if one.app == app)

    def to_json(self) -> dict[str, Any]:
        """The figures, as fractions."""
        gains = [one.of_gain for one in self.scores if one.of_gain is not None]
        halves = self.halves
        return {
            "method": self.method,
            "performance": self.performance,
            "worst": min(one.performance for one in self.scores),
            "of the gain": statistics.fmean(gains) if gains else None,
            "improvement": statistics.fmean(one.gain for one in self.scores),
            "performance (halves)": None if halves is None else halves.performance,
            "share (halves)": None if halves is None else halves.share,
            "slower": None if halves is None else halves.slower,
            "on null": None if halves is None else halves.false,
        }


def method_lines(data: TrainingSet, left_out: str, kinds: Sequence[str]) -> list[MethodLine]:
    """Every method with a group left out in turn, then what the cells' own runs choose."""
    by_key = {example.key: example for example in data.examples}
    lines = []
    for row in evaluate(data, left_out, kinds).rows:
        examples = [by_key[verdict.cell] for verdict in row.verdicts]
        if row.method == RANDOM:
            scores = [random_score(example) for example in examples]
        else:
            scores = [
                named_score(example, [s.key for s in example.settings].index(verdict.setting))
                for example, verdict in zip(examples, row.verdicts, strict=True)
            ]
        lines.append(MethodLine(row.method, tuple(scores), row))
    own = [own_runs_score(example) for example in data.examples]
    whole = tuple(score for score in own if score is not None)
    return [*lines, MethodLine(OWN, whole, None)] if len(whole) == len(own) else lines


def seed_performances(data: TrainingSet, left_out: str, seeds: int) -> list[float]:
    """The mean performance of the thesis' network for each of so many first weights."""
    group = GROUPS[left_out]
    results = []
    for seed in range(seeds):
        scores = []
        for out in dict.fromkeys(group(e) for e in data.examples):
            inside = kept_for(data.examples, left_out, out)
            options_ = {**ThesisNetwork.grid[0], "seed": seed}
            model = ThesisNetwork.fit(inside, options_, data.defaults)
            for example in (e for e in data.examples if group(e) == out):
                predicted = model.scores(model_values(example.features), example.settings)
                predicted[0] = 0.0
                scores.append(named_score(example, int(predicted.argmin())).performance)
        results.append(statistics.fmean(scores))
    return results


def program_bars(lines: Sequence[MethodLine], apps: Sequence[str]) -> str:
    """As Figure 4.7: the performance of each method on each program; SVG text."""
    drawn = [line for line in lines if line.method in BARS]
    marks = []
    for app in apps:
        for line in drawn:
            value = line.of(app)
            label = f"{app.removeprefix('nas-').upper()}, {BARS[line.method]}"
            highlight = line.method == ThesisNetwork.kind
            marks.append(Mark(label, value, value, value, share(value), highlight))
    title = "Predicted settings, each program left out, over the fastest measured setting"
    return bars(title, "performance T_OPUB / T", marks)


def shown(line: MethodLine) -> dict[str, str]:
    """A row of the table."""
    thesis = printed()["prediction"]["performance"].get(line.method)
    figures = line.to_json()
    row = {"method": line.method, "thesis": "-" if thesis is None else share(thesis)}
    for name, value in figures.items():
        if name != "method":
            shared = share(value) if isinstance(value, float) else f"{value}"
            row[name] = "-" if value is None else shared
    return row


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("dataset", nargs="?", default=PLAN)
    parser.add_argument("--seeds", type=positive, default=10, help="first weights of the network")
    parser.add_argument("--models", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--picture", metavar="FILE.svg", type=Path, help="as Figure 4.7")
    given = parser.parse_args()
    data = training_set([given.dataset])
    figures: dict[str, Any] = {
        "dataset": given.dataset,
        "data": data.hash,
        "cells": len(data.examples),
        "programs": len(data.apps),
        "null_cells": sum(e.null for e in data.examples),
        "not_used": [note.words for note in data.notes],
    }
    for left_out in WAYS:
        lines = method_lines(data, left_out, given.models)
        print(f"each {left_out} left out: {len(data.examples)} cells of {len(data.apps)} programs")
        table([shown(line) for line in lines])
        ours = {line.method: line.to_json() for line in lines}
        if ThesisNetwork.kind in given.models:
            over_seeds = seed_performances(data, left_out, given.seeds)
            ours[ThesisNetwork.kind]["over seeds"] = over_seeds
            middle = share(statistics.fmean(over_seeds))
            ends = f"{share(min(over_seeds))} .. {share(max(over_seeds))}"
            print(f"{ThesisNetwork.kind} over {given.seeds} first weights: {middle} ({ends})")
        print()
        figures[f"{left_out} left out"] = ours
        if left_out == "program" and given.picture is not None:
            write_text(given.picture, program_bars(lines, data.apps))
    report("thesis prediction", figures, given.json)
    return 0


if __name__ == "__main__":
    run_benchmark(main)
