"""Layouts of settings: the words of the vocabulary in one space, and back to its parameters.

:class:`LayoutMap` says the layout of a setting, finds the setting of a layout exactly, and finds
the settings that say given words. Nothing is executed: words are expressions of the space file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

from autotune.errors import UsageError
from autotune.space.expression import Name
from autotune.space.setting import DEFAULT, Setting, Value, normalise_value
from autotune.space.space import Space, valid_settings
from autotune.space.vocabulary import (
    BUILT_IN,
    CUTS,
    GRID,
    PARTS,
    VOCABULARY,
    WITHOUT_TASKS,
    LayoutRules,
    Naming,
)

_AXES = ("cells_x", "cells_y", "cells_z")


@dataclass(frozen=True)
class ProgramLayout:
    """The layout of one setting: ``words`` of the vocabulary that have a value, and ``own``, the
    values of the parameters that have no word."""

    words: Mapping[str, Value]
    own: Setting

    def __str__(self) -> str:
        own = [] if self.own == DEFAULT else [f"({self.own.key.replace(',', ', ')})"]
        return ", ".join([*(f"{word} {value}" for word, value in self.words.items()), *own])


class LayoutMap:
    """The mapping between the settings of a space and layouts.

    ``words`` are those that have a value here, ``absent`` the others with the reason, ``covered``
    the parameters that follow from the words, ``own`` all other parameters with the reason why they
    have no word ("" where the space gives none).
    """

    def __init__(self, space: Space) -> None:
        self.space = space
        self._rules = space.layout
        self.words: tuple[str, ...] = tuple(w for w in VOCABULARY if self._lacks(w) == "")
        self.absent = {w: self._lacks(w) for w in VOCABULARY if w not in self.words}
        behind = frozenset().union(*(self._rules.names(word) for word in self.words))
        self.covered = tuple(
            name for name in space.names if name in behind and name not in self._rules.own
        )
        self.own = {name: self._why_own(name) for name in space.names if name not in self.covered}

    def _lacks(self, word: str) -> str:
        """Why a word has no value in this space; "" if it has one."""
        if word not in self._rules.words:
            return self._rules.absent.get(word, "nothing in this space says it")
        space, facts = self.space, self._rules.facts
        unknown_names = sorted(
            name
            for name in self._rules.names(word)
            if name not in space
            and name not in facts
            and name not in space.derived
            and name not in space.facts
        )
        if not unknown_names:
            return ""
        return f"needs {', '.join(unknown_names)} of the application's input"

    def _why_own(self, name: str) -> str:
        """Why a parameter has no word; "" if the space does not say it."""
        if name in self._rules.own:
            return self._rules.own[name]
        missing = [w for w in self._rules.words if w not in self.words]
        if any(name in self._rules.names(word) for word in missing):
            return f"{' and '.join(w for w in missing if name in self._rules.names(w))}, if known"
        return ""

    def layout(self, setting: Mapping[str, Value]) -> ProgramLayout:
        """The layout of a setting of the space."""
        canonical = self.space.canonical(setting)
        scope = _Scope(self.space, self._rules, canonical)
        words = {word: scope.word(word) for word in self.words}
        own = {name: value for name, value in canonical.items() if name not in self.covered}
        return ProgramLayout({w: v for w, v in words.items() if v is not None}, Setting(own))

    def setting(self, layout: ProgramLayout) -> Setting:
        """The setting of a layout; the inverse of :meth:`layout`.

        Raises :class:`UsageError` if no valid setting of the space has it.
        """
        for setting in self._walk(layout.words, 0, dict(layout.own)):
            if self.space.is_canonical(setting) and self.layout(setting) == layout:
                return setting
        raise UsageError(
            f"space {self.space.name}: no setting has the layout {layout}", code="layout.no_setting"
        )

    @cached_property
    def _order(self) -> list[tuple[str, list[str]]]:
        """The covered parameters with the words that are decided by them and earlier ones.

        Words with few parameters come first, so that a wrong value is noticed early.
        """
        needs = {w: self._needs(w) & set(self.covered) for w in self.words}
        order: list[str] = []
        for _, names in sorted(needs.items(), key=lambda item: len(item[1])):
            order += [name for name in self.covered if name in names and name not in order]
        return [
            (
                name,
                [
                    word
                    for word, names in needs.items()
                    if name in names and names <= set(order[: i + 1])
                ],
            )
            for i, name in enumerate(order)
        ]

    def _needs(self, word: str) -> frozenset[str]:
        """The parameters and facts on which a word's value depends, or whether it has one."""
        names = self._rules.names(word)
        if VOCABULARY[word].of_tasks:
            names |= self._rules.names("model")
        only = _only_parameter(self._rules, word)
        when = self.space[only].when if only is not None and only in self.space else None
        return names | when.names if when is not None else names

    def _walk(
        self, words: Mapping[str, Value], depth: int, values: dict[str, Value]
    ) -> Iterator[Setting]:
        if depth == len(self._order):
            yield Setting(values)
            return
        name, decided_words = self._order[depth]
        for choice in self.space[name].choices:
            if choice is not None:
                values[name] = choice
            scope = _Scope(self.space, self._rules, values)
            if all(_equal(scope.word(word), words.get(word)) for word in decided_words):
                yield from self._walk(words, depth + 1, values)
            values.pop(name, None)

    def settings(self, words: frozenset[str]) -> Iterator[Setting]:
        """Every valid setting that varies only covered parameters behind these words, or in the
        conditions of such parameters; the default first."""
        behind = set().union(*(self._rules.names(word) for word in words))
        while more := self._in_conditions(behind) - behind:
            behind |= more
        behind &= set(self.covered)
        fixed = {p.name: p.default for p in self.space if p.name not in behind}
        defaults = {name: value for name, value in fixed.items() if value is not None}
        part = self.space.without(dict.fromkeys(fixed, "stays at its default"))
        part = replace(part, facts={**part.facts, **defaults})
        return (s for s in valid_settings(part) if self.space.is_canonical(s))

    def _in_conditions(self, names: set[str]) -> set[str]:
        conditions = (p.when for p in self.space if p.name in names and p.when is not None)
        return {name for when in conditions for name in when.names}


