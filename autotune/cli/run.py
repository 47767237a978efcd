"""``autotune run``: one guarded run of one setting."""

from __future__ import annotations

import typer

from autotune.cli.options import JsonOut, NoCheck, Quiet, StoreUrl
from autotune.cli.requests import takes_request
from autotune.notes import Say
from autotune.study.study_request import RunRequest
from autotune.terminal.render import interruption, to_stderr, write_document
from autotune.terminal.single_run import print_effects, print_run


@takes_request
def run(
    request: RunRequest,
    no_check: NoCheck = False,
    quiet: Quiet = False,
    store: StoreUrl = None,
    json_out: JsonOut = None,
) -> None:
    """Run a program once with one setting; show the result and which parameters took effect."""
    from autotune.api.figures import measured_target
    from autotune.api.run import one_run, run_document
    from autotune.api.target import silent_say
    from autotune.check.study_check import StudyCheck
    from autotune.store import Store
    from autotune.targets.figures import figure_notes, output_notes, proposal_of
    from autotune.targets.layout import replaced_note
    from autotune.targets.target import limit_note

    guard = request.guard
    tell: Say = silent_say if quiet else to_stderr
    notes: Say = silent_say if quiet or json_out == "-" else to_stderr
    with Store.open(store) as database:
        target = measured_target(request.target, database, tell, guard=guard)
        space = target.space(request.space)
        if target.timeout_s is None:
            notes(limit_note(target))
        if layout_note := replaced_note(space):
            notes(layout_note)
        with interruption("\nInterrupted: the program was ended; nothing was stored."):
            prepared_run = one_run(request.setting, target, space, database, guard=guard, tell=tell)
            check = StudyCheck(target, prepared_run.space, notes, prepared_run.setting)
            if not no_check:
                check.begin()
            guarded_run = prepared_run.measure(tell)
    record = guarded_run.record
    proposal = proposal_of(record, target.program) if record.valid else None
    if write_document(run_document(guarded_run, proposal, target.choice_row), json_out):
        print_run(record, guard)
        print_effects(record, guarded_run.space.launched(guarded_run.setting))
        if not no_check:
            check.ran(record)
        if record.valid:
            print_notes = output_notes(record, proposal, target.program)
            for note in (*figure_notes(record, target.app), *print_notes):
                notes(note)
    if not record.valid:
        raise typer.Exit(1)
