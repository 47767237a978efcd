"""Names of the code that say what was done instead of what a thing is: participles and adverbs.

Counted are bindings: variables, parameters, attributes, functions, classes, and what an import or a
pattern names. The last word of a name decides: ``rows_given`` counts, ``given_rows`` does not. A
question (``is_finished``, ``has_started``) does not count.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
_IRREGULAR = """begun born bought broken brought built caught chosen done drawn driven eaten
    fallen felt flown forgotten found frozen given gone got grown heard held hidden hung kept known
    laid lent lost made meant met paid proven risen said seen sent shown sought spent spoken stolen
    stuck sworn taken taught thought thrown told torn understood woken won wound written"""
_ADVERBS = """afterwards again ahead alone already apart away beside elsewhere here later once
    onwards still there thus together twice yet"""
_NOUNS = """bed bleed breed creed deed embed exceed feed greed hundred led need proceed red sacred
    seed shed shred sled speed succeed testbed weed"""
IRREGULAR, ADVERBS, NOUNS = (frozenset(text.split()) for text in (_IRREGULAR, _ADVERBS, _NOUNS))
"""``NOUNS``: words in -ed that are no participles."""
QUESTION = re.compile(r"_*(is|are|was|has|have|can|may|must)_")


def is_participle(name: str) -> bool:
    """Whether a name ends in a participle or an adverb, and is no question."""
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)
    if not words or QUESTION.match(name):
        return False
    word = words[-1].lower()
    regular = word.endswith("ed") and len(word) > 3 and word not in NOUNS
    return regular or word in IRREGULAR or word in ADVERBS


def bindings(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Each name that a module binds, with its line."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, node.lineno
            case ast.arg(arg=name):
                yield name, node.lineno
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name, node.lineno
            case (
                ast.alias(asname=str(name))
                | ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
            ):
                yield name, node.lineno


def count(folder: Path) -> tuple[Counter[str], Counter[str], list[str]]:
    """Of each package: its bindings and its participles; and a line for each participle."""
    every, participles, lines = Counter[str](), Counter[str](), []
    for path in sorted(folder.rglob("*.py")):
        place = path.relative_to(ROOT)
        package = "/".join(place.parts[: min(2, len(place.parts) - 1)])
        for name, line in bindings(ast.parse(path.read_text(encoding="utf-8"))):
            every[package] += 1
            if is_participle(name):
                participles[package] += 1
                lines.append(f"{place}:{line}: {name}")
    return every, participles, lines


def main() -> None:
    parser = argparse.ArgumentParser(prog=".ci/names", description=__doc__)
    parser.add_argument("--list", action="store_true", help="show each name with its place")
    parser.add_argument("folders", nargs="*", type=Path, default=[Path("autotune"), Path("runner")])
    options = parser.parse_args()
    total, wrong = Counter[str](), Counter[str]()
    for folder in options.folders:
        every, participles, lines = count((ROOT / folder).resolve())
        if options.list:
            print("\n".join(lines))
        total += every
        wrong += participles
    for package, number in sorted(total.items()):
        print(f"{package:24} {number:7} {wrong[package]:6} {wrong[package] / number:7.1%}")
    print(f"{'all':24} {total.total():7} {wrong.total():6} {wrong.total() / total.total():7.1%}")


if __name__ == "__main__":
    main()
