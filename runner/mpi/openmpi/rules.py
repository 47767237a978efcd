"""Rules files of Open MPI's coll/tuned, and their precedence over forced algorithms.

coll/tuned takes an algorithm from three places: the parameters ``coll_tuned_COLLECTIVE_algorithm``,
a rules file (``coll_tuned_dynamic_rules_filename``), and its own choice. The first two count only
with ``coll_tuned_use_dynamic_rules``. Open MPI 5 consults the parameters first. Open MPI 4.1
consults the file first, so a parameter has no effect where the file names an algorithm; the library
still shows the parameter's value (seen with 4.1.4 for each of the 14 collectives).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from runner import files
from runner.mpi.openmpi.shown import RunValues
from runner.types import ReadBack

COLLECTIVES = (
    *("allgather", "allgatherv", "allreduce", "alltoall", "alltoallv", "alltoallw", "barrier"),
    *("bcast", "exscan", "gather", "gatherv", "reduce", "reduce_scatter"),
    *("reduce_scatter_block", "scan", "scatter", "scatterv"),
)
"""The collectives in the order of their numbers in a rules file (COLLTYPE in Open MPI's
coll_base_functions.h)."""
ENABLE = "coll_tuned_use_dynamic_rules"
FILE = "coll_tuned_dynamic_rules_filename"
ALGORITHM_PARAMETER = re.compile(
    r"coll_tuned_(?P<collective>[a-z_]+?)_algorithm"
    r"(?:_(?P<what>segmentsize|tree_fanout|chain_fanout))?"
)
"""Names of the parameters for a collective's algorithm, and for the other fields of a rule."""
_ALGORITHM_OPTION = re.compile(f"{ALGORITHM_PARAMETER.pattern}(?:_max_requests)?")
_TRUE = frozenset({"1", "true", "t", "yes", "y", "enabled"})
_MOST, _MOST_BYTES = 2**31 - 1, 1 << 20
_NUMBER = re.compile(r"-?(?:0[xX][0-9a-fA-F]{1,16}|0[0-7]{0,18}|[1-9][0-9]{0,18})")
Rules = dict[str, dict[int, dict[int, int]]]
"""Collective -> smallest number of ranks -> smallest message size in bytes -> algorithm."""


def read_rules(text: str) -> Rules | None:
    """The rules of a rules file as Open MPI 4.1 reads it; None if it refuses the file.

    Words that are not numbers, and comments after ``#``, are skipped. Text after the last rule is
    not read. The library refuses a file that ends too early, or whose first rule for a number of
    ranks is not for message size 0.
    """
    numbers = _numbers(text)
    rules_by_collective: Rules = {}
    try:
        for _ in range(_next(numbers, len(COLLECTIVES))):
            collective = COLLECTIVES[_next(numbers, len(COLLECTIVES) - 1)]
            sizes: dict[int, dict[int, int]] = {}
            rules_by_collective[collective] = sizes
            for _ in range(_next(numbers)):
                rules = sizes.setdefault(_next(numbers), {})
                for _ in range(_next(numbers)):
                    message, algorithm, _fanout, _segment = (_next(numbers) for _ in range(4))
                    if message and not rules:
                        return None
                    rules[message] = algorithm
    except ValueError:
        return None
    return rules_by_collective


def _next(numbers: Iterator[int], most: int = _MOST) -> int:
    """The next number; raises ValueError if it is missing or out of range."""
    number = next(numbers, -1)
    if not 0 <= number <= most:
        raise ValueError(f"{number} is not from 0 to {most}")
    return number


def _numbers(text: str) -> Iterator[int]:
    """The numbers of a text as C writes them; a leading 0 means octal."""
    for line in text.splitlines():
        for word in _NUMBER.findall(line.partition("#")[0]):
            base = 16 if "x" in word.lower() else 8 if word.lstrip("-").startswith("0") else 10
            yield int(word, base)


@dataclass(frozen=True)
class RulesFile:
    """The rules file in force: its path, and its rules (None if the library refuses the file)."""

    path: Path
    rules: Rules | None

    @classmethod
    def read(cls, path: Path) -> RulesFile:
        """The file at ``path``; one that cannot be read has no rules."""
        try:
            return cls(path, read_rules(files.read_text(path, _MOST_BYTES)))
        except (OSError, UnicodeDecodeError):
            return cls(path, None)

    def share(self, collective: str, ranks: int) -> float:
        """The share of the sizes at which the file names an algorithm, from 0 to 1.

        Every communicator of 2 to ``ranks`` ranks counts, and every message size of its rules. The
        rules of the largest number of ranks that a communicator has count, else the first ones;
        algorithm 0 means the library's own choice.
        """
        rules = (self.rules or {}).get(collective, {})
        sizes = sorted(rules)
        beyond = [*sizes, max(ranks, 2) + 1][1:]
        choices = [
            algorithm > 0
            for size, following in zip(sizes, beyond, strict=True)
            if (size <= ranks or size == sizes[0]) and following > 2
            for algorithm in rules[size].values()
        ]
        return sum(choices) / len(choices) if choices else 0.0

    def override(self, name: str, back: ReadBack, ranks: int) -> ReadBack | None:
        """The state of a parameter that the file, consulted first, overrides; None if it does
        not."""
        parameter = _ALGORITHM_OPTION.fullmatch(name)
        share = self.share(parameter["collective"], ranks) if parameter else 0.0
        if not parameter or not share:
            return None
        why = f"this version asks the rules file {self.path} first for {parameter['collective']}"
        if share < 1:
            return replace(back, source=f"{why}, which has no rule at some sizes")
        return replace(back, state="inactive", source=why)


def forced_algorithms(
    read_back: Mapping[str, ReadBack],
    run_values: RunValues,
    ranks: int,
    *,
    file_first: bool,
    folder: Path,
    on_this_machine: bool,
) -> dict[str, ReadBack]:
    """The states of parameters that force algorithms, given a missing switch or a rules file.

    Only parameters whose value is in force. ``file_first``: the library consults the file before
    the parameters. ``folder`` is the working directory of the ranks, ``on_this_machine`` whether
    all of them are certainly on this machine.
    """
    mine = {
        name: back
        for name, back in read_back.items()
        if back.state == "in force" and (name == FILE or _ALGORITHM_OPTION.fullmatch(name))
    }
    if not mine or ENABLE not in run_values:
        return {}
    if run_values[ENABLE][0].strip().lower() not in _TRUE:
        why = f"{ENABLE} is off ({run_values[ENABLE][1]})"
        return {name: replace(back, state="inactive", source=why) for name, back in mine.items()}
    path = run_values.get(FILE, ("", ""))[0].strip()
    if not (path and file_first):
        return {}
    file = RulesFile.read(folder / path)
    if file.rules is not None:
        states = ((name, file.override(name, back, ranks)) for name, back in mine.items())
        return {name: back for name, back in states if back is not None}
    if on_this_machine:
        why = f"the library cannot read the rules file {file.path}"
        return {n: replace(b, state="inactive", source=why) for n, b in mine.items() if n == FILE}
    why = f"this version asks {file.path} first, which cannot be read on this machine"
    algorithms = {name: back for name, back in mine.items() if name != FILE}
    return {n: replace(b, state="not observable", source=why) for n, b in algorithms.items()}
