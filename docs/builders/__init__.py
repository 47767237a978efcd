"""Builders of pages: what the documentation takes from the code."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
EXTERNAL_PAGES = {
    "reference/mate.md": "runner/runtimes/mate/README.md",
    "explanation/autotune.md": "autotune/README.md",
    "explanation/runner.md": "runner/README.md",
    "explanation/runtimes.md": "runner/runtimes/README.md",
    "explanation/core.md": "runner/runtimes/core/README.md",
    "explanation/compiled.md": "runner/runtimes/mate/compiled/README.md",
    "explanation/programs.md": "runner/programs/README.md",
    "project/changelog.md": "CHANGELOG.md",
    "project/contributing.md": "CONTRIBUTING.md",
    "project/security.md": "SECURITY.md",
}
"""Pages of the site that do not lie in ``docs``, and where their texts lie in the repository."""
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), *(ROOT / path for path in EXTERNAL_PAGES.values())]
