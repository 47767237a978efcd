"""Rules: a few words of the vocabulary for many programs, and each program's setting that obeys.

"Tasks, four for each worker, chunks below the eager limit" is one rule for programs with different
parameters. :func:`obey` finds the setting of a program that says the words of a rule, as far as
they have a meaning there. :func:`rule_table` has the runs of each rule on each recorded cell, so
that one rule for a class is chosen and judged as one setting is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from autotune.anova.best_known import opub_of
from autotune.anova.layout_table import EAGER, JOINED, family_of, levels_of
from autotune.anova.table import CellRuns, RunTable, build_table, cell_facts, cell_runs
from autotune.datasets import Cell, Dataset
from autotune.notes import Note
from autotune.space import DEFAULT, Setting, Value
from autotune.space.layout import LayoutMap

WORK = ("factor", "chunk")
"""Words of how the work is cut. Where a rule says one and the program has neither, nothing can be
laid out as the rule means it: the default stays."""
WORDS = ("model", "workers", "factor", "chunk", "barrier", "balance")
"""Words of rules, the most important first: if not all can be obeyed, the last are given up."""
_LIKE = 10.0
"""A text that differs weighs as much as this many doublings, for each word that follows in WORDS
ten times less."""


@dataclass(frozen=True)
class Choices:
    """The settings of a program, default first, and the levels of each one's words."""

    settings: tuple[Setting, ...]
    levels: tuple[Mapping[str, Value], ...]

    @classmethod
    def of(cls, layouts: LayoutMap, settings: Sequence[Setting], family: str) -> Choices:
        """The levels of these settings; the default is put first."""
        every = (DEFAULT, *(s for s in settings if s != DEFAULT))
        return cls(every, tuple(levels_of(layouts, s, family) for s in every))

    def values(self, word: str) -> set[Value]:
        """The levels that a word has among the settings; empty if it has no meaning here."""
        return {levels[word] for levels in self.levels if word in levels}

    def obey(self, rule: Mapping[str, Value]) -> int:
        """Index of the setting that obeys a rule best; 0, the default, if none can.

        Words without a meaning here are no obstacle. Of several settings, the one that names the
        fewest parameters is taken, then the first.
        """
        words = [word for word in WORDS if word in rule and self.values(word)]
        if not set(WORK).isdisjoint(rule) and set(WORK).isdisjoint(words):
            return 0
        if "model" in rule and rule["model"] not in self.values("model"):
            return 0

        def cost(index: int) -> tuple[float, int, int]:
            levels = self.levels[index]
            misses = sum(
                _miss(rule[word], levels.get(word)) * _LIKE ** (len(WORDS) - WORDS.index(word))
                for word in words
            )
            return misses, len(self.settings[index]), index

        return min(range(len(self.settings)), key=cost)


def _miss(aim: Value, value: Value | None) -> float:
    """How far a level is from the one that a rule names: doublings, or 1 for another text."""
    if value is None:
        return 1.0
    if isinstance(aim, str) or isinstance(value, str):
        return float(aim != value)
    return abs(math.log2(max(aim, 1)) - math.log2(max(value, 1))) / _LIKE


def local_setting(layouts: LayoutMap, rule: Setting, family: str) -> Setting:
    """The setting of a space that obeys a rule; parameters that no word of it uses stay unset."""
    words = frozenset(word for word in rule if word in layouts.words)
    choices = Choices.of(layouts, list(layouts.settings(words)), family)
    return choices.settings[choices.obey(rule)]


def recorded_setting(dataset: Dataset, cell: Cell, rule: Setting) -> Setting:
    """The recorded setting of a cell that obeys a rule."""
    choices = Choices.of(dataset.layouts(cell), dataset.settings(cell), family_of(dataset))
    return choices.settings[choices.obey(rule)]


def rules_for(programs: Mapping[str, Sequence[Choices]]) -> list[Setting]:
    """Every rule of levels that at least two programs have, the default not included.

    ``programs``: the choices of each program's cells. Chunks are only asked to be below the eager
    limit.
    """
    levels: dict[str, list[Value | None]] = {}
    for word in WORDS:
        of_programs = [
            set().union(*(choices.values(word) for choices in cells)) for cells in programs.values()
        ]
        common = [
            value
            for value in sorted(set().union(*of_programs), key=str)
            if sum(value in values for values in of_programs) >= min(2, len(programs))
        ]
        levels[word] = [None, *(v for v in common if word != "chunk" or v == EAGER)]
    combinations = itertools.product(*levels.values())
    rules = (
        Setting({word: v for word, v in zip(levels, values, strict=True) if v is not None})
        for values in combinations
    )
    return [rule for rule in rules if rule != DEFAULT]


def rule_table(
    dataset: Dataset, cells: Sequence[Cell], allowed: Callable[[Setting], bool] = lambda s: True
) -> RunTable:
    """The table of these cells with rules as settings: the runs of a rule are those of the recorded
    setting that obeys it. ``allowed``: settings that may be used."""
    family = family_of(dataset)
    choices = {
        cell.key: Choices.of(
            dataset.layouts(cell), [s for s in dataset.settings(cell) if allowed(s)], family
        )
        for cell in cells
    }
    programs: dict[str, list[Choices]] = {}
    for cell in cells:
        programs.setdefault(cell.app, []).append(choices[cell.key])
    rules = rules_for(programs)
    frames, best = [], {}
    for cell in cells:
        runs = cell_runs(dataset.runs(cell), dataset.settings(cell))
        best[cell.key] = opub_of(runs)
        names, same = _names(choices[cell.key], rules, set(runs["key"]))
        used = runs[runs["key"].isin(list(names))]
        frames.append(CellRuns(cell_facts(cell), used.assign(key=used["key"].map(names)), same))
    settings = {DEFAULT.key: DEFAULT, **{rule.key: rule for rule in rules}}
    table = build_table(f"dataset {dataset.name}", frames, settings, {})
    return replace(
        table,
        best=best,
        joined=Note("layout.joined", JOINED, {"cells": list(table.cells)}),
        unguarded=dataset.card.guard_note,
    )


def _names(
    choices: Choices, rules: Sequence[Setting], measured: set[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """The key of the first rule that each setting obeys, and the rules that share a setting."""
    names = {DEFAULT.key: DEFAULT.key}
    same: dict[str, str] = {}
    for rule in rules:
        setting = choices.settings[choices.obey(rule)]
        if setting.key not in measured:
            continue
        first = names.setdefault(setting.key, rule.key)
        if first != rule.key:
            same[rule.key] = first
    return names, same
