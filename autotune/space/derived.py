"""Derived values: what follows from parameters and facts, and is never set itself."""

from __future__ import annotations

from collections.abc import Mapping

from autotune.space.nodes import Expr, IsSet, Logic, Name


def derive(definitions: Mapping[str, Expr]) -> dict[str, Expr]:
    """The expressions in terms of parameters and facts alone; each may use those before it."""
    known: dict[str, Expr] = {}
    for name, expr in definitions.items():
        known[name] = spelled_out(expr, known)
    return known


def spelled_out(expr: Expr, derived: Mapping[str, Expr]) -> Expr:
    """``expr`` with what derived values stand for in their place.

    Rules then name the parameters that they depend on, which is what repairs and walks go by.  A
    derived value counts as set where any name in it is.
    """

    def change(node: Expr) -> Expr:
        if isinstance(node, Name):
            return derived.get(node.name, node)
        if isinstance(node, IsSet) and node.name in derived:
            tests = tuple(IsSet(name) for name in sorted(derived[node.name].names))
            return tests[0] if len(tests) == 1 else Logic("or", tests)
        return node

    return expr.map(change)
