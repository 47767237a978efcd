"""Extras: the packages that some commands need and that ``pip install mpi-autotune`` leaves out.

Tuning, comparing, predicting and publishing need none of them.
"""

from __future__ import annotations

EXTRAS: dict[str, tuple[str, str]] = {
    "pandas": ("data", "datasets, tables of runs and export"),
    "pyarrow": ("data", "datasets, tables of runs and export"),
    "sklearn": ("analysis", "training, importance and class-wide settings"),
    "statsmodels": ("analysis", "analysis of variance"),
    "matplotlib": ("report", "figures and reports"),
    "jinja2": ("report", "figures and reports"),
    "psycopg": ("postgres", "a results database on PostgreSQL"),
    "libcst": ("translate", "translating programs for MATE"),
}
"""The extra of each package that may be missing, and its purpose."""


def missing_extra(error: ModuleNotFoundError) -> str | None:
    """The user's message for a package that an extra installs; None for any other package."""
    package = (error.name or "").partition(".")[0]
    if package not in EXTRAS:
        return None
    extra, purpose = EXTRAS[package]
    return (
        f"{package} is not installed; it is needed for {purpose}. Install it with:\n"
        f'  pip install "mpi-autotune[{extra}]"'
    )
