"""No test outside a snapshot compares output with a phrase: it asserts codes and data."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.case_table import case_table

HERE = Path(__file__).parent
PHRASE = re.compile(r"[A-Za-z]{2,}[ ,;:]+\(?[a-z]{2,}")
"""Two words or more."""
DATA = "# data"
"""Ends the line of a literal that is data: a program's own output, a name, an input."""
LISTED = re.compile(r"[A-Za-z]{2,}[,;:]* +\(?[a-z]{2,}")
"""The same in a table, where a comma or colon may join the parts of a value."""
SEARCHES = {"startswith", "endswith", "count"}
SENTENCE = re.compile(r"[A-Za-z]{2,}( [a-z]+){3}")
"""In a table of values that are compared as a whole: states and verdicts have two words, too."""
PENDING: set[str] = set()
"""Files that still compare phrases."""


def phrases(path: Path) -> list[str]:
    """``line: phrase`` of each literal of several words that is compared, or matched."""
    text = path.read_text(encoding="utf-8")
    lines, tree = text.splitlines(), ast.parse(text)
    compared = {id(node): node for node in (*literals(tree), *listed(tree))}
    candidates = [
        node
        for node in compared.values()
        if PHRASE.search(node.value) and not lines[node.end_lineno - 1].endswith(DATA)
    ]
    if not candidates:
        return []
    inputs = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if id(node) not in compared
    }
    return [
        f"{path.name}:{node.lineno}: {node.value!r}"
        for node in candidates
        if not any(node.value in given for given in inputs)
    ]


def literals(tree: ast.AST) -> Iterator[ast.Constant]:
    """The texts in comparisons, and those of ``match=``."""
    for node in ast.walk(tree):
        sides: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
        elif isinstance(node, ast.Call):
            sides = [keyword.value for keyword in node.keywords if keyword.arg == "match"]
            if isinstance(node.func, ast.Attribute) and node.func.attr in SEARCHES:
                sides += [arg for arg in node.args if any(texts_of(arg, LISTED))]
        for side in sides:
            if isinstance(side, ast.List | ast.Tuple | ast.Set):
                sides += side.elts
            if isinstance(side, ast.Constant | ast.JoinedStr | ast.BinOp):
                for inner in ast.walk(side):
                    if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                        yield inner


def listed(tree: ast.Module) -> Iterator[ast.Constant]:
    """The texts of parameters and loop variables that their function only compares."""
    tables = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        columns: list[tuple[list[str], ast.expr]] = []
        for node in ast.walk(function):
            if isinstance(node, ast.For):
                columns.append((names_of(node.target), node.iter))
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript):
                columns.append((["", *names_of(node.targets[0])], node.value.value))
            elif isinstance(node, ast.Call) and called(node) in ("parametrize", "case_table"):
                columns.append((names_of(node.args[0]), node.args[1]))
        texts = [
            (name, text)
            for column, table in columns
            for row in rows(table, tables)
            for name, cell in zip(column, row if column[1:] else [ast.Tuple(row)], strict=False)
            for text in texts_of(cell, LISTED)
        ]
        sought, equal = only_compared(function) if texts else (set(), set())
        for name, text in texts:
            if name in sought or (name in equal and SENTENCE.search(text.value)):
                yield text


def called(node: ast.Call) -> str:
    """The name of what is called, without the object that has it."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)


def texts_of(cell: ast.expr, pattern: re.Pattern[str]) -> Iterator[ast.Constant]:
    for node in ast.walk(cell):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from [node] if pattern.search(node.value) else []


def names_of(target: ast.expr) -> list[str]:
    if isinstance(target, ast.Constant):
        return [name.strip() for name in str(target.value).split(",")]
    parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
    return [
        part.id if isinstance(part, ast.Name) else str(getattr(part, "value", "")) for part in parts
    ]


def rows(table: ast.expr, tables: dict[str, ast.expr]) -> Iterator[list[ast.expr]]:
    """The cells of each row of a table, which may be one of the module's or a part of one."""
    match table:
        case ast.Name(id=name) if name in tables:
            yield from rows(tables[name], tables)
        case ast.Call(func=ast.Attribute(value=whole, attr="items" | "values" as part)):
            for row in rows(whole, tables):
                yield row if part == "items" else row[1:]
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                cells = value.elts if isinstance(value, ast.Tuple | ast.List) else [value]
                yield [key or value, *cells]
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            for element in elements:
                match element:
                    case ast.Starred(value=ast.GeneratorExp(generators=[more, *_])):
                        yield from rows(more.iter, tables)
                    case ast.Starred(value=more) | (ast.Name() as more):
                        yield from rows(more, tables)
                    case ast.Tuple(elts=cells) | ast.List(elts=cells) | ast.Call(args=cells):
                        yield cells
                    case _:
                        yield [element]


