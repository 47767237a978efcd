"""Rules of collectives: which algorithm from which number of ranks and size of message on.

They come from a setting's ``coll_tuned_*`` values or from tables, and go into rules files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from autotune.errors import UsageError
from runner.mpi.library import Library


@dataclass(frozen=True)
class Rule:
    """One rule of a collective: from this communicator size and message size (bytes) on.

    ``algorithm`` is the library's number as text (Open MPI) or its name (MPICH).  ``fanout`` and
    ``segment`` (bytes) 0: the library's own.
    """

    collective: str
    comm_size: int
    message: int
    algorithm: str
    fanout: int = 0
    segment: int = 0


# Numbers of the collectives in a rules file (field.md G2).
_COLLECTIVES = (
    *("allgather", "allgatherv", "allreduce", "alltoall", "alltoallv", "alltoallw", "barrier"),
    *("bcast", "exscan", "gather", "gatherv", "reduce", "reduce_scatter"),
    *("reduce_scatter_block", "scan", "scatter", "scatterv"),
)
IDS = {name: number for number, name in enumerate(_COLLECTIVES)}
ENABLE = "coll_tuned_use_dynamic_rules"
FILE = "coll_tuned_dynamic_rules_filename"
_PARAMETER = re.compile(
    r"coll_tuned_(?P<collective>[a-z_]+?)_algorithm(?:_(?P<what>segmentsize|tree_fanout|chain_fanout))?"
)
MOST = 2**31 - 1


def rules_of(mca: Mapping[str, str]) -> tuple[Rule, ...]:
    """Rules, valid for all sizes, that say what ``coll_tuned_*_algorithm`` parameters say.

    Raises UsageError for a segment size or fanout without an algorithm, which no rule can say.
    """
    found: dict[str, dict[str, str]] = {}
    for name, value in mca.items():
        match = _PARAMETER.fullmatch(name)
        if match and match["collective"] in IDS:
            found.setdefault(match["collective"], {})[match["what"] or "algorithm"] = value
    rules = []
    for collective, words in sorted(found.items(), key=lambda item: IDS[item[0]]):
        if "algorithm" not in words:
            raise UsageError(
                f"the setting has {', '.join(sorted(words))} but not "
                f"coll_tuned_{collective}_algorithm; a rules file cannot express that; use "
                "another --format"
            )
        fanout = words.get("tree_fanout", words.get("chain_fanout", "0"))
        segment = words.get("segmentsize", "0")
        rules.append(Rule(collective, 1, 0, words["algorithm"], int(fanout), int(segment)))
    return tuple(rules)


def says_rule(name: str) -> bool:
    """Whether a rules file takes the place of this MCA parameter."""
    match = _PARAMETER.fullmatch(name)
    return name == ENABLE or (match is not None and match["collective"] in IDS)


def check_rules(rules: tuple[Rule, ...], library: Library | None = None) -> None:
    """Raise UsageError where a rule is none that ``library`` (if given) can follow."""
    for rule in rules:
        where = f"the rule for {rule.collective} from {rule.comm_size} ranks, {rule.message} bytes"
        if rule.collective not in IDS:
            raise UsageError(f"{where}: unknown collective; expected one of {', '.join(IDS)}")
        numbers = (rule.comm_size, rule.message, rule.fanout, rule.segment)
        if min(numbers) < 0 or max(numbers) > MOST or rule.comm_size < 1:
            raise UsageError(
                f"{where}: sizes must be whole numbers from 0 (ranks from 1) to {MOST}"
            )
        if not re.fullmatch(r"[0-9]{1,3}", rule.algorithm):
            raise UsageError(f"{where}: the algorithm {rule.algorithm!r} is not a number")
        if library is not None:
            _check_algorithm(rule, library, where)


def _check_algorithm(rule: Rule, library: Library, where: str) -> None:
    info = library.params.get(f"coll_tuned_{rule.collective}_algorithm")
    if info is not None and info.enum and int(rule.algorithm) not in info.enum:
        known = ", ".join(f"{n} {w}" for n, w in sorted(info.enum.items()))
        raise UsageError(f"{where}: this library has no algorithm {rule.algorithm}; it has {known}")


def grouped(rules: tuple[Rule, ...]) -> dict[str, dict[int, list[Rule]]]:
    """collective -> communicator size -> rules by message size, all ascending; a set's first rule
    is from message size 0 on, as the reader demands (0 then means: the library decides)."""
    found: dict[str, dict[int, list[Rule]]] = {}
    for rule in sorted(rules, key=lambda r: (IDS[r.collective], r.comm_size, r.message)):
        found.setdefault(rule.collective, {}).setdefault(rule.comm_size, []).append(rule)
    for collective, sets in found.items():
        for size, entries in sets.items():
            if entries[0].message:
                entries.insert(0, Rule(collective, size, 0, "0"))
    return found


def canary_rules(rules: tuple[Rule, ...], library: Library) -> tuple[tuple[Rule, ...], str] | None:
    """``rules`` with one, last in the file, that fails with three ranks; and its operation.

    ``two_proc`` is refused by communicators of any other size.  Being last, it acts only if the
    file was read to its end.  None where the library has no such algorithm.
    """
    used = {rule.collective for rule in rules}
    choices = [c for c in ("barrier", "alltoall") if c not in used] or ["alltoall"]
    for collective in choices:
        info = library.params.get(f"coll_tuned_{collective}_algorithm")
        number = next((n for n, w in (info.enum if info else {}).items() if w == "two_proc"), None)
        if number is not None:
            kept = tuple(r for r in rules if r.collective != collective)
            return (*kept, Rule(collective, 1, 0, str(number))), collective
    return None


def rules_text(rules: tuple[Rule, ...], column: str = "") -> str:
    """A rules file of coll/tuned, version 1, without a header; ``column`` ends every rule's line.

    Raises UsageError for a rule that no library can follow.
    """
    check_rules(rules)
    sets = grouped(rules)
    # The canary's collective comes last, whatever its number: the reader takes any order.
    order = list(dict.fromkeys(rule.collective for rule in rules))
    lines = [f"{len(sets)} # collectives"]
    for collective in order:
        lines.append(f"{IDS[collective]} # {collective}")
        lines.append(f"{len(sets[collective])} # communicator sizes")
        for size, entries in sets[collective].items():
            lines += [f"{size} # ranks and more", f"{len(entries)} # message sizes"]
            lines += [f"{r.message} {r.algorithm} {r.fanout} {r.segment}{column}" for r in entries]
    return "\n".join(lines) + "\n"