MOST_COMPARED = 500
"""Settings among which two with the same layout are looked for."""


def same_layout(space: Space) -> tuple[Setting, Setting] | None:
    """Two settings of a space with the same layout, so that none of them follows from it.

    None if there are none among the first :data:`MOST_COMPARED`, or if facts of the application's
    input are missing, without which words have no value.
    """
    layouts = LayoutMap(space)
    if len(layouts.words) < len(space.layout.words):
        return None
    by_layout: dict[str, Setting] = {}
    for setting in islice(layouts.settings(frozenset(layouts.words)), MOST_COMPARED):
        other = by_layout.setdefault(str(layouts.layout(setting)), setting)
        if other != setting:
            return other, setting
    return None


def _only_parameter(rules: LayoutRules, word: str) -> str | None:
    """The parameter whose value a text is; None for a number, and for an expression of several.

    Such a word has no value where a value of its parameter would have no effect.
    """
    rule = rules.words[word]
    if not VOCABULARY[word].is_text:
        return None
    if isinstance(rule, Naming):
        return rule.parameter
    return rule.name if isinstance(rule, Name) else None


def _equal(one: Value | None, other: Value | None) -> bool:
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=1e-9)
    return one == other


class _Scope:
    """The values of names and words under one setting (:class:`autotune.space.expression.Scope`).

    ``face_cells`` and the process grid are computed from the cuts, on first use.
    """

    def __init__(self, space: Space, rules: LayoutRules, setting: Mapping[str, Value]) -> None:
        self._space, self._rules, self._setting = space, rules, setting
        self._words: dict[str, Value | None] = {}

    def word(self, name: str) -> Value | None:
        """The value of a word; None if it is not known or has no meaning under the setting."""
        if name not in self._words:
            rule = self._rules.words[name]
            only = _only_parameter(self._rules, name)
            idle = only in self._space and not self._space.active(str(only), self._setting)
            if idle or (VOCABULARY[name].of_tasks and self._has_no_tasks):
                self._words[name] = None
            elif isinstance(rule, Naming):
                self._words[name] = rule.name(self.value(rule.parameter))
            else:
                result = rule.evaluate(self)
                self._words[name] = None if result is None else normalise_value(result)
        return self._words[name]

    @property
    def _has_no_tasks(self) -> bool:
        return "model" in self._rules.words and self.word("model") in WITHOUT_TASKS

    def value(self, name: str) -> Value | None:
        if name in BUILT_IN:
            result = self._built_in(name)
            return None if result is None else normalise_value(result)
        value = self._space.value(name, self._setting)
        return self._rules.facts.get(name) if value is None else value

    def is_set(self, name: str) -> bool:
        return name in self._setting

    def _number(self, name: str) -> float | None:
        value = self.value(name)
        return float(value) if isinstance(value, int | float) else None

    def _cut(self, name: str) -> float:
        """Parts along an axis, at least 1; 1 if the space does not cut it."""
        value = self.word(name) if name in self._rules.words else None
        return max(float(value), 1.0) if isinstance(value, int | float) else 1.0

    def _built_in(self, name: str) -> float | None:
        if name == PARTS:
            return math.prod(self._cut(cut) for cut in CUTS)
        cells = [self._number(axis) for axis in _AXES]
        processes = self._number("processes")
        size = [c for c in cells if c is not None]
        if processes is None or len(size) < len(_AXES) or processes != int(processes):
            return None
        grid = process_grid((size[0], size[1], size[2]), int(processes))
        if name in GRID:
            return grid[GRID.index(name)]
        return self._face(size, grid)

    def _face(self, size: list[float], grid: tuple[int, int, int]) -> float | None:
        """Cells of the smallest face between processes; None if there is one process."""
        edges = [
            cells / parts / self._cut(cut)
            for cells, parts, cut in zip(size, grid, CUTS, strict=True)
        ]
        volume = math.prod(edges)
        faces = [volume / edge for edge, parts in zip(edges, grid, strict=True) if parts > 1]
        return min(faces, default=None)


def process_grid(size: tuple[float, float, float], processes: int) -> tuple[int, int, int]:
    """The process grid over a box of cells with the smallest cut surface; of equal ones, that which
    divides later axes."""

    def surface(grid: tuple[int, int, int]) -> float:
        volume = math.prod(size)
        return sum(volume / n * (p - 1) for n, p in zip(size, grid, strict=True))

    grids = [
        (x, y, processes // x // y)
        for x in range(1, processes + 1)
        if processes % x == 0
        for y in range(1, processes // x + 1)
        if processes // x % y == 0
    ]
    return min(grids, key=lambda grid: (surface(grid), grid))
