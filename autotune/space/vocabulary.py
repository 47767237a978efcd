"""The vocabulary of layouts: its words, and the rules of a space that speak it.

A layout says how a program uses the cores that it has. Each program has parameters of its own for
that (``odf``, ``side``, ``edge_y``); the words are common to all. The section ``[layout]`` of a
space file (:mod:`autotune.space.layout_table`) says how its parameters follow from each other:
:mod:`autotune.space.layout` evaluates it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from autotune.space.expression import Expr
from autotune.space.setting import Value


@dataclass(frozen=True)
class Word:
    """One word of the vocabulary. ``values`` are the texts that it may have; empty: a number.
    ``of_tasks``: it has a value only where the model is tasks or chunks."""

    name: str
    help: str
    values: tuple[str, ...] = ()
    of_tasks: bool = False

    @property
    def is_text(self) -> bool:
        """True if values are texts and not numbers."""
        return bool(self.values)


_WORDS = (
    Word(
        "model",
        "how processes work together: flat MPI, split phase (computes while messages travel), "
        "threads that share a process's work, tasks, or chunks that idle ranks take",
        ("flat", "split", "threads", "tasks", "chunks"),
    ),
    Word("processes", "processes on each node"),
    Word("workers", "workers or threads in each process"),
    Word("factor", "over-decomposition: ranks or tasks for each worker"),
    Word("cut_x", "parts of a process's share along x, where memory is contiguous; 0: not cut"),
    Word("cut_y", "parts of a process's share along y; 0: not cut"),
    Word("cut_z", "parts of a process's share along z; 0: not cut"),
    Word("chunk", "bytes of the smallest usual message between processes, or of a task's data"),
    Word(
        "order",
        "which ready task comes first: any, in turn, those with messages first or last, "
        "those on the longest path, or others",
        ("any", "turn", "messages", "inner", "mixed", "path", "weighted", "messages_any"),
        of_tasks=True,
    ),
    Word(
        "barrier",
        "what a step waits for: all tasks, those of the process, or the neighbours",
        ("global", "process", "neighbours"),
        of_tasks=True,
    ),
    Word(
        "queue",
        "where ready tasks wait: in one queue, at their worker, or there and may be stolen",
        ("shared", "private", "stealing"),
        of_tasks=True,
    ),
    Word(
        "stealing",
        "whose work an idle worker takes: nobody's, that of its process, or of its node",
        ("none", "process", "node"),
        of_tasks=True,
    ),
    Word(
        "balance",
        "who holds which ranks: equal counts, equal work in a row, or also exchanged",
        ("none", "consecutive", "shuffle"),
        of_tasks=True,
    ),
)
VOCABULARY: Mapping[str, Word] = {word.name: word for word in _WORDS}
WITHOUT_TASKS = ("flat", "split", "threads")
"""Models without tasks: no order of tasks, no queue, nobody who takes work."""
CUTS = ("cut_x", "cut_y", "cut_z")

PARTS, FACE = "parts", "face_cells"
GRID = ("grid_x", "grid_y", "grid_z")
BUILT_IN = (PARTS, FACE, *GRID)
"""Names that expressions of words may use beside those of the space.

``parts``: product of the cuts. ``grid_x`` and so on: the process grid over ``cells_x``, ``cells_y``
and ``cells_z`` with the smallest cut surface, as the shipped programs choose it. ``face_cells``:
cells of the smallest face of a part that lies between two processes.
"""
_NEEDS = {
    PARTS: CUTS,
    FACE: (*CUTS, *GRID),
    **dict.fromkeys(GRID, ("processes", "cells_x", "cells_y", "cells_z")),
}


@dataclass(frozen=True)
class Naming:
    """Names of the values of a parameter: ``value`` -> ``name``; ``other`` for all others."""

    parameter: str
    names: Mapping[str, str]
    other: str | None = None

    def name(self, value: Value | None) -> str | None:
        """The name of a value; None if it has none."""
        return None if value is None else self.names.get(str(value), self.other)

    def __str__(self) -> str:
        names = [f"{value}: {name}" for value, name in self.names.items()]
        others = [f"others: {self.other}"] if self.other else []
        return f"{self.parameter} ({', '.join([*names, *others])})"


@dataclass(frozen=True)
class LayoutRules:
    """How the parameters of a space follow from words: a resolved
    :class:`~autotune.space.layout_table.LayoutTable`.

    Expressions are in terms of parameters, facts and built-in names. ``facts`` are values of names
    that the space itself does not know. ``derived`` are the space's derived values, which built-in
    names use.
    """

    words: Mapping[str, Expr | Naming] = field(default_factory=dict)
    own: Mapping[str, str] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Value] = field(default_factory=dict)
    derived: Mapping[str, Expr] = field(default_factory=dict)

    def joined(self, other: LayoutRules) -> LayoutRules:
        """The rules of a space joined with another; the first space's words have precedence."""
        words = {**other.words, **self.words}
        absent = {k: v for k, v in {**other.absent, **self.absent}.items() if k not in words}
        return LayoutRules(
            words,
            {**other.own, **self.own},
            absent,
            {**other.facts, **self.facts},
            {**other.derived, **self.derived},
        )

    def names(self, word: str) -> frozenset[str]:
        """Every parameter or fact on which a word depends, also through built-in names."""
        rule = self.words.get(word)
        if rule is None:
            return frozenset()
        if isinstance(rule, Naming):
            return frozenset({rule.parameter})
        return frozenset().union(*(self._behind(name) for name in rule.names))

    def _behind(self, name: str) -> frozenset[str]:
        if name in self.derived:
            return self.derived[name].names
        if name not in BUILT_IN:
            return frozenset({name})
        behind: frozenset[str] = frozenset()
        for other in _NEEDS[name]:
            behind |= self.names(other) if other in CUTS else self._behind(other)
        return behind
