"""Every text is read and written as UTF-8, by name: the locale's encoding may be any."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT_FUNCTIONS = ("read_text", "write_text")
LOCKS = ("runner/runtimes/core/kernels.py",)
"""Files that are opened to be locked; nothing is written."""
PROCESSES = ("run", "Popen", "check_output", "call", "check_call")


WORDS = (*TEXT_FUNCTIONS, "open(", "text=", "universal_newlines")
"""A file without any of them opens no text."""


def _unnamed(path: Path) -> Iterator[int]:
    text = path.read_text(encoding="utf-8")
    if not any(word in text for word in WORDS):
        return
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        names = {one.arg for one in node.keywords}
        if called in TEXT_FUNCTIONS and isinstance(node.func, ast.Attribute):
            # A function of our own, such as files.read_text, names it itself.
            own = ast.unparse(node.func.value) == "files"
            wanted = not own and not (called == "read_text" and node.args)
        elif called == "open" or called == "fdopen":
            wanted = "b" not in _mode(node, isinstance(node.func, ast.Attribute)) and _opens(node)
        else:
            wanted = called in PROCESSES and bool(names & {"text", "universal_newlines"})
        if wanted and "encoding" not in names and len(node.args) < 3:
            yield node.lineno


def _mode(call: ast.Call, method: bool) -> str:
    given = [one.value for one in call.keywords if one.arg == "mode"]
    at = 0 if method else 1
    given += call.args[at : at + 1]
    words = [one.value for one in given if isinstance(one, ast.Constant)]
    return str(words[0]) if words else "r"


def _opens(call: ast.Call) -> bool:
    """Whether it opens a text file: not a store, not a number of the system, not a trial."""
    whole = ast.unparse(call.func)
    if whole in ("os.open", "os.fdopen") or whole.endswith(("Store.open", "trial_store.open")):
        return False
    if isinstance(call.func, ast.Attribute):
        literal = not call.args or isinstance(call.args[0], ast.Constant)
        return literal and len(call.args) <= 1 and whole != "cls.open"
    return True


def test_every_text_names_its_encoding() -> None:
    found = []
    for top in ("autotune", "runner"):
        for path in sorted((ROOT / top).rglob("*.py")):
            name = str(path.relative_to(ROOT))
            if name not in LOCKS:
                found += [f"{name}:{line}" for line in _unnamed(path)]
    assert not found, found
