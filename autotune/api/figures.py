"""``--metric auto``: the figure of merit that a program prints, taken for its metric."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

from autotune.api.run import one_run
from autotune.api.target import find_target, silent_say, to_stderr
from autotune.errors import UsageError
from autotune.notes import Note, Say
from autotune.store import Store
from autotune.targets.figures import (
    STANDARD_ERROR,
    FigureProposal,
    file_of_figures,
    known_figure,
    proposal_note,
    proposal_of,
)
from autotune.targets.launcher_line import program_of
from autotune.targets.metric import default_failure, figure_lines
from autotune.targets.request import AUTO, TargetRequest
from autotune.targets.target import Target
from autotune.targets.wrapped_launcher import is_launcher
from runner.files import read_tail
from runner.types import RunRecord

DOCUMENT = "figure-of-merit"
"""The document of a study of one run: the options that read the figure of the program."""
JOIN = 'exec "$@" 2>&1'
"""A shell's text that joins standard error of a program with standard output."""
PRINT = (
    '"$@" || exit; test "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${SLURM_PROCID:-0}}}" != 0 || cat "$0"'
)
"""A shell's text that lets the first rank print a file after its program."""
_FILE_BYTES = 1 << 20
"""Of the end of a file with a program's figures."""


def with_figure(
    request: TargetRequest, store: Store, say: Say = to_stderr, *, guard: bool = True
) -> TargetRequest:
    """The request with the metric of its program in the place of ``auto``.

    Patterns that the request names itself stay.  The program runs once with the default, unless
    such a run is in the database.  A figure that it writes to standard error or into a file is
    printed on standard output in the launches of the request.  Raises UsageError if no figure of
    its output is certain, WorkError if the run fails.
    """
    if request.metric != AUTO:
        return request
    plain = request.model_copy(update={"metric": None, "metric_choice": None})
    target = find_target(plain, silent_say)
    if target.app.figure is not None:
        return request.model_copy(update={"metric": None})
    run = one_run("default", target, target.space(None), store, guard=guard)
    figure_record = None
    if store.has_study(run.key):
        figure_record = store.stored_document(store.study(run.key).id, DOCUMENT)
    if figure_record is None:
        say(
            Note(
                "metric.auto_run",
                f"one run shows what {target.app.name} prints",
                {"program": target.app.name},
            )
        )
        record = run.measure(say).record
        if not record.valid:
            raise default_failure("the run that shows what the program prints failed", record)
        proposal = proposal_of(record, target.program) or _in_file(record, target)
        if proposal is None or (proposal.source and request.program is None):
            lines = "".join(f"\n{line}" for line in _advice(record, target))
            raise UsageError(
                f"--metric auto: no figure in the output of {target.app.name} is certain; expected "
                f"--metric RE or --metric-rate RE, or neither: then the wall time counts{lines}",
                code="metric.auto_none",
            )
        figure_record = store.store_document(store.study(run.key).id, DOCUMENT, _options(proposal))
    place, program = figure_record.get("place"), request.program
    figure_request = plain.model_copy(
        update={
            "program": program and _with_output(program, place),
            # Behind a shell, the library of a program that is a script would not be seen.
            "mpi": request.mpi if place is None else request.mpi or target.library.bin,
            "metric": figure_record["metric"],
            "metric_rate": figure_record["metric_rate"],
            "metric_choice": request.metric_choice or figure_record["metric_choice"],
            "verify": request.verify or figure_record["verify"],
            "verify_absent": request.verify_absent or figure_record["verify_absent"],
        }
    )
    options = {
        "--metric": figure_request.metric,
        "--metric-rate": figure_request.metric_rate,
        "--metric-choice": figure_request.metric_choice,
        "--verify": figure_request.verify,
        "--verify-absent": figure_request.verify_absent,
    }
    words = shlex.join(word for pair in options.items() if pair[1] for word in map(str, pair))
    who = f" ({figure_record['program']})" if figure_record["program"] else ""
    note_words = f"metric of {target.app.name}{who}:\n  {words}"
    if place is not None:
        before = shlex.join(_words_before(place))
        note_words += f"\nits figure is in {place}; it is printed by\n  {before} PROGRAM ARGS"
    say(Note("metric.auto", note_words, figure_record))
    return figure_request


def _in_file(record: RunRecord, target: Target) -> FigureProposal | None:
    """The figure that a known program wrote into a file of its directory in this run, else None."""
    program_file = file_of_figures(target.program)
    if program_file is None or not program_file.file:
        return None
    path = Path(target.cwd, program_file.file)
    try:
        if path.stat().st_mtime < record.started_at:
            return None  # Of an earlier run.
        lines = read_tail(path, _FILE_BYTES).splitlines()
    except OSError:
        return None
    figure = known_figure(program_file, lines)
    return None if figure is None else replace(figure, source=program_file.file)


def _advice(record: RunRecord, target: Target) -> list[str]:
    """What the output has in place of a certain figure, or where the program prints it."""
    note = proposal_note(None, record, target.program)
    return figure_lines(record) if note is None else [note.words]


def _with_output(words: tuple[str, ...], place: str | None) -> tuple[str, ...]:
    """A launch line that prints on standard output what its program writes to ``place``."""
    if place is None:
        return words
    own = program_of(words) if is_launcher(words[0]) else words
    return (*words[: len(words) - len(own)], *_words_before(place), *own)


def _words_before(place: str) -> tuple[str, ...]:
    """The words before a program that writes its figure to standard error, or else into a file."""
    return ("sh", "-c", *((JOIN, "sh") if place == STANDARD_ERROR else (PRINT, place)))


def measured_target(
    request: TargetRequest, store: Store, say: Say = to_stderr, *, guard: bool = True
) -> Target:
    """The target of a request whose metric may be ``auto``; raises as :func:`with_figure`."""
    return find_target(with_figure(request, store, say, guard=guard), say)


def _options(proposal: FigureProposal) -> dict[str, str | None]:
    figure = proposal.figure
    return {
        "program": proposal.program,
        "metric": None if figure.rate else figure.metric,
        "metric_rate": figure.metric if figure.rate else None,
        "metric_choice": figure.choice,
        "verify": proposal.verify,
        "verify_absent": proposal.absent,
        **({"place": proposal.source} if proposal.source else {}),
    }
