"""Terminal output of a program's features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from autotune.terminal.render import console, print_line, print_table
from autotune.wording import Metric, count, seconds

if TYPE_CHECKING:
    from autotune.api.feature_documents import FeatureRow
    from runner.trace import Features
    from runner.trace.run import TracedRun


_PRINTED_GROUPS = ("thesis", "extra")


def print_features(features: Features, run: TracedRun) -> None:
    """Print the traced run, its features, and where its communication time went."""
    from runner.trace import SPECS

    out = console()
    figure = run.record.metric_s
    metric_words = Metric.of(run.record).words(figure)
    figure_words = (
        ""
        if figure is None
        else f", metric {metric_words} (slower than usual, because it was traced)"
    )
    print_line(
        f"{features.ranks} ranks on {count(features.nodes, 'node')}; {seconds(features.wall_s)} "
        "between MPI_Init and MPI_Finalize, wall time "
        f"{seconds(run.record.wall_s)}{figure_words}"
    )
    rows = [
        [name, f"{features.values[name]:.6g}", spec.unit, spec.kind]
        for name, spec in SPECS.items()
        if spec.group in _PRINTED_GROUPS and features.values[name]
    ]
    print_table("", ["feature", ">value", "unit", "from"], rows)
    rest = sum(1 for value in features.values.values() if not value)
    print_line(
        f"{rest} features are 0; for all features and their definitions: autotune features --list"
    )
    if features.profile and features.profile.rows:
        from autotune.terminal.profile import profile_table

        print_line()
        out.print(profile_table(features.profile))


def print_feature_list(rows: Sequence[FeatureRow]) -> None:
    """Print every feature with its definition."""
    lines = [[row.name, row.unit, row.kind, row.definition] for row in rows]
    print_table("", ["feature", "unit", "from", "definition"], lines)
