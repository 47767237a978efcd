"""No test compares measured figures with ``==`` after a change of their units.

``seconds == us / 1e6`` holds or fails by the last bit of a measured number, so such a test fails in
some of its runs.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.case_table import case_table

TESTS = Path(__file__).parent
SCALES = {10.0**power for power in range(-12, 13) if power} | {60.0, 3600.0}
MEASURED = re.compile(
    r"(^|_)(ns|us|ms|s|seconds|minutes|hours|time|wall|mb_s|gb_s|flops|gflops|mflops|mops)$"
)

NUMBER = re.compile(r"[*/]\s*\(?[\d.]|\d\)?\s*[*/]")
"""A number that multiplies or divides, in the text of a source."""


def changes(expression: ast.expr) -> bool:
    """Whether a measured figure is multiplied or divided by a scale in this expression."""
    return any(
        isinstance(part, ast.BinOp)
        and isinstance(part.op, (ast.Mult, ast.Div))
        and any(_is_scale(side) for side in (part.left, part.right))
        and any(MEASURED.search(name) for name in _names(part))
        for part in _outside_calls(expression)
    )


def comparisons(source: str) -> list[int]:
    """The lines of a source in which ``==`` or ``!=`` follows a change of units."""
    if not NUMBER.search(source):
        return []  # Parsing takes a hundred times as long.
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Compare)
        and any(isinstance(operator, (ast.Eq, ast.NotEq)) for operator in node.ops)
        and not _is_tolerant(node)
        and any(changes(side) for side in (node.left, *node.comparators))
    ]


def _is_tolerant(comparison: ast.Compare) -> bool:
    sides = (comparison.left, *comparison.comparators)
    calls = [side.func for side in sides if isinstance(side, ast.Call)]
    return any(ast.unparse(call).rpartition(".")[2] == "approx" for call in calls)


def _is_scale(side: ast.expr) -> bool:
    return (
        isinstance(side, ast.Constant)
        and type(side.value) in (int, float)
        and (float(side.value) in SCALES)
    )


def _outside_calls(expression: ast.expr) -> list[ast.AST]:
    """The parts of an expression, without the arguments of calls except those of ``sum``."""
    parts: list[ast.AST] = [expression]
    for part in parts:
        if isinstance(part, ast.Call) and ast.unparse(part.func) not in ("sum", "min", "max"):
            continue
        parts += ast.iter_child_nodes(part)
    return parts


def _names(expression: ast.expr) -> list[str]:
    """Names, attributes and keys in an expression."""
    found = []
    for part in ast.walk(expression):
        if isinstance(part, ast.Name):
            found.append(part.id)
        elif isinstance(part, ast.Attribute):
            found.append(part.attr)
        elif isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Constant):
            found.append(str(part.slice.value))
    return found


def test_no_measured_figure_is_compared_exactly_after_a_change_of_units() -> None:
    places = [
        f"{path.relative_to(TESTS)}:{line}"
        for path in sorted(TESTS.rglob("*.py"))
        for line in comparisons(path.read_text())
    ]
    assert places == []


@case_table(
    ("line", "wrong"),
    [
        ('assert a["seconds"] == a["us"] / 1e6', True),
        ("assert run.wall_s * 1000 == shown", True),
        ("assert total_us != 1_000_000 * sum(times_s)", True),
        ('assert a["seconds"] == pytest.approx(a["us"] / 1e6)', False),
        ("assert a.median_s == min(b.wall_s for b in runs)", False),
        ("assert size == 1000 * ranks", False),
        ('assert a["share"] <= a["us"] / 1e6', False),
    ],
)
def test_what_the_check_sees(line: str, wrong: bool) -> None:
    assert bool(comparisons(line)) is wrong
