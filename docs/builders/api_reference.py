"""The API reference: pages made from docstrings, and a check that there are some."""

from __future__ import annotations

import inspect
import sys
import warnings
from pathlib import Path

import autotune
import autotune.testing

MODULES = (
    "autotune",
    "autotune.measurement.events",
    "autotune.testing",
    "runner.types",
    "runner.mpi.base",
    "runner.scheduler",
    "autotune.publish.formats",
)
"""What one who uses or extends autotune needs; the rest is nobody's interface."""


def undocumented() -> list[str]:
    """Public names, and public methods of public classes, without a docstring."""
    found = []
    for module in (autotune, autotune.testing):
        for name in module.__all__:
            thing = getattr(module, name)
            if not inspect.getdoc(thing):
                found.append(f"{module.__name__}.{name}")
            if inspect.isclass(thing) and module is autotune:
                found += [
                    f"{name}.{method}"
                    for method, value in vars(thing).items()
                    if callable(value) and not method.startswith("_") and not inspect.getdoc(value)
                ]
    return found


def main(folder: Path) -> int:
    """Write the pages; 1 where something public is not described."""
    import pdoc
    import pdoc.render

    for module in (autotune, autotune.testing):
        for name in module.__all__:  # They are loaded when they are asked for; pdoc does not ask.
            setattr(module, name, getattr(module, name))
    for name in undocumented():
        print(f"{name} has no docstring", file=sys.stderr)
    pdoc.render.configure(show_source=False, docformat="restructuredtext")
    with warnings.catch_warnings(record=True) as problems:
        warnings.simplefilter("always")
        pdoc.pdoc(*MODULES, output_directory=folder)
    for problem in problems:
        print(problem.message, file=sys.stderr)
    print(f"API reference: {folder}/index.html")
    return 1 if undocumented() else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
