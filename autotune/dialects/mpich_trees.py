"""Rules as selection trees of MPICH.

A file replaces the library's own tree and must be complete: a missing collective aborts every
program that calls it, and so does a missing branch (as seen with 5.0.2).  So the library's own tree
is the base, and rules replace branches of it.

Within a node, shared memory serves bcast, reduce and allreduce of a single-threaded program, and
the general layer's algorithms are not used. So rules for these collectives also need the tree of
layers, which passes their sizes to the general layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from autotune.collective_rules import Rule
from autotune.dialects.base import LIBRARY_DECIDES
from autotune.errors import UsageError
from runner.mpi.library import ParamInfo
from runner.mpi.mpich_tree import Tree

FILE = "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE"
LAYERS_FILE = "MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE"
SUMS = frozenset(
    ("allgather", "allgatherv", "gather", "scatter", "alltoall", "reduce_scatter",
     "reduce_scatter_block")
)  # fmt: skip
"""Collectives whose rules count the bytes of all ranks. For some, MPICH has no other size."""
GENERAL_LAYER = {
    "bcast": "MPIDI_Bcast_intra_composition_gamma",
    "reduce": "MPIDI_Reduce_intra_composition_gamma",
    "allreduce": "MPIDI_Allreduce_intra_composition_beta",
}
"""Collectives that shared memory may serve, and the composition that does not use it."""
_OF_REDUCTIONS = ("MPIR_Reduce_intra", "MPIR_Allreduce_intra")
_OF_DEVICE = "MPIDI_"
_INTRA, _INTER = "comm_type=intra", "comm_type=inter"
_PARENT = "comm_hierarchy=parent"
_OTHERWISE = {"comm_size=pow2": "comm_size=any", _PARENT: "comm_hierarchy=any"}
"""Conditions for an algorithm to work at all, and the branch of the tree for all other cases."""
_TOPOLOGY = tuple(
    (f"topo_{word}", f"TOPO_{word.upper()}")
    for word in ("overhead", "diff_groups", "diff_switches", "same_switches")
)
_TREE = (("tree_type", "TREE_TYPE"), ("k", "TREE_KVAL"), *_TOPOLOGY)
_RECEXCH = (("k", "RECEXCH_KVAL"), ("single_phase_recv", "RECEXCH_SINGLE_PHASE_RECV"))
_CHUNK = ("chunk_size", "TREE_PIPELINE_CHUNK_SIZE")
PARAMETERS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "Bcast_intra_tree": (*_TREE, ("is_non_blocking", "IS_NON_BLOCKING")),
    "Bcast_intra_pipelined_tree": (
        *_TREE, ("is_non_blocking", "IS_NON_BLOCKING"), _CHUNK,
        ("recv_pre_posted", "RECV_PRE_POST"),
    ),
    "Allreduce_intra_tree": (*_TREE, _CHUNK, ("buffer_per_child", "TREE_BUFFER_PER_CHILD")),
    "Allreduce_intra_recexch": _RECEXCH,
    "Allreduce_intra_recursive_multiplying": (("k", "RECURSIVE_MULTIPLYING_KVAL"),),
    "Allreduce_intra_k_reduce_scatter_allgather": _RECEXCH,
    "Allgather_intra_k_brucks": (("k", "BRUCKS_KVAL"),),
    "Allgather_intra_recexch_doubling": _RECEXCH,
    "Allgather_intra_recexch_halving": _RECEXCH,
    "Alltoall_intra_k_brucks": (("k", "BRUCKS_KVAL"),),
}  # fmt: skip
"""Parameters of an algorithm in a tree, and the end of the name of the variable that holds each.
Without them an algorithm aborts or hangs."""


def changed_tree(
    tree: Tree, rules: Sequence[Rule], params: Mapping[str, ParamInfo] | None = None
) -> Tree:
    """``tree`` with the branches of the collectives in ``rules`` replaced.

    ``params``: the library's variables, from which parameters of algorithms have their values.
    Raises UsageError for a collective that the tree does not have, unless the tree is empty.
    """
    result = dict(tree)
    for name in dict.fromkeys(rule.collective for rule in rules):
        before = _own(tree, name)
        own = [rule for rule in rules if rule.collective == name]
        intra = before.get(_INTRA, before)
        leaves = {rule: _leaf(rule, intra, params or {}) for rule in own}
        branch = {_INTRA: _by_size(leaves, intra)}
        if before:
            branch[_INTER] = before.get(_INTER, before)
        result[f"collective={name}"] = branch
    return result


def layer_rules(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """The rules for collectives that shared memory may serve."""
    return tuple(rule for rule in rules if rule.collective in GENERAL_LAYER)


def changed_layers(tree: Tree, rules: Sequence[Rule]) -> Tree:
    """The tree of layers, with the sizes of rules for an algorithm sent to the general layer. A
    rule may name a composition (MPIDI_...) instead.

    It is changed only for ranks that are all on one node.  Raises UsageError as
    :func:`changed_tree`.
    """
    result = dict(tree)
    for name in dict.fromkeys(rule.collective for rule in layer_rules(rules)):
        before = _own(tree, name)
        intra = before.get(_INTRA, before)
        own = (rule for rule in rules if rule.collective == name)
        leaves = {rule: _layer(rule, intra) for rule in own}
        node = {"comm_size=node_comm_size": _by_size(leaves, intra), "comm_size=any": intra}
        result[f"collective={name}"] = {**before, _INTRA: node} if _INTRA in before else node
    return result


def _layer(rule: Rule, before: Tree) -> Tree:
    if rule.algorithm == LIBRARY_DECIDES:
        return before
    is_device_name = rule.algorithm.startswith(_OF_DEVICE)
    return {
        f"composition={rule.algorithm if is_device_name else GENERAL_LAYER[rule.collective]}": {}
    }


def _own(tree: Tree, name: str) -> Tree:
    key = f"collective={name}"
    if tree and key not in tree:
        collectives = ", ".join(sorted(k.partition("=")[2] for k in tree))
        raise UsageError(
            f"this MPICH has no collective {name}; it has {collectives}",
            code="collectives.operation_unknown",
        )
    branch: Tree = tree.get(key, {})
    return branch


def _by_size(leaves: Mapping[Rule, Tree], before: Tree) -> Tree:
    """The rules as branches. A rule applies from its size on, a branch of the tree up to its size;
    below the first rule the library's own choice stays."""
    sets: dict[int, Tree] = {}
    for size in sorted({rule.comm_size for rule in leaves}):
        own = {rule: leaf for rule, leaf in leaves.items() if rule.comm_size == size}
        is_sum = any(rule.collective in SUMS for rule in own)
        word = "total_msg_size" if is_sum else "avg_msg_size"
        sets[size] = _upwards(word, {r.message: leaf for r, leaf in own.items()}, 0, before)
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


