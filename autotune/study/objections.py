"""Objections: reasons why a setting that won its proof is not recommended.

A proof compares figures. It does not see that the figures are wrong: that a setting changes the
results, that a program did not do the same work twice, that a rate was read as a time. Each check
reads the runs of a setting and of its reference and says what it sees. A finding that stops is an
objection: nothing is recommended then. Any other finding is a note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from autotune.notes import Note
from autotune.space import DEFAULT, Setting
from autotune.study.first_run import files_note, longer_note, resumed_note
from autotune.study.operations import objection
from autotune.study.output_check import output_difference
from autotune.study.run_history import RunHistory
from autotune.study.wall_contradiction import wall_contradiction


@dataclass(frozen=True)
class Finding:
    """What one check says; ``stops``: whether it is an objection."""

    note: Note
    stops: bool


Check = Callable[[RunHistory, Setting, Setting], Iterable[Finding]]
"""A function of the run history, a setting and its reference."""


def wall_time(history: RunHistory, setting: Setting, reference: Setting) -> Iterable[Finding]:
    """Whether the metric of the setting contradicts its wall time."""
    found = wall_contradiction(history, setting, reference)
    return () if found is None else (Finding(found[0], stops=found[1]),)


def resumed_work(history: RunHistory, setting: Setting, reference: Setting) -> Iterator[Finding]:
    """Whether later runs continue from files of the first one (:mod:`autotune.study.first_run`)."""
    firsts = history.first_runs
    wrote = any(first.files for first in firsts)
    both = False
    for one in (reference, setting):
        longer = history.longer_first(one.key)
        if longer is None:
            continue
        who = "the default" if one == DEFAULT else one.key
        both = both or wrote
        note = resumed_note(longer, firsts, who) if wrote else longer_note(longer, who)
        yield Finding(note, stops=wrote)
    remark = None if both else files_note(firsts)
    if remark is not None:
        yield Finding(remark, stops=False)


def output(history: RunHistory, setting: Setting, reference: Setting) -> Iterable[Finding]:
    """Whether the setting changes what the program prints."""
    found = output_difference(history, setting, reference)
    return () if found is None else (Finding(found[0], stops=found[1]),)


def operations(history: RunHistory, setting: Setting, reference: Setting) -> Iterable[Finding]:
    """Stops a setting that is wrong for an operation that the program may have."""
    note = objection(history, setting)
    return () if note is None else (Finding(note, stops=True),)


CHECKS: tuple[Check, ...] = (operations, wall_time, output, resumed_work)
"""The checks, in the order in which their findings are shown."""


def findings_on(
    history: RunHistory, setting: Setting, reference: Setting = DEFAULT
) -> tuple[Finding, ...]:
    """What all checks say of a setting that is faster than its reference."""
    return tuple(one for check in CHECKS for one in check(history, setting, reference))


def objections(findings: Iterable[Finding]) -> list[Note]:
    """The findings that stop a recommendation."""
    return [one.note for one in findings if one.stops]


def remarks(findings: Iterable[Finding]) -> list[Note]:
    """The findings that do not."""
    return [one.note for one in findings if not one.stops]
