"""Each error and note has a literal, stable code, and the page of codes lists exactly those."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from autotune.errors import AutotuneError, UsageError
from runner.errors import RunnerError

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "codes.md"
PATTERN = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+)+")
BASES = {"AutotuneError", "RunnerError"}
OWN_INIT = {
    *("StartError", "TranslationError", "Refusal", "ExecutionError"),
    *("tarragon.Deadlock", "tpod.Deadlock", "Unusable"),
}
"""Classes whose ``__init__`` gives the code itself."""
PLACES = {"Note": 0, "LockNews": 0, "note_line": 0, "DoctorFinding": 1, "SpaceFinding": 1}
"""Constructions of notes, with the position of the code among the arguments."""
PRINTED = {"_report_error": 2, "_document": 2}
"""Functions of the command line that print an error, with the position of the code."""


@cache
def _nodes() -> tuple[list[ast.ClassDef], list[tuple[str, ast.Call]]]:
    """The classes of the sources, and the calls with their places."""
    classes, calls = [], []
    for path in (p for top in ("autotune", "runner") for p in sorted((ROOT / top).rglob("*.py"))):
        place = path.relative_to(ROOT)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                calls.append((f"{place}:{node.lineno}", node))
            elif isinstance(node, ast.ClassDef):
                classes.append(node)
    return classes, calls


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")


@cache
def _errors() -> frozenset[str]:
    """The names of all classes of errors that are shown to the user."""
    classes, _ = _nodes()
    known = set(BASES)
    while more := {
        c.name for c in classes if c.name not in known and known & {_name(b) for b in c.bases}
    }:
        known |= more
    return frozenset(known)


def _code_of(call: ast.Call, position: int | None) -> ast.expr | None:
    for keyword in call.keywords:
        if keyword.arg == "code":
            return keyword.value
    if position is None or len(call.args) <= position:
        return None
    return call.args[position]


def _codes(positions: dict[str, int], errors: bool) -> set[str]:
    """The literal codes of the sources, of errors or of notes."""
    found = set()
    for _, call in _nodes()[1]:
        name = _name(call.func)
        if name not in positions and (not errors or name in PLACES):
            continue
        code = _code_of(call, positions.get(name))
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
    for place, call in _nodes()[1]:
        name = _name(call.func)
        packages = place.split("/")[1:-1]
        if not OWN_INIT.isdisjoint({name, *(f"{package}.{name}" for package in packages)}):
            continue
        if name not in _errors() and name not in PLACES:
            continue
        code = _code_of(call, PLACES.get(name))
        literal = isinstance(code, ast.Constant) and isinstance(code.value, str)
        handed_on = code is not None and _name(code) == "code"
        if not literal and not handed_on:
            wrong.append(place)
    assert wrong == []


@pytest.mark.parametrize("kind", [AutotuneError, UsageError, RunnerError])
def test_an_error_without_a_code_is_refused(kind: type[Exception]) -> None:
    with pytest.raises(TypeError, match="code"):
        kind("message")
