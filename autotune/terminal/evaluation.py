"""Terminal output of an evaluation of predictions."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from autotune.terminal.render import print_line, print_message, print_table
from autotune.wording import remaining

if TYPE_CHECKING:
    from autotune.prediction import Evaluation


class CountingWatcher:
    """A watcher that prints the current group and the expected remaining time."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._began = time.monotonic()
        self._group_count = 0

    def __call__(self, words: str) -> None:
        total = int(words.split(" of ")[1].split(":")[0])
        left = ""
        if self._group_count:
            elapsed_s = time.monotonic() - self._began
            rest_s = elapsed_s / self._group_count * (total - self._group_count)
            left = f", about {remaining(rest_s)} left"
        self._group_count += 1
        if not self._quiet:
            print_message(f"{words}{left}")


def print_evaluation(evaluation: Evaluation) -> None:
    """Print the scores of the methods, and what they mean."""
    columns = ["method", ">performance", ">worst", ">share", ">lower", ">slower", ">as stated"]
    columns += [">on null", ">covered"]
    rows = [
        [
            r.method,
            f"{r.performance:.1%}",
            f"{r.worst:.1%}",
            "-" if r.share is None else f"{r.share:.1%}",
            "-" if r.share_lower is None else f"{r.share_lower:.0%}",
            str(r.slower),
            f"{r.harm:.1f}" if r.harm else "-",
            str(r.false),
            "/".join(map(str, r.interval_hits)) if r.interval_hits[1] else "-",
        ]
        for r in evaluation.rows
    ]
    title = f"{evaluation.cells} cells, {evaluation.null_cells} of them null"
    print_table(f"{title}; left out: {evaluation.left_out}", columns, rows)
    print_line(
        "performance: T_OPUB / T, mean over cells; share: gain / gain(OPUB), mean over "
        "cells with a possible gain; lower: lower end of its mean over programs (95 %); "
        "slower: number of cells that are slower than their default beyond noise; as "
        "stated: how many the stated chances expect; on null: number of settings named where "
        "the default is best; covered: programs whose stated 95 % interval holds the measured "
        "gain"
    )


def evaluation_picture(evaluation: Evaluation) -> str:
    """The scores as a figure; SVG text."""
    from autotune.report.figures import Mark, dots

    marks = [
        Mark(
            r.method,
            r.performance,
            r.worst,
            max(v.performance for v in r.verdicts),
            f"{r.performance:.1%}",
        )
        for r in evaluation.rows
    ]
    title = f"Predicted settings, {evaluation.left_out} left out: mean, worst and best cell"
    return dots(title, "performance ratio T_OPUB / T", marks, reference=1.0)
