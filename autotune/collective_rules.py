"""Rules of collectives: the algorithm by number of ranks and message size.

Rules come from a setting's ``coll_tuned_*`` values or from rules tables. They are written into
rules files of Open MPI's coll/tuned.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from autotune.errors import UsageError
from runner.mpi.library import Library
from runner.mpi.openmpi.rules import ALGORITHM_PARAMETER, COLLECTIVES, ENABLE


@dataclass(frozen=True)
class Rule:
    """One rule of a collective: it applies from this communicator size and message size (bytes) on.

    ``algorithm`` is the library's number as text (Open MPI) or its name (MPICH). ``fanout`` or
    ``segment`` (bytes) 0 means that the library chooses.
    """

    collective: str
    comm_size: int
    message: int
    algorithm: str
    fanout: int = 0
    segment: int = 0


IDS = {name: number for number, name in enumerate(COLLECTIVES)}
"""Numbers of the collectives in a rules file."""
MOST = 2**31 - 1


def rules_of(mca: Mapping[str, str]) -> tuple[Rule, ...]:
    """The rules, for all sizes, that have the effect of the ``coll_tuned_*_algorithm`` parameters.

    Raises UsageError for a segment size or fanout without an algorithm: no rule can express it.
    """
    words_by_collective: dict[str, dict[str, str]] = {}
    for name, value in mca.items():
        match = ALGORITHM_PARAMETER.fullmatch(name)
        if match and match["collective"] in IDS:
            words_by_collective.setdefault(match["collective"], {})[
                match["what"] or "algorithm"
            ] = value
    rules = []
    for collective, words in sorted(words_by_collective.items(), key=lambda item: IDS[item[0]]):
        if "algorithm" not in words:
            raise UsageError(
                f"the setting has {', '.join(sorted(words))} but not "
                f"coll_tuned_{collective}_algorithm; a rules file cannot express that; use "
                "another --format",
                code="rules.invalid",
            )
        fanout = words.get("tree_fanout", words.get("chain_fanout", "0"))
        segment = words.get("segmentsize", "0")
        rules.append(Rule(collective, 1, 0, words["algorithm"], int(fanout), int(segment)))
    return tuple(rules)


def says_rule(name: str) -> bool:
    """True if a rule of a rules file replaces this MCA parameter."""
    match = ALGORITHM_PARAMETER.fullmatch(name)
    return name == ENABLE or (match is not None and match["collective"] in IDS)


def check_rules(rules: tuple[Rule, ...], library: Library | None = None) -> None:
    """Raise UsageError for a rule that is not valid, or not for ``library`` (if given)."""
    for rule in rules:
        where = f"the rule for {rule.collective} from {rule.comm_size} ranks, {rule.message} bytes"
        if rule.collective not in IDS:
            raise UsageError(
                f"{where}: unknown collective; expected one of {', '.join(IDS)}",
                code="rules.unknown",
            )
        numbers = (rule.comm_size, rule.message, rule.fanout, rule.segment)
        if min(numbers) < 0 or max(numbers) > MOST or rule.comm_size < 1:
            raise UsageError(
                f"{where}: sizes must be whole numbers from 0 (ranks from 1) to {MOST}",
                code="rules.invalid",
            )
        if not re.fullmatch(r"[0-9]{1,3}", rule.algorithm):
            raise UsageError(
                f"{where}: the algorithm {rule.algorithm!r} is not a number", code="rules.syntax"
            )
        if library is not None:
            _check_algorithm(rule, library, where)


def _check_algorithm(rule: Rule, library: Library, where: str) -> None:
    info = library.params.get(f"coll_tuned_{rule.collective}_algorithm")
    if info is not None and info.enum and int(rule.algorithm) not in info.enum:
        choices = ", ".join(f"{n} {w}" for n, w in sorted(info.enum.items()))
        raise UsageError(
            f"{where}: this library has no algorithm {rule.algorithm}; it has {choices}",
            code="rules.unknown",
        )


def group_rules(rules: tuple[Rule, ...]) -> dict[str, dict[int, list[Rule]]]:
    """The rules by collective and communicator size, ordered by message size; all ascending.

    The first rule of each size is for message size 0, as Open MPI's reader demands. An added first
    rule has algorithm 0: the library decides.
    """
    groups: dict[str, dict[int, list[Rule]]] = {}
    for rule in sorted(rules, key=lambda r: (IDS[r.collective], r.comm_size, r.message)):
        groups.setdefault(rule.collective, {}).setdefault(rule.comm_size, []).append(rule)
    for collective, sets in groups.items():
        for size, entries in sets.items():
            if entries[0].message:
                entries.insert(0, Rule(collective, size, 0, "0"))
    return groups


def canary_rules(rules: tuple[Rule, ...], library: Library) -> tuple[tuple[Rule, ...], str] | None:
    """The ``rules`` with a canary rule at the end that fails with three ranks, and its collective.

    The canary is the algorithm ``two_proc``, which refuses communicators of any size but 2. It is
    the last rule, so it acts only if the library read the whole file. Returns None if the library
    has no such algorithm.
    """
    collectives = {rule.collective for rule in rules}
    choices = [c for c in ("barrier", "alltoall") if c not in collectives] or ["alltoall"]
    for collective in choices:
        info = library.params.get(f"coll_tuned_{collective}_algorithm")
        number = next((n for n, w in (info.enum if info else {}).items() if w == "two_proc"), None)
        if number is not None:
            other_rules = tuple(r for r in rules if r.collective != collective)
            return (*other_rules, Rule(collective, 1, 0, str(number))), collective
    return None


def rules_text(rules: tuple[Rule, ...], column: str = "") -> str:
    """The text of a rules file of coll/tuned, version 1, without a header.

    ``column`` is appended to the line of every rule. Raises UsageError for a rule that no library
    can follow.
    """
    check_rules(rules)
    sets = group_rules(rules)
    # The canary's collective comes last, whatever its number: Open MPI's reader accepts any order.
    order = list(dict.fromkeys(rule.collective for rule in rules))
    lines = [f"{len(sets)} # collectives"]
    for collective in order:
        lines.append(f"{IDS[collective]} # {collective}")
        lines.append(f"{len(sets[collective])} # communicator sizes")
        for size, entries in sets[collective].items():
            lines += [f"{size} # ranks and more", f"{len(entries)} # message sizes"]
            lines += [f"{r.message} {r.algorithm} {r.fanout} {r.segment}{column}" for r in entries]
    return "\n".join(lines) + "\n"
