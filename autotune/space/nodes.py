"""What an expression is made of: the nodes that the parser builds, and what each evaluates to.

Logic is three-valued (Kleene): ``None`` stands for "not known" and spreads, unless the other side
of an ``and`` / ``or`` decides alone.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from autotune.space.setting import Value

Result = Value | bool | None


class Scope(Protocol):
    """Where names get their meaning."""

    def value(self, name: str) -> Value | None:
        """The value in force, or None where it is not known."""

    def is_set(self, name: str) -> bool:
        """Whether the setting gives this parameter a value of its own."""


COMPARE: dict[str, Callable[[Value, Value], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
ARITHMETIC: dict[str, Callable[[int | float, int | float], int | float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
}


@dataclass(frozen=True)
class Expr:
    """One node; ``str(node)`` is text that parses to an equal expression."""

    def evaluate(self, scope: Scope) -> Result:
        raise NotImplementedError

    def children(self) -> tuple[Expr, ...]:
        return ()

    def map(self, change: Callable[[Expr], Expr]) -> Expr:
        """The expression rebuilt with ``change`` applied to every node, leaves first."""
        return change(self)

    @property
    def names(self) -> frozenset[str]:
        """Every parameter or fact that is mentioned."""
        return frozenset().union(*(child.names for child in self.children()))

    def truth(self, scope: Scope) -> bool | None:
        """True, False, or None where something needed is not known."""
        result = self.evaluate(scope)
        if result is None:
            return None
        return result not in (0, "")


@dataclass(frozen=True)
class Constant(Expr):
    content: Value

    def evaluate(self, scope: Scope) -> Result:
        return self.content

    def __str__(self) -> str:
        if not isinstance(self.content, str):
            return repr(self.content)
        quote = '"' if "'" in self.content else "'"
        return f"{quote}{self.content}{quote}"


@dataclass(frozen=True)
class Name(Expr):
    name: str

    def evaluate(self, scope: Scope) -> Result:
        return scope.value(self.name)

    @property
    def names(self) -> frozenset[str]:
        return frozenset({self.name})

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class IsSet(Expr):
    name: str

    def evaluate(self, scope: Scope) -> Result:
        return scope.is_set(self.name)

    @property
    def names(self) -> frozenset[str]:
        return frozenset({self.name})

    def __str__(self) -> str:
        return f"set({self.name})"


@dataclass(frozen=True)
class Arithmetic(Expr):
    sign: str
    left: Expr
    right: Expr

    def evaluate(self, scope: Scope) -> Result:
        left, right = self.left.evaluate(scope), self.right.evaluate(scope)
        if not isinstance(left, int | float) or not isinstance(right, int | float):
            return None
        try:
            return ARITHMETIC[self.sign](left, right)
        except (ZeroDivisionError, OverflowError):
            return None

    def children(self) -> tuple[Expr, ...]:
        return (self.left, self.right)

    def map(self, change: Callable[[Expr], Expr]) -> Expr:
        return change(Arithmetic(self.sign, self.left.map(change), self.right.map(change)))

    def __str__(self) -> str:
        return f"({self.left} {self.sign} {self.right})"


@dataclass(frozen=True)
class Compare(Expr):
    sign: str
    left: Expr
    right: Expr

    def evaluate(self, scope: Scope) -> Result:
        left, right = self.left.evaluate(scope), self.right.evaluate(scope)
        if left is None or right is None:
            return None
        if isinstance(left, str) != isinstance(right, str):
            # Text never equals a number; which of them is larger has no answer.
            return {"==": False, "!=": True}.get(self.sign)
        return COMPARE[self.sign](left, right)

    def children(self) -> tuple[Expr, ...]:
        return (self.left, self.right)

    def map(self, change: Callable[[Expr], Expr]) -> Expr:
        return change(Compare(self.sign, self.left.map(change), self.right.map(change)))

    def __str__(self) -> str:
        return f"({self.left} {self.sign} {self.right})"


@dataclass(frozen=True)
class Logic(Expr):
    """``and`` / ``or`` over two or more terms (Kleene's three-valued logic)."""

    word: str
    terms: tuple[Expr, ...]

    def evaluate(self, scope: Scope) -> Result:
        decisive = self.word == "or"
        unknown = False
        for term in self.terms:
            truth = term.truth(scope)
            if truth is decisive:
                return decisive
            unknown = unknown or truth is None
        return None if unknown else not decisive

    def children(self) -> tuple[Expr, ...]:
        return self.terms

    def map(self, change: Callable[[Expr], Expr]) -> Expr:
        return change(Logic(self.word, tuple(term.map(change) for term in self.terms)))

    def __str__(self) -> str:
        return "(" + f" {self.word} ".join(map(str, self.terms)) + ")"


@dataclass(frozen=True)
class Not(Expr):
    term: Expr

    def evaluate(self, scope: Scope) -> Result:
        truth = self.term.truth(scope)
        return None if truth is None else not truth

    def children(self) -> tuple[Expr, ...]:
        return (self.term,)

    def map(self, change: Callable[[Expr], Expr]) -> Expr:
        return change(Not(self.term.map(change)))

    def __str__(self) -> str:
        return f"(not {self.term})"


def renamed(expr: Expr, names: Mapping[str, str]) -> Expr:
    """The same expression with names replaced, as when a library calls a parameter otherwise."""

    def change(node: Expr) -> Expr:
        if isinstance(node, Name):
            return Name(names.get(node.name, node.name))
        if isinstance(node, IsSet):
            return IsSet(names.get(node.name, node.name))
        return node

    return expr.map(change)
