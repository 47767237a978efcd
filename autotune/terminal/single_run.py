"""Terminal output of a single run."""

from __future__ import annotations

from collections.abc import Mapping

from autotune.targets.target import NOT_PARAMETERS
from autotune.terminal.render import print_line, print_table
from autotune.wording import UNGUARDED, Metric, seconds
from runner.types import LIBRARY, RunRecord


def print_run(record: RunRecord, guard: bool) -> None:
    """Print how a run ended, its figures, and what took effect."""
    from autotune.api.carriers import carried_by, is_carrier
    from autotune.targets.metric import failure_lines
    from autotune.terminal.transports import print_transports

    words = f"{record.state}" + (f": {record.reason}" if record.reason else "")
    print_line(words, bold=True)
    figure = (
        "" if record.metric_s is None else f"metric {Metric.of(record).words(record.metric_s)}, "
    )
    verdicts = {True: "verified", False: "NOT verified", None: "not verified (no --verify)"}
    print_line(
        f"{figure}wall time {seconds(record.wall_s)}, CPU time "
        f"{seconds(record.cpu_s)}, foreign load {seconds(record.foreign_cpu_s)}, "
        f"{verdicts[record.verified]}"
    )
    if not guard and record.foreign_cpu_s > record.foreign_limit_s:
        print_line(
            f"{UNGUARDED}, which would have rejected this run (limit: "
            f"{seconds(record.foreign_limit_s)} of foreign load)"
        )
    if record.bindings:
        print_line(f"ranks bound to CPUs: {' | '.join(record.bindings)}")
    rows = [
        [name, r.requested, r.effective or "-", r.state]
        for name, r in sorted(record.read_back.items())
        if not is_carrier(name)
    ]
    if rows:
        print_table("", ["parameter", "requested", "in force", "state"], rows)
    print_transports({"this run": carried_by(record.read_back)})
    if record.inherited:
        names = ", ".join(f"{k}={v}" for k, v in sorted(record.inherited.items()))
        print_line(f"inherited settings in force: {names}")
    for line in failure_lines(record):
        print_line(line, whole=line.startswith(" "))


_OBSERVED_GROUPS = NOT_PARAMETERS - {"env"} | {LIBRARY}
"""Parts of a launched setting whose effect is read back, or seen in the launch itself."""


def print_effects(record: RunRecord, groups: Mapping[str, Mapping[str, str]]) -> None:
    """Print the inactive parameters, and those that cannot be observed."""
    from autotune.measurement.idle_parameters import inactive_words

    lines = [inactive_words(name, back) for name, back in sorted(record.read_back.items())]
    unseen = [pair for g in groups if g not in _OBSERVED_GROUPS for pair in groups[g].items()]
    threads = record.read_back.get("threads")
    if threads is not None and threads.state == "not observable":
        lines.append(f"threads: {threads.source}")
    lines += [f"{n}={v}: not observable" for n, v in unseen if n not in record.read_back]
    for line in filter(None, lines):
        print_line(line)
