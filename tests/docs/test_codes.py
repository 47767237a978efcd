"""Each error and note has a literal, stable code, and the page of codes lists exactly those."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from autotune.errors import AutotuneError, UsageError
from runner.errors import RunnerError
from tests.case_table import case_table

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "codes.md"
PATTERN = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+)+")
BASES = {"AutotuneError", "RunnerError"}
OWN_INIT = {
    *("StartError", "TranslationError", "Refusal", "ExecutionError"),
    *("tarragon.Deadlock", "tpod.Deadlock", "Unusable"),
}
"""Classes whose ``__init__`` gives the code itself."""
PLACES = {
    **{"Note": 0, "LockNews": 0, "note_line": 0, "StoreFinding": 0},
    **{"DoctorFinding": 1, "SpaceFinding": 1},
}
"""Constructions of notes, with the position of the code among the arguments."""
PRINTED = {"_report_error": 2, "_document": 2}
"""Functions of the command line that print an error, with the position of the code."""


@dataclass(frozen=True)
class Call:
    """A call that may be given a code; a kept syntax tree would slow all later tests."""

    place: str
    name: str
    codes: tuple[ast.expr | None, ...]
    """The argument ``code``, or else None; then the first positional arguments."""

    def code(self, position: int | None) -> ast.expr | None:
        """The argument ``code``, or the positional one; None where there is neither."""
        keyword, *positional = self.codes
        if keyword is not None or position is None or len(positional) <= position:
            return keyword
        return positional[position]


_MOST = 1 + max((*PLACES.values(), *PRINTED.values()))


@cache
def _classes_and_calls() -> tuple[dict[str, set[str]], list[Call]]:
    """The bases of the classes of the sources, by name, and the calls."""
    bases: dict[str, set[str]] = {}
    calls = []
    for path in (p for top in ("autotune", "runner") for p in sorted((ROOT / top).rglob("*.py"))):
        place = path.relative_to(ROOT)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                code = next((k.value for k in node.keywords if k.arg == "code"), None)
                arguments = (_leaf(value) for value in (code, *node.args[:_MOST]))
                calls.append(Call(f"{place}:{node.lineno}", _name(node.func), tuple(arguments)))
            elif isinstance(node, ast.ClassDef):
                bases.setdefault(node.name, set()).update(map(_name, node.bases))
    return bases, calls


def _leaf(node: ast.expr | None) -> ast.expr | None:
    """The node, without what is below it."""
    if node is None or isinstance(node, ast.Constant | ast.Name):
        return node
    return ast.Name(_name(node))


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")


@cache
def _errors() -> frozenset[str]:
    """The names of all classes of errors that are shown to the user."""
    bases, _ = _classes_and_calls()
    known = set(BASES)
    while more := {name for name, of in bases.items() if name not in known and known & of}:
        known |= more
    return frozenset(known)


def _codes(positions: dict[str, int], errors: bool) -> set[str]:
    """The literal codes of the sources, of errors or of notes."""
    found = set()
    for call in _classes_and_calls()[1]:
        if call.name not in positions and (not errors or call.name in PLACES):
            continue
        code = call.code(positions.get(call.name))
        if isinstance(code, ast.Constant) and isinstance(code.value, str):
            found.add(code.value)
    return found


def _listed() -> dict[str, str]:
    """The kinds of the codes on the page."""
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]+) \| [^|]+ \| [^|]+ \|$", PAGE.read_text(), re.M)
    assert len(rows) == len(dict(rows))
    assert [code for code, _ in rows] == sorted(code for code, _ in rows)
    return dict(rows)


def test_the_page_lists_the_codes_of_the_sources() -> None:
    errors, notes = _codes(PRINTED, errors=True), _codes(PLACES, errors=False)
    kinds = {
        code: ", ".join(kind for kind, of in (("error", errors), ("note", notes)) if code in of)
        for code in errors | notes
    }
    assert _listed() == kinds


def test_each_row_says_what_it_means_and_what_to_do() -> None:
    rows = re.findall(
        r"^\| `(\w+)\.[^`]+` \| [^|]+ \| ([^|]+) \| ([^|]+) \|$", PAGE.read_text(), re.M
    )
    assert [row for row in rows if not all(re.fullmatch(r"\S.+\w.*[.)]", s) for s in row[1:])] == []
    meanings = [(area, meaning) for area, meaning, _ in rows]
    assert len(meanings) == len(set(meanings)) > 300


def test_each_code_has_the_form_of_one() -> None:
    assert len(_listed()) > 300
    assert [code for code in _listed() if not PATTERN.fullmatch(code)] == []


def test_each_construction_gives_a_literal_code_or_hands_one_on() -> None:
    wrong = []
    for call in _classes_and_calls()[1]:
        packages = call.place.split("/")[1:-1]
        names = {call.name, *(f"{package}.{call.name}" for package in packages)}
        if not OWN_INIT.isdisjoint(names):
            continue
        if call.name not in _errors() and call.name not in PLACES:
            continue
        code = call.code(PLACES.get(call.name))
        literal = isinstance(code, ast.Constant) and isinstance(code.value, str)
        handed_on = code is not None and _name(code) == "code"
        if not literal and not handed_on:
            wrong.append(call.place)
    assert wrong == []


@case_table("kind", [AutotuneError, UsageError, RunnerError])
def test_an_error_without_a_code_is_refused(kind: type[Exception]) -> None:
    with pytest.raises(TypeError, match="code"):
        kind("message")
