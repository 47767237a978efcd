"""``autotune run``: one guarded run of one setting."""

from __future__ import annotations

from dataclasses import replace

import typer
from pydantic import Field

from autotune.cli.options import JsonOut, Quiet, StoreUrl
from autotune.cli.requests import takes_request
from autotune.document import Document, ValuesByName
from autotune.notes import Say
from autotune.study.request import RunRequest
from autotune.targets.rows import ProposedFigure
from autotune.terminal.render import print_message, to_stderr, write_json
from autotune.terminal.single_run import print_effects, print_run
from runner.types import RunRecord


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
        print_run(record, guard)
        print_effects(record, done.space.launched(done.setting))
        if record.valid:
            printed = output_notes(record, proposal, target.program)
            for note in (*figure_notes(record, target.app), *printed):
                notes(note)
    if not record.valid:
        raise typer.Exit(1)


def _say(words: str) -> None:
    print_message(words)
