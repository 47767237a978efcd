"""Files for MPICH: a script of variables, and its tree of collective algorithms as JSON.

MPICH stops in MPI_Init on a value that it does not understand, but ignores an unknown variable.
The tree replaces the library's own tree and must be complete: a missing collective aborts every
program that calls it (as measured with 5.0.2).  So the library's own tree is the base, and rules
replace branches of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from autotune.collective_rules import Rule
from autotune.errors import UsageError
from autotune.publish.content import Content
from autotune.publish.formats.base import Canary, Loading
from autotune.publish.formats.rules import RulesV1
from autotune.publish.formats.scripts import Sh
from runner.mpi.library import Library
from runner.mpi.mpich import FAMILY
from runner.mpi.mpich_tree import Tree, builtin_tree

FILE = "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE"
_ALGORITHM = re.compile(r"MPIR_[A-Za-z0-9_]{1,100}")
_COLLECTIVE = re.compile(r"[a-z_]{1,40}")
_INTRA, _INTER = "comm_type=intra", "comm_type=inter"
_PARENT = "comm_hierarchy=parent"
_OTHERWISE = {"comm_size=pow2": "comm_size=any", _PARENT: "comm_hierarchy=any"}
"""Conditions for an algorithm to work at all, and the branch of the tree for all other cases."""


class MpichEnv(Sh):
    """MPICH and its derivatives."""

    name = "mpich-env"
    summary = "environment script with MPIR_CVAR_ variables of MPICH"
    suffix = ".mpich.sh"
    family = FAMILY
    usual = 2
    loads_rules = True

    def part(self, content: Content, library: Library) -> Content:
        names = content.groups.get("mca", {})
        own = {n: v for n, v in names.items() if n.startswith("MPIR_CVAR_")}
        return Content({"mca": own} if own else {})

    def body(self, content: Content, library: Library) -> str:
        found = sorted(content.groups.get("mca", {}).items())
        return "".join(self.line(name, value) for name, value in found)


class MpichJson(RulesV1):
    """MPICH's selection tree.  MPICH aborts in MPI_Init on an error in it."""

    name = "mpich-json"
    summary = "collective selection of MPICH (MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE)"
    suffix = ".mpich.json"
    family = FAMILY
    comment = None

    def unobeyed(self, library: Library) -> str | None:
        if self.family != library.family:
            return f"it is for {self.family}, but this library is {library.family}"
        return self.harmful(library)

    def harmful(self, library: Library) -> str | None:
        if builtin_tree(library) is not None:
            return None
        return (
            "the selection tree of MPICH was not found; without the rest of the tree the "
            "file aborts every program that calls another collective"
        )

    def part(self, content: Content, library: Library) -> Content:
        return Content(rules=tuple(r for r in content.rules if _ALGORITHM.match(r.algorithm)))

    def body(self, content: Content, library: Library) -> str:
        for rule in content.rules:
            if not (
                _ALGORITHM.fullmatch(rule.algorithm) and _COLLECTIVE.fullmatch(rule.collective)
            ):
                raise UsageError(
                    f"the rule for {rule.collective} names the algorithm {rule.algorithm!r}; "
                    "MPICH's are called MPIR_... (letters, digits, _)"
                )
        return json.dumps(changed(builtin_tree(library) or {}, content.rules), indent=1) + "\n"

    def canaries(self, content: Content, library: Library) -> list[Canary]:
        """For each collective an algorithm of another one, at whose call MPICH aborts."""
        found = []
        for name in dict.fromkeys(rule.collective for rule in content.rules):
            other = "MPIR_Bcast_intra_binomial"
            if name == "bcast":
                other = "MPIR_Allreduce_intra_recursive_doubling"
            kept = tuple(r for r in content.rules if r.collective != name)
            rules = (*kept, Rule(name, 1, 0, other))
            found.append(Canary(Content(rules=rules), frozenset({("rules", name)}), name, 3))
        return found

    def live(self, path: Path, library: Library) -> Loading:
        return Loading({FILE: str(path.absolute())})


