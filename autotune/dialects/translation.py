"""Rules of one family translated to another, if both have an equivalent algorithm.

A translation starts a measurement and is never a result: the same algorithm may be slow in another
library. Intel MPI's presets are only numbers and may change with its version, so no rules are
translated for it, or from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from autotune.collective_rules import Rule
from autotune.dialects.base import LIBRARY_DECIDES
from autotune.errors import UsageError
from autotune.space.meanings import algorithm_of

_FAMILIES = ("openmpi", "mpich")
Names = Mapping[str, Mapping[str, str]]
"""collective -> the rules' names of algorithms, and their names for readers."""


def translate(
    rules: Sequence[Rule], names: Names, families: tuple[str, str], theirs: Names
) -> tuple[Rule, ...]:
    """``rules`` of the first family for the second one; ``names`` and ``theirs`` are the names of
    their algorithms.  Segments and fan-outs are left to the library.

    Raises UsageError for an algorithm without a counterpart.
    """
    counterparts = []
    for rule in rules:
        algorithm = rule.algorithm
        if algorithm != LIBRARY_DECIDES:
            word = names.get(rule.collective, {}).get(algorithm, algorithm)
            other = theirs.get(rule.collective, {})
            counterpart = _counterpart(rule, word, families, other)
            if counterpart is None:
                raise UsageError(
                    f"the algorithm {word} of {rule.collective} ({families[0]}) has no counterpart "
                    f"of the same name in {families[1]}; measure there: autotune collectives "
                    f"--operations {rule.collective} --mpi PLACE",
                    code="collectives.algorithm_unknown",
                )
            algorithm = counterpart
        counterparts.append(replace(rule, algorithm=algorithm, fanout=0, segment=0))
    return tuple(counterparts)


def _counterpart(
    rule: Rule, word: str, families: tuple[str, str], theirs: Mapping[str, str]
) -> str | None:
    """The algorithm of the second family; None without a known one."""
    meaning = algorithm_of(rule.collective)
    if meaning is None or not {*families} <= {*_FAMILIES}:
        return None
    number = rule.algorithm.isdigit()
    value = meaning.value(int(rule.algorithm) if number else word, *families)
    if value is None or isinstance(value, int):
        return None if value is None or str(value) not in theirs else str(value)
    return next((own for own, their_word in theirs.items() if their_word == value), None)