def only_compared(function: ast.FunctionDef) -> tuple[set[str], set[str]]:
    """The names that a function only seeks in texts, and those that it only compares."""
    compared: set[int] = set()
    equal: set[int] = set()
    for node in ast.walk(function):
        sides: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
        elif isinstance(node, ast.Call):
            sides = [keyword.value for keyword in node.keywords if keyword.arg == "match"]
            if isinstance(node.func, ast.Attribute) and node.func.attr in SEARCHES:
                sides += node.args
        for side in sides:
            parts = [side, *getattr(side, "elts", [])]
            if isinstance(side, ast.JoinedStr):
                parts = [x.value for x in side.values if isinstance(x, ast.FormattedValue)]
            elif isinstance(side, ast.Call) and ast.unparse(side.func) == "re.escape":
                parts = side.args
            ids = {id(part) for part in parts if isinstance(part, ast.Name)}
            compared |= ids
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq):
                equal |= ids
    names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
    loads = [node for node in names if isinstance(node.ctx, ast.Load)]
    only = {n.id for n in loads} - {n.id for n in loads if id(n) not in compared}
    sought = {n.id for n in loads if n.id in only and id(n) not in equal}
    return sought, only - sought


FILES = sorted(path for path in HERE.rglob("*.py") if path != Path(__file__))


def test_phrases_stand_in_snapshots() -> None:
    listed = {str(p.relative_to(HERE)): phrases(p) for p in FILES}
    assert [one for name, each in listed.items() if name not in PENDING for one in each] == []
    assert {name for name in PENDING if not listed.get(name)} == set()


TABLE = "@pytest.mark.parametrize(('a', 'words'), [(1, 'no such file')])\ndef f(a, words):\n"


@case_table(
    ("source", "count"),
    [
        ("assert 'no such file' in err", 1),
        ("with raises(X, match='is not a number'):\n    pass", 1),
        ("assert code == 'metric.cut'", 0),
        ("text = 'my own input'\nassert read(text) == 'my own input'", 0),
        ("assert cpu == 'Intel Xeon'", 0),
        ("assert printed == 'hello you'  # data", 0),
        ("def f(words):\n    assert words in err\n", 0),
        (f"{TABLE}    assert words in err\n", 1),
        (f"{TABLE}    with raises(X, match=words):\n        pass\n", 1),
        (f"{TABLE}    assert err.startswith(f'a: {{words}}')\n", 1),
        (f"{TABLE}    assert run(words) in words\n", 0),
        (f"{TABLE}    assert state == words\n", 0),
        (f"{TABLE.replace('no such', 'there is no such')}    assert text == words\n", 1),
        ("def f():\n    for a, b in [(1, 'no such file')]:\n        assert b in err\n", 1),
        ("T = {1: 'no such file'}\ndef f():\n    for a, b in T.items():\n        run(b in x)", 1),
        ("T = {1: (1, 'no such file')}\ndef f(a):\n    n, b = T[a]\n    assert b in x\n", 1),
        ("assert err.endswith('no such file')", 1),
    ],
)
def test_what_counts_as_a_phrase(source: str, count: int, tmp_path: Path) -> None:
    file = tmp_path / "planted.py"
    file.write_text(source)
    assert len(phrases(file)) == count


def test_snapshots_are_those_of_any_machine() -> None:
    """Without addresses of objects and names of temporary files."""
    machine = re.compile(r"0x[0-9a-f]{6,}|/tmp/")
    assert [str(p) for p in HERE.rglob("*.ambr") if machine.search(p.read_text())] == []


def test_names_of_snapshots_have_dots_and_brackets_of_syrupy_only() -> None:
    """See ``tests/snapshot_ids.py``."""
    name = re.compile(
        r"^# name: (?!\w+(\.\d+|\[[^][.]*\](\.\d+)?|\[[^][.]*\]\[[^][.]*\])?$).*", re.MULTILINE
    )
    assert {str(p): m for p in HERE.rglob("*.ambr") if (m := name.search(p.read_text()))} == {}


def test_all_cases_with_a_snapshot_are_slow_or_none() -> None:
    """See ``tests/snapshot_ids.py``."""
    partly = [
        f"{path.name}: {node.name}"
        for path in HERE.rglob("test_*.py")
        if "SnapshotAssertion" in (text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
        if any(argument.arg == "snapshot" for argument in node.args.args)
        if any("marks=" in ast.unparse(decorator) for decorator in node.decorator_list)
    ]
    assert partly == []
