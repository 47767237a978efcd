"""Every notebook runs from its first cell to its last on the data that are shipped."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.case_table import case_table

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
LONG = {"python", "ga_convergence", "prediction", "anova", "mate_over_decomposition"}
"""What they call is tested elsewhere: 60 launches, replayed searches, training, tables."""


def test_there_are_notebooks() -> None:
    assert {path.stem for path in NOTEBOOKS} >= {
        *("random_exploration", "ga_convergence", "prediction", "anova", "mate_over_decomposition"),
    }


@pytest.mark.parametrize("path", [
    pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in LONG else [])
    for path in NOTEBOOKS
])  # fmt: skip
def test_runs_and_draws(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        cell.get("outputs", []).clear()
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(FOLDER)}}).execute()
    shown = [o for cell in notebook.cells for o in cell.get("outputs", []) if "data" in o]
    assert any("image/svg+xml" in output["data"] for output in shown)


@case_table("path", NOTEBOOKS)
def test_what_is_stored_is_whole_and_names_no_machine(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert all(o.output_type != "error" for cell in code for o in cell.outputs)
    text = path.read_text(encoding="utf-8")
    assert "/home/" not in text
    assert "/tmp/" not in text
    assert "site-packages" not in text
