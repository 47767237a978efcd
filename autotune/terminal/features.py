"""Terminal output of a program's features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from autotune.terminal.render import console, print_line, print_table
from autotune.wording import Metric, count, seconds, share, size_words

if TYPE_CHECKING:
    from autotune.api.feature_documents import FeatureRow
    from runner.trace import Features
    from runner.trace.run import TracedRun
    from runner.trace.steps import Steps


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
    if features.steps is not None:
        print_line(_steps_words(features, features.steps))
    if features.profile and features.profile.rows:
        from autotune.terminal.profile import profile_table

        print_line()
        out.print(profile_table(features.profile))


def _steps_words(features: Features, steps: Steps) -> str:
    """How a run goes on, at each step."""
    values = features.values
    neighbours = values["p2p_neighbours"]
    each = neighbours * steps.steps
    messages = (
        f"{values['p2p_messages'] / each:.3g} messages and "
        f"{size_words(values['p2p_volume'] / each)} to each of {neighbours:.3g} neighbours, "
        if neighbours
        else ""
    )
    return (
        f"{steps.steps:.6g} steps; in each a rank computes {seconds(steps.step_s)} and waits for "
        f"others {steps.depth:.3g} times: {messages}"
        f"{values['coll_calls'] / steps.steps:.3g} collectives; computation differs between steps "
        f"by {share(steps.variation)}, and the most of a rank is {steps.imbalance:.3g} times the "
        "mean"
    )


def print_feature_list(rows: Sequence[FeatureRow]) -> None:
    """Print every feature with its definition."""
    lines = [[row.name, row.unit, row.kind, row.definition] for row in rows]
    print_table("", ["feature", "unit", "from", "definition"], lines)
