"""Merged lines: the corrections of several findings in one line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

_PLACEMENT = frozenset(
    {
        *("map-by", "bind-to", "rank-by", "cpu-bind", "c", "cpus-per-task", "cpu-set", "cpu-list"),
        *("rankfile", "rf", "taskset", "numactl", "I_MPI_PIN", "I_MPI_PIN_DOMAIN", "host", "H"),
        *("hwloc_base_cpu_list", "hwloc_default_cpu_list", "oversubscribe", "n", "np"),
    }
)
"""What says where ranks are: the first correction of it counts."""


class _Edit(NamedTuple):
    """Words ``[first, end)`` of the line, and what takes their place."""

    first: int
    end: int
    words: tuple[str, ...]


def merged_line(
    words: Sequence[str], corrections: Iterable[Sequence[str]]
) -> tuple[str, ...] | None:
    """The line with all corrections that do not touch the same thing, the first ones before others.

    None if fewer than two of them are left.
    """
    edits: list[_Edit] = []
    subjects: set[str] = set()
    merged = 0
    for correction in corrections:
        new = [edit for edit in _edits(words, correction) if edit not in edits]
        about = {name for edit in new for name in _subjects(words, edit)}
        if not new or about & subjects or any(_overlap(a, b) for a in new for b in edits):
            continue
        edits += new
        subjects |= about
        merged += 1
    if merged < 2:
        return None
    line = list(words)
    # From the end on, so that positions stay; of insertions at one place the first stands first.
    for _, edit in sorted(enumerate(edits), key=lambda pair: (-pair[1].first, -pair[0])):
        line[edit.first : edit.end] = edit.words
    return tuple(line)


def _edits(old: Sequence[str], new: Sequence[str]) -> list[_Edit]:
    codes = SequenceMatcher(None, list(old), list(new), autojunk=False).get_opcodes()
    return [_Edit(a, b, tuple(new[c:d])) for kind, a, b, c, d in codes if kind != "equal"]


def _subjects(words: Sequence[str], edit: _Edit) -> Iterator[str]:
    """What an edit is about: names of options and variables; one name for all of placement."""
    before = words[edit.first - 1 : edit.first] if edit.first else []
    for word in (
        *(word for word in before if word.startswith("-")),
        *words[edit.first : edit.end],
        *edit.words,
    ):
        name = word.lstrip("-").partition("=")[0]
        if name in _PLACEMENT:
            yield "placement"
        elif "=" in word or word.isidentifier():
            yield name


def _overlap(one: _Edit, other: _Edit) -> bool:
    return one.first < other.end and other.first < one.end
