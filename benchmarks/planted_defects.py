"""Planted defects: which of the tests find a small change of the code.

A seed draws defects: one operator, constant or condition in a module of the areas below. Each is
planted in a copy of the sources, and the tests of its package run, then those that import it, until
one fails or two minutes are over. A change of the suite is harmless if it finds the same ones.

The list is kept: `--list FILE` draws it once and reads it afterwards. A list that was drawn before
a suite is changed stays as it was, so a defect whose line has changed since is looked for by its
text, and reported if it is gone. Rows of --json are continued.

Usage: python -m benchmarks.planted_defects [--list FILE] [--seed 57] [--limit 120] [--json FILE]
           [--only N ...]
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.common import ROOT, run_benchmark
from runner.files import write_atomically
from runner.supervise.process_tree import become_subreaper, end_everything

AREAS: dict[str, tuple[int, tuple[str, ...]]] = {
    "measurement": (
        9,
        (
            "autotune/study",
            "autotune/measurement",
            "runner/guard",
            "runner/outcome",
            "runner/launch.py",
        ),
    ),
    "statistics": (9, ("autotune/stats",)),
    "store": (8, ("autotune/store",)),
    "publish": (8, ("autotune/publish",)),
    "supervise": (8, ("runner/supervise",)),
    "space": (8, ("autotune/space",)),
    "runtimes": (
        6,
        (
            "runner/runtimes/mate",
            "runner/runtimes/tarragon",
            "runner/runtimes/tpod",
            "runner/runtimes/intranode",
        ),
    ),
    "programs": (4, ("runner/programs/apps", "runner/programs/nas", "runner/programs/micro")),
}
"""Number of defects of each area, and the folders and files that it has; a name without suffix is
that of a folder or of modules that begin so."""
LIST = ROOT / "benchmarks" / "references" / "planted_defects.json"
FLIPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


@dataclass(frozen=True)
class Defect:
    """One change: the source text ``before``, at an offset of bytes in ``file``, becomes ``after``.

    ``line`` is the whole line, by which a moved defect is found again.
    """

    number: int
    area: str
    file: str
    row: int
    line: str
    before: str
    after: str


def modules(places: tuple[str, ...]) -> list[Path]:
    """The Python files of an area, in order."""
    found: set[Path] = set()
    for place in places:
        whole = ROOT / place
        found |= set(whole.rglob("*.py")) if whole.is_dir() else set(ROOT.glob(f"{place}*"))
    return sorted(path for path in found if path.suffix == ".py" and path.name != "__init__.py")


def changes(source: str) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Every expression that can be changed, with what it becomes."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in FLIPS:
            flipped = FLIPS[type(node.ops[0])]()
            yield node, ast.Compare(node.left, [flipped], node.comparators)  # type: ignore[list-item]
        elif isinstance(node, ast.BinOp) and type(node.op) in FLIPS:
            yield node, ast.BinOp(node.left, FLIPS[type(node.op)](), node.right)  # type: ignore[arg-type]
        elif isinstance(node, ast.BoolOp):
            yield node, ast.BoolOp(FLIPS[type(node.op)](), node.values)  # type: ignore[arg-type]
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield node, node.operand
        elif isinstance(node, ast.If | ast.IfExp | ast.While) and isinstance(
            node.test, ast.Name | ast.Call | ast.Attribute
        ):
            yield node.test, ast.UnaryOp(ast.Not(), node.test)
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
            value = node.value
            yield node, ast.Constant(not value if isinstance(value, bool) else value + 1)


def draw(seed: int) -> list[Defect]:
    """The list of a seed; each module of an area has at most two defects."""
    dice = random.Random(seed)
    found: list[Defect] = []
    for area, (wanted, places) in AREAS.items():
        paths, used = modules(places), dict[Path, int]()
        made = 0
        while made < wanted:
            path = dice.choice(paths)
            source = path.read_text()
            nodes = [pair for pair in changes(source) if pair[0].lineno == pair[0].end_lineno]
            if used.get(path, 0) >= 2 or not nodes:
                continue
            node, changed = dice.choice(nodes)
            line = source.splitlines()[node.lineno - 1]
            before = ast.get_source_segment(source, node) or ""
            if line.count(before) != 1 or source.splitlines().count(line) != 1:
                continue  # It could not be found again.
            used[path] = used.get(path, 0) + 1
            made += 1
            file, after = str(path.relative_to(ROOT)), f"({ast.unparse(changed)})"
            found.append(Defect(len(found) + 1, area, file, node.lineno, line, before, after))
    return found


def planted(defect: Defect, place: Path) -> str:
    """Plant a defect in the sources at ``place``; returns the file that was changed.

    Raises LookupError if its line is nowhere, or in several files.
    """
    pattern = [place / defect.file]
    if not pattern[0].is_file() or defect.line not in pattern[0].read_text().splitlines():
        roots = [place / "autotune", place / "runner"]
        pattern = [
            path
            for root in roots
            for path in root.rglob("*.py")
            if defect.line in path.read_text().splitlines()
        ]
    if len(pattern) != 1:
        raise LookupError(f"{len(pattern)} files have the line")
    lines = pattern[0].read_text().splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if line.rstrip("\n") == defect.line)
    lines[at] = lines[at].replace(defect.before, defect.after, 1)
    pattern[0].write_text("".join(lines))
    return str(pattern[0].relative_to(place))


def suites_of(file: str, place: Path) -> list[list[str]]:
    """The tests of the package of a file, then the files of tests that import its module."""
    parts = file.removesuffix(".py").split("/")
    folders = [f"tests/{part}" for part in parts[1:-1]]
    if parts[0] == "runner":
        folders.append("tests/runner")
    package = [name for name in folders if (place / name).is_dir()][:1]
    whole, above, name = (re.escape(".".join(p)) for p in (parts, parts[:-1], parts[-1:]))
    module = re.compile(rf"{whole}\b|from {above} import [^\n]*\b{name}\b")
    inside = tuple(f"{name}/" for name in package)
    others = [
        str(path.relative_to(place))
        for path in sorted((place / "tests").rglob("test_*.py"))
        if module.search(path.read_text()) and not str(path.relative_to(place)).startswith(inside)
    ]
    return [words for words in (package, others) if words]


def look_for(defect: Defect, limit_s: float) -> dict[str, Any]:
    """Plant one defect in a copy of the sources and run its tests; the row of the report."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        place = Path(folder) / "sources"
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
        )
        for name in filter(None, listed.stdout.split("\0")):
            if (ROOT / name).is_file():
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, place / name)
        try:
            file = planted(defect, place)
        except LookupError as gone:
            return {**asdict(defect), "outcome": "gone", "by": str(gone)}
        outcome, by = "survived", ""
        for words in suites_of(file, place):
            left = limit_s - (time.monotonic() - began)
            try:
                done = subprocess.run(
                    [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p",
                     "no:cacheprovider", *words],
                    cwd=place, capture_output=True, text=True, check=False, timeout=max(left, 1.0),
                    env=_environment(place),
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                outcome = "not within the time"
                break
            finally:
                end_everything()
            if done.returncode not in (0, 5):
                outcome = "found"
                failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.M)
                by = failed.group(1) if failed else f"pytest ended with {done.returncode}"
                break
    seconds = round(time.monotonic() - began, 1)
    return {**asdict(defect), "outcome": outcome, "by": by, "seconds": seconds}


