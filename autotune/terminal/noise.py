"""Terminal output of the noise of a program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from autotune.notes import Note
from autotune.terminal.render import print_line, print_note, print_table
from autotune.wording import UNGUARDED, seconds

if TYPE_CHECKING:
    from autotune.comparison.noise import NoiseReport


def print_measured_noise(report: NoiseReport) -> None:
    """Print the time of the default and its noise."""
    from autotune.stats import estimate_words

    words = estimate_words(report.seconds)
    if report.metric.unit != "s":
        metric_words, estimate = report.metric.words, report.seconds
        span = "interval" if estimate.interval else "range"
        # The largest time is the smallest rate.
        median, high, low = map(metric_words, (estimate.median, estimate.hi, estimate.lo))
        words = f"{median}, {span} {high} to {low}, {estimate.n} runs"
    print_line(f"default: {words}", bold=True)
    print_noise(report.to_json())


def print_noise(data: Mapping[str, Any]) -> None:
    """Print the document of a ``NoiseReport``; raises LookupError or TypeError for others."""
    print_line(
        f"neighbouring runs differ by {data['spread'] * 100:.1f} %; one run takes "
        f"{seconds(data['run_wall_s'])} of wall time; {data['runs_rejected']} of "
        f"{data['runs'] + data['runs_rejected']} runs were rejected for foreign load"
    )
    if not data["guard"]:
        print_line(f"{UNGUARDED}: part of this noise may come from other programs")
    if data["resolution_s"]:
        print_line(f"the measured figure has a resolution of {seconds(data['resolution_s'])}")
    rows = [
        [f"{r['gain'] * 100:.1f} %", str(r["blocks"]), str(r["runs"]), seconds(r["seconds"])]
        for r in data["resolvable"]
    ]
    title = "smallest detectable gain of one setting (with 80 % probability)"
    print_table(title, [">gain", ">pairs", ">runs", ">time"], rows)
    for note in map(Note.from_json, data["warnings"]):
        print_note(note)
