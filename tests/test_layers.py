"""What imports what: no circle of files, and the two halves of the runner apart."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
RUNNER = ROOT / "runner"
LAUNCHED = {"runtimes", "programs"}
SHARED = {
    *("cpus", "errors", "files", "message_sizes", "process", "published_layout", "types"),
    *("figure.number", "figure.lazy_pattern"),
}
"""What both halves of the runner use."""
C_DEFINITION = re.compile(r"^(?!static\b)[a-z][\w *]*?(\w+)\([^;{}]*\)\n\{", re.MULTILINE)


def circle(graph: Mapping[str, set[str]]) -> list[str]:
    """Names each of which needs the one before it, the last being the first; [] if none do."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def imports(root: Path, *packages: str) -> dict[str, set[str]]:
    """Module -> the modules that it imports, also for types only and in functions.

    ``from package import module`` is an import of the module, not of the package.
    """
    files = {}
    for file in (file for package in packages for file in (root / package).rglob("*.py")):
        parts = file.relative_to(root).with_suffix("").parts
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file

    def names_of(tree: ast.Module) -> Iterator[str]:
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, "a relative import"
                for alias in node.names:
                    member = f"{node.module}.{alias.name}"
                    yield member if member in files else str(node.module)

    return {
        name: {other for other in names_of(ast.parse(file.read_text())) if other in files}
        for name, file in files.items()
    }


def calls(folder: Path) -> dict[str, set[str]]:
    """C file -> the files whose functions it calls."""
    texts = {
        file.name: re.sub(r"/\*.*?\*/", "", file.read_text(), flags=re.DOTALL)
        for file in folder.glob("*.c")
    }
    home = {name: file for file, text in texts.items() for name in C_DEFINITION.findall(text)}
    return {
        file: {home[word] for word in re.findall(r"\w+(?=\()", text) if word in home} - {file}
        for file, text in texts.items()
    }


def test_no_file_imports_itself_through_others() -> None:
    graph = imports(ROOT, "autotune", "runner")
    assert len(graph) > 800
    assert sum(map(len, graph.values())) > 4000
    assert not circle(graph)


@pytest.mark.parametrize(
    "back",
    [
        "from house import one",
        "import house.one",
        "def f():\n    from house.one import A",
        "if TYPE_CHECKING:\n    from house.one import A",
    ],
)
def test_a_planted_circle_is_found(tmp_path: Path, back: str) -> None:
    house = tmp_path / "house"
    house.mkdir()
    (house / "__init__.py").touch()
    (house / "one.py").write_text("from house.two import B\n")
    (house / "two.py").write_text("B = 1\n")
    assert not circle(imports(tmp_path, "house"))
    (house / "two.py").write_text(f"B = 1\n{back}\n")
    assert set(circle(imports(tmp_path, "house"))) == {"house.one", "house.two"}


def test_no_c_file_calls_itself_through_others(tmp_path: Path) -> None:
    folders = {file.parent for file in RUNNER.rglob("native/*.c")}
    assert len(folders) > 2
    assert "rows.c" in calls(RUNNER / "trace" / "native")["counts.c"]
    assert not [found for folder in folders if (found := circle(calls(folder)))]
    (tmp_path / "one.c").write_text("void one(void)\n{\n    two();\n}\n")
    (tmp_path / "two.c").write_text("int two(void)\n{\n    one();\n}\n")
    assert set(circle(calls(tmp_path))) == {"one.c", "two.c"}


def contract(begins: str) -> dict[str, Any]:
    """The one import contract whose name begins so."""
    text = (ROOT / "pyproject.toml").read_text()
    contracts = tomllib.loads(text)["tool"]["importlinter"]["contracts"]
    (found,) = (one for one in contracts if one["name"].startswith(begins))
    return dict(found)


def children(folder: Path) -> set[str]:
    """The modules and packages directly in a package."""
    files = {file.stem for file in folder.glob("*.py")} - {"__init__"}
    return files | {file.parent.name for file in folder.glob("*/__init__.py")}


def members(modules: list[str]) -> set[str]:
    """Those of these modules that are the runner's, without its name."""
    return {name.removeprefix("runner.") for name in modules if name.startswith("runner.")}


def test_every_room_of_the_runner_stands_in_one_half() -> None:
    rooms = children(RUNNER) - LAUNCHED
    assert len(rooms) > 15
    assert members(contract("What launches needs")["source_modules"]) == rooms
    launched = contract("What is launched knows")
    assert members(launched["source_modules"]) == LAUNCHED
    # Of the figures both halves read numbers only.
    parts = rooms - {"figure"} | {f"figure.{name}" for name in children(RUNNER / "figure")}
    assert members(launched["forbidden_modules"]) == parts - SHARED


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources and their contracts."""
    house = tmp_path_factory.mktemp("house")
    shutil.copytree(RUNNER, house / "runner", ignore=shutil.ignore_patterns("__pycache__"))
    (house / "autotune").symlink_to(ROOT / "autotune")
    shutil.copy(ROOT / "pyproject.toml", house)
    return house


def lint(house: Path) -> subprocess.CompletedProcess[str]:
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache"]
    return subprocess.run(
        command, cwd=house, capture_output=True, text=True, timeout=120, check=False
    )


def test_the_contracts_hold(house: Path) -> None:
    done = lint(house)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("file", "line", "arrow"),
    [
        ("runtimes/core/dice.py", "from runner import guard", "core.dice -> runner.guard"),
        ("programs/micro/probe.py", "import runner.launch", "micro.probe -> runner.launch"),
        ("placement.py", "import numba", "runner.placement -> numba"),
        ("jobs.py", "from runner.runtimes import mate", "runner.jobs -> runner.runtimes.mate"),
    ],
)
def test_a_planted_import_breaks_a_contract(house: Path, file: str, line: str, arrow: str) -> None:
    place = house / "runner" / file
    before = place.read_text()
    place.write_text(f"{before}\n{line}\n")
    try:
        done = lint(house)
    finally:
        place.write_text(before)
    assert done.returncode == 1
    assert arrow in done.stdout