def _leaf(rule: Rule, before: Tree, params: Mapping[str, ParamInfo]) -> Tree:
    """The algorithm where it works, elsewhere the library's own choice.

    Some algorithms abort or compute wrong results, for example with three ranks or with an
    operation that does not commute. An algorithm's conditions are those above all its uses in the
    library's own tree. They are unknown for an unused algorithm: it then gets a reduction only in
    the plainest case.
    """
    if rule.algorithm == LIBRARY_DECIDES:
        return before
    leaf = {f"algorithm={rule.algorithm}": _parameters(rule, before, params)}
    places = [path for name, path, _ in _leaves(before) if name == rule.algorithm]
    common = [c for c in places[0] if all(c in path for path in places)] if places else []
    if before and not places and rule.algorithm.startswith(_OF_REDUCTIONS):
        common = ["is_commutative=yes", "is_op_built_in=yes", "count=any"]
    if rule.algorithm.endswith("_smp") and _PARENT not in common:
        # It calls the same collective among the ranks of a node, without the condition endlessly.
        # The library's tree for allreduce lacks the condition (never used there).
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


def _parameters(rule: Rule, before: Tree, params: Mapping[str, ParamInfo]) -> Tree:
    """The parameters of the algorithm: those of the rule, else those of the library's own tree,
    else the values of its variables."""
    own = next(
        (parameters for name, _, parameters in _leaves(before) if name == rule.algorithm), {}
    )
    if own:
        return own
    rule_values = {"k": rule.fanout, "chunk_size": rule.segment}
    branches: Tree = {}
    for word, end in PARAMETERS.get(rule.algorithm.removeprefix("MPIR_"), ()):
        info = params.get(f"MPIR_CVAR_{rule.collective.upper()}_{end}")
        if value := rule_values.get(word) or (info.default if info else ""):
            branches[f"{word}={value}"] = {}
    return branches


def _leaves(tree: Tree, above: tuple[str, ...] = ()) -> Iterator[tuple[str, tuple[str, ...], Tree]]:
    """(algorithm, conditions above it, its parameters) of every leaf."""
    for key, below in tree.items():
        word, _, value = key.partition("=")
        if word == "algorithm":
            yield value, above, below
        else:
            yield from _leaves(below, (*above, key))
