"""No test outside a snapshot compares output with a phrase: it asserts codes and data."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PHRASE = re.compile(r"[A-Za-z]{2,}[ ,;:]+\(?[a-z]{2,}")
"""Two words or more."""
DATA = "# data"
"""Ends the line of a literal that is data: a program's own output, a name, an input."""
PENDING: set[str] = set()
"""Files that still compare phrases."""


def phrases(path: Path) -> list[str]:
    """``line: phrase`` of each literal of several words that is compared, or matched."""
    text = path.read_text(encoding="utf-8")
    lines, tree = text.splitlines(), ast.parse(text)
    compared = {id(node): node for node in literals(tree)}
    inputs = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if id(node) not in compared
    }
    return [
        f"{path.name}:{node.lineno}: {node.value!r}"
        for node in compared.values()
        if PHRASE.search(node.value)
        and not any(node.value in given for given in inputs)
        and not lines[node.end_lineno - 1].endswith(DATA)
    ]


def literals(tree: ast.AST) -> Iterator[ast.Constant]:
    """The texts in comparisons, and those of ``match=``."""
    for node in ast.walk(tree):
        sides: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
        elif isinstance(node, ast.Call):
            sides = [keyword.value for keyword in node.keywords if keyword.arg == "match"]
        for side in sides:
            if isinstance(side, ast.List | ast.Tuple | ast.Set):
                sides += side.elts
            if isinstance(side, ast.Constant | ast.JoinedStr | ast.BinOp):
                for inner in ast.walk(side):
                    if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                        yield inner


FILES = sorted(path for path in HERE.rglob("*.py") if path != Path(__file__))


def test_phrases_stand_in_snapshots() -> None:
    listed = {str(p.relative_to(HERE)): phrases(p) for p in FILES}
    assert [one for name, each in listed.items() if name not in PENDING for one in each] == []
    assert {name for name in PENDING if not listed.get(name)} == set()


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("assert 'no such file' in err", 1),
        ("with raises(X, match='is not a number'):\n    pass", 1),
        ("assert code == 'metric.cut'", 0),
        ("text = 'my own input'\nassert read(text) == 'my own input'", 0),
        ("assert cpu == 'Intel Xeon'", 0),
        ("assert printed == 'hello you'  # data", 0),
    ],
)
def test_what_counts_as_a_phrase(source: str, count: int, tmp_path: Path) -> None:
    file = tmp_path / "planted.py"
    file.write_text(source)
    assert len(phrases(file)) == count
