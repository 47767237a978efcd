"""``autotune run``: one guarded run of one setting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import typer
from pydantic import Field

from autotune.cli.options import JsonOut, Quiet, StoreUrl
from autotune.cli.requests import takes_request
from autotune.document import Document, ValuesByName
from autotune.notes import Say
from autotune.study.request import RunRequest
from autotune.targets.rows import ProposedFigure
from autotune.targets.target import NOT_PARAMETERS
from autotune.terminal.render import (
    print_line,
    print_message,
    print_table,
    to_stderr,
    write_json,
)
from autotune.wording import UNGUARDED, Metric, seconds
from runner.types import LIBRARY, RunRecord


class RunDocument(Document):
    """A run of one setting."""

    setting: ValuesByName
    """Values by parameter; {} is the default."""
    run: RunRecord = Field(json_schema_extra={"properties": {"printed": {"type": "null"}}})
    """The run, without the lines that the program printed."""
    proposed_metric: ProposedFigure | None
    """The figure that the program prints, while the wall time counts; null if none is certain."""


@takes_request
def run(
    request: RunRequest,
    quiet: Quiet = False,
    store: StoreUrl = None,
    json_out: JsonOut = None,
) -> None:
    """Run a program once with one setting; show the result and which parameters took effect."""
    from autotune.api.figures import measured_target
    from autotune.api.run import one_run
    from autotune.api.target import silent_say
    from autotune.store import Store
    from autotune.targets.figures import figure_notes, output_notes, proposal_of
    from autotune.targets.layout import replaced_note
    from autotune.targets.target import limit_note

    guard = request.guard
    tell: Say = silent_say if quiet else to_stderr
    notes: Say = silent_say if quiet or json_out == "-" else to_stderr
    with Store.open(store) as opened:
        target = measured_target(request.target, opened, tell, guard=guard)
        known = target.space(request.space)
        if target.timeout_s is None:
            notes(limit_note(target))
        if replaced := replaced_note(known):
            notes(replaced)
        try:
            prepared = one_run(request.setting, target, known, opened, guard=guard, tell=tell)
            done = prepared.measure(tell)
        except KeyboardInterrupt:
            _say("\nInterrupted: the program was ended; nothing was stored.")
            raise
    record = done.record
    proposal = proposal_of(record) if record.valid else None
    if json_out:
        proposed = proposal if record.metric_s is None else None
        document = RunDocument(
            setting=done.setting.to_json(),
            run=replace(record, printed=None),
            proposed_metric=None if proposed is None else proposed.to_json(),
        )
        write_json(document, json_out)
    if json_out != "-":
        _print(record, guard)
        _print_effects(record, done.space.launched(done.setting))
        if record.valid:
            printed = output_notes(record, proposal, target.program)
            for note in (*figure_notes(record, target.app), *printed):
                notes(note)
    if not record.valid:
        raise typer.Exit(1)


def _say(words: str) -> None:
    print_message(words)


def _print(record: RunRecord, guard: bool) -> None:
    from autotune.targets.metric import failure_lines
    from autotune.terminal.transports import carried_by, is_carrier, print_transports

    words = f"{record.state}" + (f": {record.reason}" if record.reason else "")
    print_line(words, bold=True)
    figure = (
        "" if record.metric_s is None else f"metric {Metric.of(record).words(record.metric_s)}, "
    )
    verified = {True: "verified", False: "NOT verified", None: "not verified (no --verify)"}
    print_line(
        f"{figure}wall time {seconds(record.wall_s)}, CPU time "
        f"{seconds(record.cpu_s)}, foreign load {seconds(record.foreign_cpu_s)}, "
        f"{verified[record.verified]}"
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


_TOLD = NOT_PARAMETERS - {"env"} | {LIBRARY}
"""Parts of a launched setting whose effect is read back, or seen in the launch itself."""


def _print_effects(record: RunRecord, launched: Mapping[str, Mapping[str, str]]) -> None:
    """Print the inactive parameters, and those that cannot be observed."""
    from autotune.study.inactive import inactive_words

    lines = [inactive_words(name, back) for name, back in sorted(record.read_back.items())]
    unseen = [pair for g in launched if g not in _TOLD for pair in launched[g].items()]
    threads = record.read_back.get("threads")
    if threads is not None and threads.state == "not observable":
        lines.append(f"threads: {threads.source}")
    lines += [f"{n}={v}: not observable" for n, v in unseen if n not in record.read_back]
    for line in filter(None, lines):
        print_line(line)
