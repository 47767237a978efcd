"""Expressions of constraints and conditions: the nodes, their evaluation, and the parser.

The language is small; its text is parsed here and never given to ``eval``.

The grammar (loosest binding first)::

    or:          and ("or" and)*
    and:         not ("and" not)*
    not:         "not" not | comparison
    comparison:  sum (("<" | "<=" | ">" | ">=" | "==" | "!=") sum)*
                 | sum ["not"] "in" "(" sum ("," sum)* ")"
    sum:         product (("+" | "-") product)*
    product:     unary (("*" | "/" | "%") unary)*
    unary:       "-" unary | atom
    atom:        number[k|M|G] | 'text' | "text" | true | false | name
                 | "set" "(" name ")" | "(" or ")"

A name is a parameter or a fact (ranks, cores, nodes). An unset parameter has its default, if known.

Logic is three-valued (Kleene): ``None`` means "unknown". It makes the result unknown, unless the
other side of an ``and`` or ``or`` decides alone. An unknown result never counts against a setting:
a constraint is broken, or a parameter inactive by its condition, only if the result is known to be
false.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol

from autotune.errors import UsageError
from autotune.space.setting import Value, read_value

Result = Value | bool | None


class Scope(Protocol):
    """Provides the values of names."""

    def value(self, name: str) -> Value | None:
        """The value in force, or None if it is not known."""

    def is_set(self, name: str) -> bool:
        """True if the setting gives this parameter a value."""


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
        """The value under a scope; None if it is not known."""
        raise NotImplementedError

    def children(self) -> tuple[Expr, ...]:
        """The nodes directly below this one."""
        return ()

    def map(self, change: Callable[[Expr], Expr]) -> Expr:
        """The expression rebuilt with ``change`` applied to every node, leaves first."""
        return change(self)

    @cached_property
    def names(self) -> frozenset[str]:
        """Every parameter or fact in the expression."""
        return frozenset().union(*(child.names for child in self.children()))

    def truth(self, scope: Scope) -> bool | None:
        """True or False, or None if a deciding value is unknown."""
        result = self.evaluate(scope)
        if result is None:
            return None
        return result not in (0, "")


@dataclass(frozen=True)
class Constant(Expr):
    """A number, a text, or a truth value."""

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
    """The name of a parameter, a derived value or a fact."""

    name: str

    def evaluate(self, scope: Scope) -> Result:
        return scope.value(self.name)

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset({self.name})

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class IsSet(Expr):
    """``set(name)``: True if the setting gives the parameter a value."""

    name: str

    def evaluate(self, scope: Scope) -> Result:
        return scope.is_set(self.name)

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset({self.name})

    def __str__(self) -> str:
        return f"set({self.name})"


@dataclass(frozen=True)
class Arithmetic(Expr):
    """Arithmetic on two numbers; unknown for text and for a division by zero."""

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
    """A comparison of two values."""

    sign: str
    left: Expr
    right: Expr

    def evaluate(self, scope: Scope) -> Result:
        left, right = self.left.evaluate(scope), self.right.evaluate(scope)
        if left is None or right is None:
            return None
        if isinstance(left, str) != isinstance(right, str):
            # Text never equals a number, and the two have no order.
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
    """``not`` of a term; unknown stays unknown."""

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


def rename_names(expr: Expr, names: Mapping[str, str]) -> Expr:
    """The same expression with names replaced, for a library that uses other parameter names."""

    def change(node: Expr) -> Expr:
        if isinstance(node, Name):
            return Name(names.get(node.name, node.name))
        if isinstance(node, IsSet):
            return IsSet(names.get(node.name, node.name))
        return node

    return expr.map(change)


class ExpressionError(UsageError):
    """The text is not an expression; the message has the column."""


_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+[kKmMgG]|(?:\d+\.\d*|\.?\d+)(?:[eE][+-]?\d+)?)(?![A-Za-z0-9_.])"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<text>'[^']*'|\"[^\"]*\")"
    r"|(?P<sign><=|>=|==|!=|[-+*/%<>(),]))",
    re.ASCII,
)
_KEYWORDS = {"and", "or", "not", "in", "set"}
_DEEPEST = 50
_LONGEST = 400
"""Largest nesting and number of words: the parser is recursive and must not exhaust the stack."""


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    column: int


@lru_cache(maxsize=4096)
def parse_expression(text: str) -> Expr:
    """Parse one expression; raises :class:`ExpressionError` with the column.

    Cached, because each file of a space is read many times.
    """
    return _Parser(text).whole()


class _Parser:
    """Recursive descent, one method per line of the grammar."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._split(text)
        self._next = 0
        self._depth = 0

    def whole(self) -> Expr:
        expr = self._or()
        if self._peek.kind != "end":
            raise self._error("expected an operator or the end")
        return expr

    def _split(self, text: str) -> list[_Token]:
        tokens, place = [], 0
        end = len(text.rstrip())
        while place < end:
            match = _TOKEN.match(text, place)
            if match is None or match.lastgroup is None:
                column = place + len(text[place:]) - len(text[place:].lstrip()) + 1
                raise ExpressionError(
                    f"expression {text!r}, column {column}: cannot read {text[column - 1 :]!r}",
                    code="expression.syntax",
                )
            kind = match.lastgroup
            tokens.append(_Token(kind, match[kind], match.start(kind) + 1))
            place = match.end()
        if len(tokens) > _LONGEST:
            column = tokens[_LONGEST].column
            raise ExpressionError(
                f"expression {text[:40]!r}..., column {column}: longer than {_LONGEST} words; "
                "split it into several constraints",
                code="expression.too_long",
            )
        return [*tokens, _Token("end", "", end + 1)]

    @property
    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self, *texts: str) -> str | None:
        """Consume the next token and return its text, if it is a sign or keyword in ``texts``."""
        token = self._peek
        if token.kind in ("sign", "name") and token.text in texts:
            self._next += 1
            return token.text
        return None

    def _expect(self, text: str) -> None:
        if self._take(text) is None:
            raise self._error(f"expected {text!r}")

    def _error(self, problem: str) -> ExpressionError:
        token = repr(self._peek.text) if self._peek.text else "the end"
        return ExpressionError(
            f"expression {self._text!r}, column {self._peek.column}: {problem}, found {token}",
            code="expression.syntax",
        )

    def _or(self) -> Expr:
        return self._logic("or", self._and)

    def _and(self) -> Expr:
        return self._logic("and", self._not)

    def _logic(self, word: str, inner: Callable[[], Expr]) -> Expr:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._error("expected less nesting")
        terms = [inner()]
        while self._take(word):
            terms.append(inner())
        self._depth -= 1
        return terms[0] if len(terms) == 1 else Logic(word, tuple(terms))

    def _not(self) -> Expr:
        count = 0
        while self._take("not"):
            count += 1
        expr = self._comparison()
        return expr if count == 0 else Not(expr if count % 2 else Not(expr))

    def _comparison(self) -> Expr:
        left = self._sum()
        if self._take("in"):
            return self._membership(left)
        if self._take("not"):
            self._expect("in")
            return Not(self._membership(left))
        links: list[Expr] = []
        while sign := self._take(*COMPARE):
            right = self._sum()
            links.append(Compare(sign, left, right))
            left = right
        if not links:
            return left
        return links[0] if len(links) == 1 else Logic("and", tuple(links))

    def _membership(self, left: Expr) -> Expr:
        self._expect("(")
        tests: list[Expr] = [Compare("==", left, self._sum())]
        while self._take(","):
            tests.append(Compare("==", left, self._sum()))
        self._expect(")")
        return tests[0] if len(tests) == 1 else Logic("or", tuple(tests))

    def _sum(self) -> Expr:
        return self._left_to_right(("+", "-"), self._product)

    def _product(self) -> Expr:
        return self._left_to_right(("*", "/", "%"), self._unary)

    def _left_to_right(self, signs: tuple[str, ...], inner: Callable[[], Expr]) -> Expr:
        left = inner()
        while sign := self._take(*signs):
            left = Arithmetic(sign, left, inner())
        return left

    def _unary(self) -> Expr:
        count = 0
        while self._take("-"):
            count += 1
        expr = self._atom()
        for _ in range(count):
            expr = Arithmetic("-", Constant(0), expr)
        return expr

    def _atom(self) -> Expr:
        token = self._peek
        if token.kind in ("number", "text"):
            self._next += 1
            if token.kind == "text":
                return Constant(token.text[1:-1])
            return Constant(self._number(token))
        if self._take("("):
            expr = self._or()
            self._expect(")")
            return expr
        if self._take("set"):
            self._expect("(")
            name = self._name()
            self._expect(")")
            return IsSet(name)
        if word := self._take("true", "false"):
            return Constant(int(word == "true"))
        return Name(self._name())

    def _number(self, token: _Token) -> int | float:
        number = read_value(token.text)
        if isinstance(number, str):
            self._next -= 1
            raise self._error("expected a smaller number")
        return number

    def _name(self) -> str:
        token = self._peek
        if token.kind != "name" or token.text in _KEYWORDS:
            raise self._error("expected a name, a number, a text or '('")
        self._next += 1
        return token.text
