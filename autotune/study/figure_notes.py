"""Notes on the figure of a run: several of them, an unusual one, or one that nobody asked for."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from autotune.config.app import App
from autotune.notes import Note
from autotune.targets.figures import FigureProposal, file_of_figures
from autotune.wording import seconds
from runner.types import MetricChoice, RunRecord


def figure_notes(record: RunRecord, app: App) -> list[Note]:
    """What a user should know of the figure of a valid run; ``app`` says which one counts."""
    if record.metric_s is None:
        return []
    several = (record.metric_count or 0) > 1 and app.metric_choice is None
    notes = [several_note(record.metric_count or 0, record.metric_rate)] if several else []
    unusual = too_long_note(record, app.metric_choice) or too_short_note(record)
    return notes if unusual is None else [*notes, unusual]


def output_notes(
    record: RunRecord, proposal: FigureProposal | None, program: Sequence[str]
) -> list[Note]:
    """What the output of a valid run says: a figure that does not count yet, a wrong result.

    ``proposal`` is that of the output, and ``program`` the command line.
    """
    note = None if record.metric_s is not None else proposal_note(proposal, record, program)
    notes = [] if note is None else [note]
    if proposal is not None and proposal.right is False:
        notes.append(wrong_note(proposal))
    return notes


def proposal_note(
    proposal: FigureProposal | None, record: RunRecord, program: Sequence[str] = ()
) -> Note | None:
    """The proposal of the figure that a program prints, while the wall time counts; else None."""
    if proposal is None:
        known = file_of_figures(program)
        if known is None or record.stdout_tail.strip():
            return None
        place = known.file or known.stream
        command = (
            f"{shlex.join(program)} && cat {known.file}"
            if known.file
            else (f"{shlex.join(program)} 2>&1")
        )
        return Note(
            "metric.elsewhere",
            f"{known.program} prints its figure to {place}, where --metric does not look; with "
            f"this program it is on standard output:\n  -- sh -c {shlex.quote(command)}",
            {"program": known.program, "place": place},
        )
    who = proposal.program or "the program"
    if proposal.source:
        words = (
            f"{who} prints its own figure on {proposal.source}, where --metric does not look; with "
            f"this program it is on standard output:\n  -- sh -c "
            f"{shlex.quote(f'{shlex.join(program)} 2>&1')}"
        )
        return Note("metric.elsewhere", words, {"program": who, "place": proposal.source})
    caution = f".\n{proposal.caution}" if proposal.caution else ""
    words = (
        f"the wall time counts. {who[0].upper()}{who[1:]} prints its own figure, "
        f"{proposal.figure.shown}; --metric auto takes it, as do\n  "
        f"{shlex.join(proposal.options)}{caution}"
    )
    return Note("metric.proposed", words, proposal.to_json())


def wrong_note(proposal: FigureProposal) -> Note:
    """The note that a program says of its own result that it is wrong."""
    absent = (
        ""
        if proposal.absent is None
        else (f"; {shlex.join(('--verify-absent', proposal.absent))} makes such a run invalid")
    )
    who = proposal.program or "the program"
    return Note(
        "output.says_wrong",
        f"{who} says that the result of this run is not right{absent}",
        {"program": proposal.program, "pattern": proposal.absent},
    )


def several_note(count: int, rate: bool) -> Note:
    """The message for a run with several figures (``count`` of them) if nobody chose one."""
    option, choice = ("--metric-rate", "smallest") if rate else ("--metric", "largest")
    return Note(
        "metric.several",
        f"{option} matched {count} times in one run (every rank or every step prints "
        f"it); the {choice} value counts, that of the slowest; --metric-choice last, first, sum, "
        "mean, min or max selects another",
        {"matches": count, "choice": choice},
    )


def too_long_note(record: RunRecord, choice: MetricChoice | None) -> Note | None:
    """The message for a figure longer than its run, which is no time in seconds; None for others.

    A sum may be one over ranks.
    """
    figure, wall = record.metric_s, record.wall_s
    most = 1.5 * wall * ((record.world_size or 1) if choice == "sum" else 1)
    no_time = record.metric_rate or bool(record.metric_unit)
    if figure is None or no_time or figure <= most:
        return None
    return Note(
        "metric.no_seconds",
        f"--metric found {figure:g} in a run of {seconds(wall)}. It is read as "
        "seconds, and smaller is better. If it is in ms or us, gains are right and "
        "times are not; a rate (Gflop/s) needs --metric-rate",
        {"figure": figure, "wall_s": wall},
    )


SHORTEST_S = 1e-3
"""A figure below this time in seconds says more of clocks and wake-ups than of parameters."""


def too_short_note(record: RunRecord) -> Note | None:
    """The message for a figure that is a very short time; None for others."""
    figure = record.metric_s
    if figure is None or record.metric_rate or record.metric_unit or figure >= SHORTEST_S:
        return None
    return Note(
        "metric.very_short",
        f"the figure of this run is {seconds(figure)}: clocks and wake-ups of processes count as "
        "much as parameters in it. Let the program do more (steps, repetitions, a larger input)",
        {"figure_s": figure, "shortest_s": SHORTEST_S},
    )