def changed(tree: Tree, rules: tuple[Rule, ...]) -> Tree:
    """``tree`` with the branches of the collectives in ``rules`` replaced.

    Raises UsageError for a collective that the tree does not have, unless the tree is empty.
    """
    result = dict(tree)
    for name in dict.fromkeys(rule.collective for rule in rules):
        key = f"collective={name}"
        if tree and key not in tree:
            known = ", ".join(sorted(k.partition("=")[2] for k in tree))
            raise UsageError(f"this MPICH has no collective {name}; it has {known}")
        before = tree.get(key, {})
        own = [rule for rule in rules if rule.collective == name]
        branch = {_INTRA: _by_size(own, before.get(_INTRA, before))}
        if before:
            branch[_INTER] = before.get(_INTER, before)
        result[key] = branch
    return result


def _by_size(rules: list[Rule], before: Tree) -> Tree:
    """The rules as branches.  A rule holds from its size on, a branch of the tree up to its size;
    below the first rule the library's own choice stays."""
    sets: dict[int, Tree] = {}
    for size in sorted({rule.comm_size for rule in rules}):
        entries = {r.message: _leaf(r, before) for r in rules if r.comm_size == size}
        sets[size] = _upwards("avg_msg_size", entries, 0, before)
    return _upwards("comm_size", sets, 1, before)


def _upwards(word: str, entries: dict[int, Tree], least: int, before: Tree) -> Tree:
    """Branches ``word<N`` in ascending order, and ``word=any`` for the rest."""
    starts = sorted(entries)
    if starts == [least]:
        return entries[least]
    branches = [entries[start] for start in starts]
    if starts[0] <= least:
        starts = starts[1:]
    elif before:
        branches.insert(0, before)
    else:
        starts = starts[1:]
    tree = {f"{word}<{end}": branch for end, branch in zip(starts, branches, strict=False)}
    return tree | {f"{word}=any": branches[-1]}


def _leaf(rule: Rule, before: Tree) -> Tree:
    """The algorithm where it works, elsewhere the library's own choice.

    Some algorithms abort or compute wrong results, for example with three ranks or with an
    operation that does not commute.  The conditions of an algorithm are read from the library's own
    tree: those that are above it everywhere.  An algorithm that the tree does not use gets no
    conditions.
    """
    leaf = {f"algorithm={rule.algorithm}": _parameters(rule.algorithm, before)}
    places = [path for name, path, _ in _leaves(before) if name == rule.algorithm]
    common = [c for c in places[0] if all(c in path for path in places)] if places else []
    if rule.algorithm.endswith("_smp") and _PARENT not in common:
        # It calls the same collective among the ranks of a node.  Without the condition it would
        # call itself without end.  The library's tree for allreduce lacks the condition (never used
        # there).
        common.insert(0, _PARENT)
    for condition in reversed(common):
        name, _, value = condition.partition("=")
        if condition in _OTHERWISE:
            leaf = {condition: leaf, _OTHERWISE[condition]: before}
        elif condition == "count<pow2":
            leaf = {condition: leaf, "count=any": before}
        elif condition == "count=any":
            leaf = {"count<pow2": before, condition: leaf}
        elif name.startswith("is_") and value in ("yes", "no"):
            leaf = {condition: leaf, f"{name}={'no' if value == 'yes' else 'yes'}": before}
    return leaf


def _parameters(algorithm: str, before: Tree) -> Tree:
    """The parameters of the algorithm in the library's own tree: some (barrier's k_dissemination)
    hang without them."""
    return next((given for name, _, given in _leaves(before) if name == algorithm), {})


def _leaves(tree: Tree, above: tuple[str, ...] = ()) -> Iterator[tuple[str, tuple[str, ...], Tree]]:
    """(algorithm, conditions above it, its parameters) of every leaf."""
    for key, below in tree.items():
        word, _, value = key.partition("=")
        if word == "algorithm":
            yield value, above, below
        else:
            yield from _leaves(below, (*above, key))
