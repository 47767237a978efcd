"""Names of modules, of what is in them, and of files, in docstrings and pages, lead somewhere.

The sources are read, not imported.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

from docs.builders import PAGES
from tests.case_table import case_table

ROOT = Path(__file__).parents[2]
CODE = ("autotune", "runner", "benchmarks", "tests", "docs")
TOPS = (*CODE, "configs", "datasets", "examples", "notebooks")
ROLE = re.compile(r":(?:class|func|meth|mod|data|attr|exc|obj):`~?\.?([\w.]+)`")
DOTTED = re.compile(rf"(?<![\w./@\\-])((?:{'|'.join(CODE)})(?:\.[A-Za-z_]\w*)+)(?![\w/*-])")
FILE = re.compile(
    rf"(?<![\w./~-])((?:{'|'.join(TOPS)})/(?:[\w.-]+/)*[\w.-]*\w)(?![\w*{{<]|[-./]+[*{{<])"
)
GROUPS = {"autotune.formats", "autotune.mpi", "autotune.schedulers", "autotune.strategies"}
"""Entry points of packages that extend autotune."""
OF_THE_USER = {
    *("autotune/kernels", "autotune/daps.json", "autotune/mcoll.json", "autotune/cab.json"),
    *("configs/apps/heat.toml", "configs/spaces/heat.toml", "datasets/three", "runner.py"),
}
"""Files of users, of examples and of tests."""
SOURCES = sorted(path for top in CODE for path in (ROOT / top).rglob("*.py"))
HOUSES = [path for top in ("autotune", "runner") for path in (ROOT / top).rglob("README.md")]
TEXTS = [ROOT / "README.md", *PAGES, *HOUSES]
TEXTS.remove(ROOT / "CHANGELOG.md")  # It also names what is gone.


def text_of(node: ast.AST) -> str | None:
    """The text, if a statement is a text and nothing else."""
    match node:
        case ast.Expr(value=ast.Constant(value=str() as text)):
            return text
    return None


@dataclass(frozen=True)
class Module:
    """What a source file names, and its texts; a kept syntax tree would slow all later tests."""

    names: frozenset[str]
    """What it defines, imports, or lists as text (``__all__``, what is imported lazily)."""
    docstrings: tuple[str, ...]
    """Docstrings, and texts that stand behind a constant for it."""
    orphans: tuple[int, ...]
    """Lines of texts that stand behind anything else."""


@cache
def module(path: Path) -> Module:
    defined: set[str] = set()
    texts: list[str] = []
    orphans: list[int] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                defined.add(node.name)
            case ast.Import() | ast.ImportFrom():
                defined.update(alias.asname or alias.name for alias in node.names)
            case ast.Name(ctx=ast.Store()):
                defined.add(node.id)
            case ast.Attribute(ctx=ast.Store()):
                defined.add(node.attr)
            case ast.Constant(value=str()) if node.value.isidentifier():
                defined.add(node.value)
        if (text := text_of(node)) is not None:
            texts.append(text)
        body = getattr(node, "body", None)
        orphans += [
            after.lineno
            for before, after in pairwise(body if isinstance(body, list) else [])
            if text_of(after) is not None and not isinstance(before, ast.Assign | ast.AnnAssign)
        ]
    return Module(frozenset(defined), tuple(texts), tuple(orphans))


@cache
def all_names() -> frozenset[str]:
    return frozenset().union(*(module(path).names for path in SOURCES))


def is_there(name: str) -> bool:
    """Whether a dotted name is a package, a module, or something that one of them defines."""
    place, parts = ROOT, name.split(".")
    while parts and (place / parts[0]).is_dir():
        place /= parts.pop(0)
    if parts and (place / f"{parts[0]}.py").is_file():
        file = place / f"{parts.pop(0)}.py"
    else:
        file = place / "__init__.py"
    if not parts or not file.is_file():
        return not parts
    return parts[0] in module(file).names and all_names().issuperset(parts[1:])


def dangling(text: str) -> set[str]:
    """Names and files in a text that are not there."""
    wrong = {name for name in DOTTED.findall(text) if not is_there(name)}
    wrong |= {name for name in FILE.findall(text) if not (ROOT / name).exists()}
    roles = {name for name in ROLE.findall(text) if name.split(".")[0] not in TOPS}
    wrong |= {name for name in roles if not all_names().issuperset(name.split("."))}
    return {name for name in wrong - GROUPS - OF_THE_USER if "NAME" not in name}


def test_docstrings_name_what_is_there() -> None:
    wrong = {path: dangling("\n".join(module(path).docstrings)) for path in SOURCES}
    assert not {path: names for path, names in wrong.items() if names}


def test_pages_name_what_is_there() -> None:
    """Those of benchmarks may be gone, with their commit: ``tests/benchmarks/test_named.py``."""
    wrong = {page: dangling(page.read_text(encoding="utf-8")) for page in TEXTS}
    assert not {
        (page, name)
        for page, names in wrong.items()
        for name in names
        if not name.startswith("benchmarks")
    }


@case_table("page", HOUSES)
def test_the_page_of_a_house_names_its_rooms(page: Path) -> None:
    files = [f"/{path.relative_to(ROOT).as_posix()}" for path in SOURCES]
    here = page.parent.relative_to(ROOT).as_posix()
    named = set(re.findall(r"`(?:\w+/)*\w+\.py`|`[\w/]+/`", page.read_text(encoding="utf-8")))
    assert not {
        name
        for name in (name.strip("`") for name in named if "NAME" not in name)
        if not any(file.endswith(f"/{name}") for file in files)
        and not any(f"/{here}/{name}" in file or file.startswith(f"/{name}") for file in files)
        and not (ROOT / name).is_dir()
    }


def test_a_text_stands_behind_what_it_describes() -> None:
    orphans = [
        f"{path.relative_to(ROOT)}:{line}" for path in SOURCES for line in module(path).orphans
    ]
    assert not orphans


def test_a_name_that_is_not_there_is_seen() -> None:
    wrong = "``autotune.study.provenance``, :class:`runner.types.RunRecords`, autotune/study/a.py"
    right = "`runner.types.RunRecord.state`, :func:`autotune.tune`, docs/index.md"
    assert len(dangling(wrong)) == 3
    assert not dangling(right)