def _environment(place: Path) -> dict[str, str]:
    lock = f"{place.parent}/lock"
    return {**os.environ, "PYTHONPATH": str(place), "AUTOTUNE_LOCK_FILE": lock}


def main() -> int:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--list", type=Path, default=LIST)
    arguments.add_argument("--seed", type=int, default=57)
    arguments.add_argument("--limit", type=float, default=120.0, help="seconds for each")
    arguments.add_argument("--only", type=int, nargs="+")
    arguments.add_argument("--json", type=Path)
    given = arguments.parse_args()
    become_subreaper()
    if not given.list.exists():
        rows = ",\n".join(f" {json.dumps(asdict(defect))}" for defect in draw(given.seed))
        write_atomically(given.list, f"[\n{rows}\n]\n")
        print(f"drawn: {given.list}")
    defects = [Defect(**row) for row in json.loads(given.list.read_text())]
    if given.json is None:
        return 0
    done = json.loads(given.json.read_text()) if given.json.exists() else []
    known = {row["number"] for row in done}
    for defect in defects:
        if defect.number in known or (given.only and defect.number not in given.only):
            continue
        row = look_for(defect, given.limit)
        done.append(row)
        write_atomically(given.json, json.dumps(done, indent=1) + "\n")
        print(
            f"{defect.number:3} {defect.file}:{defect.row} {row['outcome']} {row['by']}", flush=True
        )
    return 0


if __name__ == "__main__":
    run_benchmark(main)
