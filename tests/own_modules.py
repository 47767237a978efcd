"""Modules in a directory, of the names that are imported by autotune and by what it starts."""

from __future__ import annotations

from pathlib import Path

NAMES = (
    *("runner", "autotune", "typer", "json", "numpy", "mpi4py", "numba", "sqlalchemy", "rich"),
    *("pathlib", "subprocess", "configs", "sitecustomize", "usercustomize", "uvicorn", "pydantic"),
)
_MARK = """
with open({place!r} + "/" + __name__, "a"):
    pass
raise ImportError("a module of the current directory")
"""


def lay_out(place: Path) -> Path:
    """Write such modules to ``place``; a folder in which each leaves a mark when it is imported."""
    marks = place / "imported"
    marks.mkdir()
    for name in NAMES:
        (place / f"{name}.py").write_text(_MARK.format(place=str(marks)))
    return marks
