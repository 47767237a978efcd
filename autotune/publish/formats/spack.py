"""A fragment of Spack's ``modules.yaml``: variables of the generated module of the MPI package."""

from __future__ import annotations

import importlib
import importlib.util
import json
from pathlib import Path
from typing import Any

from autotune.errors import WorkError
from autotune.publish.content import Content
from autotune.publish.formats.base import Loading, variables
from autotune.publish.formats.scripts import Script
from runner.mpi.library import Library


class Spack(Script):
    """A fragment to merge into a site's ``modules.yaml``: Spack has no variant for parameters."""

    name = "spack"
    summary = "fragment for Spack's modules.yaml"
    suffix = ".modules.yaml"
    interpreters = ("PyYAML",)
    guards = False

    def interpreter(self) -> str | None:
        return "PyYAML" if importlib.util.find_spec("yaml") else None

    def body(self, content: Content, library: Library) -> str:
        head = ["modules:", "  default:"]
        for kind in ("lmod", "tcl"):
            head += [f"    {kind}:", f"      {library.family}:", "        environment:"]
            head.append("          set:")
            assignments = sorted(variables(content, library).items())
            # Every JSON string is a YAML string, so no value is read as a number.
            head += [f"            {name}: {json.dumps(value)}" for name, value in assignments]
        return "\n".join(head) + "\n"

    def line(self, name: str, value: str) -> str:
        return f"{name}: {json.dumps(value)}\n"

    def command(self, interpreter: str, path: Path) -> list[str]:
        return [interpreter, str(path)]

    def live(self, path: Path, library: Library) -> Loading:
        yaml: Any = importlib.import_module("yaml")
        try:
            kinds = yaml.safe_load(path.read_text(encoding="utf-8", errors="surrogateescape"))[
                "modules"
            ]["default"]
            sets = [kinds[kind][library.family]["environment"]["set"] for kind in ("lmod", "tcl")]
        except (yaml.YAMLError, KeyError, TypeError, ValueError) as problem:
            raise WorkError(
                f"{path} is not a modules.yaml that sets variables: {problem}",
                code="published.invalid",
            ) from None
        if sets[0] != sets[1]:
            raise WorkError(
                f"{path} sets other variables for Lmod than for Tcl modules",
                code="published.invalid",
            )
        return Loading({str(name): str(value) for name, value in sets[0].items()})
