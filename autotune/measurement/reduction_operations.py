"""Whether the operations of a program's reductions commute, as far as a study knows.

The warm-up of a study shows it: the profiling library sees every operation that the program
creates. Operations that MPI predefines commute. It is not known of a program that is linked
statically, of one that starts other processes, and without a compiler. The user can say that all
operations commute; a warm-up that shows one that does not is believed first.

Levels that are wrong for operations that do not commute (:mod:`autotune.space.commutativity`) are
searched only if none occurs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from autotune.measurement.run_history import WARMUP, RunHistory
from autotune.notes import Note
from autotune.space import Setting, Space
from autotune.space.commutativity import commutative_levels, commutative_values
from autotune.store.keys import OPERATIONS

OperationsKind = Literal["commute", "stated", "ordered", "unknown"]
"""All operations of the run commute; the user says so; one does not commute; it is not known."""


def known_of(commutes: bool | None, user_says: bool) -> OperationsKind:
    """What is known after a warm-up: ``commutes`` in it, ``user_says`` by the user."""
    if commutes is not None:
        return "commute" if commutes else "ordered"
    return "stated" if user_says else "unknown"


def first_kind(history: RunHistory) -> OperationsKind | None:
    """What the study's first warm-up showed, which decides its space; None before it."""
    return next(iter(_words(history)), None)


def operations_kind(history: RunHistory) -> OperationsKind:
    """What all warm-ups together show."""
    words = _words(history)
    return "ordered" if "ordered" in words else next(iter(words), "unknown")


def _words(history: RunHistory) -> list[OperationsKind]:
    marks = [e.record.extra.get(OPERATIONS) for e in history.entries if e.kind == WARMUP]
    every: tuple[OperationsKind, ...] = ("commute", "stated", "ordered", "unknown")
    return [word for mark in marks for word in every if mark == word]


def allows(word: OperationsKind | None) -> bool:
    """Whether levels that need operations which commute may be used."""
    return word in ("commute", "stated")


def objection(history: RunHistory, setting: Setting) -> Note | None:
    """Why a setting must not be recommended: it may give wrong results; None if it may."""
    values = commutative_values(setting)
    word = operations_kind(history)
    if not values or allows(word):
        return None
    words = (
        f"{_assignments(values)}: wrong results with operations that do not commute, and "
        f"{_why(word)}"
    )
    return _note(word, words, {"values": values})


def remarks_on(space: Space, history: RunHistory) -> list[Note]:
    """What the answer of a search over ``space``, as it was asked for, says of operations."""
    levels = commutative_levels(space)
    word = first_kind(history)
    if not levels or word in (None, "commute"):
        return []
    data = {"levels": {name: list(values) for name, values in levels.items()}}
    if word == "stated":
        words = (
            f"--commutative-only: all operations of the program are said to commute. "
            f"{_names(levels)} had levels that give wrong results otherwise"
        )
        return [Note("operations.stated", words, data)]
    assert word is not None
    words = (
        f"left out: levels of {_names(levels)} that give wrong results with operations that do "
        f"not commute, because {_why(word)}"
    )
    return [_note(word, words, data)]


def _note(word: OperationsKind, words: str, data: dict[str, Any]) -> Note:
    if word == "ordered":
        return Note("operations.ordered", words, data)
    return Note("operations.unknown", words, data)


def _why(word: OperationsKind) -> str:
    if word == "ordered":
        return "the program creates such an operation (MPI_Op_create), whatever an option says"
    return "it is not known whether the program has one (--commutative-only says that it has none)"


def _names(levels: Mapping[str, object]) -> str:
    return ", ".join(sorted(levels))


def _assignments(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(values.items()))
